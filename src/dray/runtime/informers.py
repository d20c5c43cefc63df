"""The informers of one process: those of one resource share one watch, equal ones also the copy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

from dray.api.meta import Json
from dray.api.resources import Resource
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.informer import Informer
from dray.runtime.reflector import Reflector

T = TypeVar("T")


class Informers:
    """Ask for informers before `run`."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._reflectors: dict[tuple[Resource, str], Reflector] = {}
        self._informers: dict[tuple[Resource, str, object], Informer[Any]] = {}

    def of(self, resource: Resource, *, field_selector: str = "") -> Informer[Json]:
        """Objects as plain JSON."""
        key = (resource, field_selector, None)
        if key not in self._informers:
            reflector = self._reflector(resource, field_selector)
            self._informers[key] = Informer(self._client, resource, reflector=reflector)
        return self._informers[key]

    def typed(self, resource: Resource, decode: Callable[[Json], T], *, field_selector: str = "") -> Informer[T]:
        key = (resource, field_selector, decode)
        if key not in self._informers:
            reflector = self._reflector(resource, field_selector)
            self._informers[key] = Informer(self._client, resource, decode=decode, reflector=reflector)
        return cast(Informer[T], self._informers[key])

    def _reflector(self, resource: Resource, field_selector: str) -> Reflector:
        key = (resource, field_selector)
        if key not in self._reflectors:
            self._reflectors[key] = Reflector(self._client, resource, self._clock, field_selector=field_selector)
        return self._reflectors[key]

    @property
    def have_synced(self) -> bool:
        return all(reflector.has_synced for reflector in self._reflectors.values())

    async def wait_synced(self) -> None:
        await asyncio.gather(*(reflector.wait_synced() for reflector in self._reflectors.values()))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors.values():
                group.create_task(reflector.run())
