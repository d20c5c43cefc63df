"""History is bounded, by time, number and size, without anybody asking."""

from __future__ import annotations

from dray.store.retention import Retention
from tests.unit.store.conftest import ManualClock, OpenStore


async def test_changes_go_when_they_are_too_old(open_store: OpenStore, clock: ManualClock) -> None:
    store = await open_store(retention=Retention(seconds=100))
    old = await store.put("/a", b"old")
    clock.now += 50
    await store.put("/a", b"middle")
    assert store.compacted_revision < old.mod_revision
    clock.now += 51
    new = await store.put("/a", b"new")
    assert old.mod_revision <= store.compacted_revision < new.mod_revision


async def test_changes_go_when_there_are_too_many(open_store: OpenStore) -> None:
    store = await open_store(retention=Retention(changes=20))
    for i in range(50):
        await store.put("/a", b"%d" % i)
    assert store.current_revision - store.compacted_revision <= 20


async def test_changes_go_when_they_are_too_big(open_store: OpenStore) -> None:
    store = await open_store(retention=Retention(size=10_000))
    for _ in range(50):
        await store.put("/a", b"x" * 1000)
    assert store.current_revision - store.compacted_revision <= 5


async def test_state_outlives_its_history(open_store: OpenStore) -> None:
    store = await open_store(retention=Retention(changes=5))
    for i in range(30):
        await store.put(f"/{i:02}", b"x")
    assert len((await store.range("/")).entries) == 30
