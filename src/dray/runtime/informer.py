"""A local, indexed copy of one resource, kept up to date by a `Reflector`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from dray.api.meta import Json, ObjectKey
from dray.api.resources import Resource
from dray.runtime.client import Client
from dray.runtime.clock import Clock, SystemClock
from dray.runtime.reflector import Reflector

T = TypeVar("T")

log = logging.getLogger(__name__)

Handler = Callable[[T | None, T | None], None]
"""Called with (old, new): old is None for an added object, new is None for a deleted one. Must not block."""


def _as_json(obj: Json) -> Any:
    return obj


class Informer(Generic[T]):
    """`decode` turns JSON into what handlers and readers want; by default they get the JSON itself."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        decode: Callable[[Json], T] = _as_json,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
        clock: Clock | None = None,
        reflector: Reflector | None = None,
    ) -> None:
        """`reflector`, if given, is shared with other informers, and says what is followed."""
        self.resource = resource
        self._reflector = reflector or Reflector(
            client,
            resource,
            clock or SystemClock(),
            namespace=namespace,
            field_selector=field_selector,
            label_selector=label_selector,
        )
        self._decode = decode
        self._objects: dict[ObjectKey, T] = {}
        self._handlers: list[Handler[T]] = []
        self._indexers: dict[str, Callable[[T], Iterable[str]]] = {}
        self._indices: dict[str, dict[str, dict[ObjectKey, T]]] = {}
        self._reflector.add(self)

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, key: ObjectKey) -> T | None:
        return self._objects.get(key)

    def items(self) -> Iterable[tuple[ObjectKey, T]]:
        return self._objects.items()

    def add_handler(self, handler: Handler[T]) -> None:
        """From now on; objects that are there already are reported as added at once."""
        self._handlers.append(handler)
        for obj in list(self._objects.values()):
            handler(None, obj)

    def add_index(self, name: str, keys_of: Callable[[T], Iterable[str]]) -> None:
        self._indexers[name] = keys_of
        self._indices[name] = {}
        for key, obj in self._objects.items():
            for value in keys_of(obj):
                self._indices[name].setdefault(value, {})[key] = obj

    def by_index(self, name: str, value: str) -> list[T]:
        return list(self._indices[name].get(value, {}).values())

    @property
    def has_synced(self) -> bool:
        return self._reflector.has_synced

    async def wait_synced(self) -> None:
        await self._reflector.wait_synced()

    async def run(self) -> None:
        """Follow the resource until cancelled."""
        await self._reflector.run()

    # Told by the reflector

    def set(self, key: ObjectKey, obj: Json) -> None:
        try:
            new = self._decode(obj)
        except ValueError as error:  # one object that nobody understands must not stop everything else
            log.error("%s %s can't be read and is left as it was known: %s", self.resource.plural, key, error)
            return
        old = self._objects.get(key)
        self._objects[key] = new
        self._reindex(key, old, new)
        for handler in self._handlers:
            handler(old, new)

    def remove(self, key: ObjectKey) -> None:
        old = self._objects.pop(key, None)
        if old is None:
            return
        self._reindex(key, old, None)
        for handler in self._handlers:
            handler(old, None)

    def _reindex(self, key: ObjectKey, old: T | None, new: T | None) -> None:
        for name, keys_of in self._indexers.items():
            index = self._indices[name]
            if old is not None:
                for value in keys_of(old):
                    bucket = index.get(value, {})
                    bucket.pop(key, None)
                    if not bucket:
                        index.pop(value, None)
            if new is not None:
                for value in keys_of(new):
                    index.setdefault(value, {})[key] = new
