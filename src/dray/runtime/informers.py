"""The informers of one process: components that read the same resource share one copy of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

from dray.api.meta import Json
from dray.api.resources import Resource
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.informer import Informer

T = TypeVar("T")


class Informers:
    """Ask for informers before `run`; equal questions get the same informer."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._informers: dict[tuple[Resource, str, object], Informer[Any]] = {}

    def of(self, resource: Resource, *, field_selector: str = "") -> Informer[Json]:
        """Objects as plain JSON."""
        key = (resource, field_selector, None)
        if key not in self._informers:
            self._informers[key] = Informer(self._client, resource, field_selector=field_selector, clock=self._clock)
        return self._informers[key]

    def typed(self, resource: Resource, decode: Callable[[Json], T], *, field_selector: str = "") -> Informer[T]:
        key = (resource, field_selector, decode)
        if key not in self._informers:
            self._informers[key] = Informer(
                self._client, resource, decode=decode, field_selector=field_selector, clock=self._clock
            )
        return cast(Informer[T], self._informers[key])

    @property
    def have_synced(self) -> bool:
        return all(informer.has_synced for informer in self._informers.values())

    async def wait_synced(self) -> None:
        await asyncio.gather(*(informer.wait_synced() for informer in self._informers.values()))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run())
