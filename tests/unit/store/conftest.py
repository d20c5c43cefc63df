"""Both stores, with a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from dray.store.interface import Store
from dray.store.memory import MemoryStore
from dray.store.retention import Retention
from dray.store.sqlite import SqliteStore


class ManualClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


OpenStore = Callable[..., Awaitable[Store]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite"])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[OpenStore]:
    opened: list[Store] = []

    async def make(*, retention: Retention | None = None, watch_buffer: int = 100) -> Store:
        store: Store
        if request.param == "memory":
            store = MemoryStore(retention=retention, clock=clock, watch_buffer=watch_buffer)
        else:
            path = tmp_path / "store.db"
            store = await SqliteStore.open(path, retention=retention, clock=clock, watch_buffer=watch_buffer)
        opened.append(store)
        return store

    yield make
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    return await open_store()
