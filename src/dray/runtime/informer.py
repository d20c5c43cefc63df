"""A local, indexed copy of one resource, kept up to date by list and watch.

The list gives a revision, the watch starts right after it, so no event is lost in between. When the server says
that the revision is gone (410), or the watch breaks, the informer goes on from the last revision it saw, and lists
again if that one is gone too; what vanished meanwhile is reported as deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from dray.api.errors import Expired, StatusError
from dray.api.meta import Json, ObjectKey
from dray.api.resources import Resource
from dray.runtime.client import Client, EventType
from dray.runtime.clock import Clock, SystemClock

T = TypeVar("T")

log = logging.getLogger(__name__)

Handler = Callable[[T | None, T | None], None]
"""Called with (old, new): old is None for an added object, new is None for a deleted one. Must not block."""

PAGE_SIZE = 500
LONGEST_BACKOFF = 30.0


def key_of(obj: Json) -> ObjectKey:
    metadata = obj["metadata"]
    return ObjectKey(metadata.get("namespace", ""), metadata["name"])


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
    ) -> None:
        self.resource = resource
        self.resource_version = ""
        self._client = client
        self._decode = decode
        self._namespace = namespace
        self._field_selector = field_selector
        self._label_selector = label_selector
        self._clock = clock or SystemClock()
        self._objects: dict[ObjectKey, T] = {}
        self._revisions: dict[ObjectKey, str] = {}
        self._handlers: list[Handler[T]] = []
        self._indexers: dict[str, Callable[[T], Iterable[str]]] = {}
        self._indices: dict[str, dict[str, dict[ObjectKey, T]]] = {}
        self._synced = asyncio.Event()

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
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def run(self) -> None:
        """Follow the resource until cancelled. Failures of the server are waited out with growing pauses."""
        failures = 0
        while True:
            try:
                if not self.resource_version:
                    await self._list_all()
                    self._synced.set()
                await self._follow()
                failures = 0
            except Expired:
                self.resource_version = ""
            except (StatusError, OSError) as error:
                delay = min(0.1 * 2.0**failures, LONGEST_BACKOFF)
                failures += 1
                log.warning("watching %s: %s; trying again in %.1fs", self.resource.plural, error, delay)
                await self._clock.sleep(delay)

    async def _list_all(self) -> None:
        seen: set[ObjectKey] = set()
        token = ""
        while True:
            page = await self._client.list(
                self.resource,
                self._namespace,
                field_selector=self._field_selector,
                label_selector=self._label_selector,
                limit=PAGE_SIZE,
                continue_token=token,
            )
            for obj in page.get("items") or ():
                seen.add(key_of(obj))
                self._set(obj)
            token = page["metadata"].get("continue", "")
            if not token:
                break
        for key in self._objects.keys() - seen:
            self._remove(key)
        self.resource_version = page["metadata"]["resourceVersion"]

    async def _follow(self) -> None:
        async with self._client.watch(
            self.resource,
            self._namespace,
            field_selector=self._field_selector,
            label_selector=self._label_selector,
            resource_version=self.resource_version,
        ) as events:
            async for event in events:
                match event.type:
                    case EventType.ADDED | EventType.MODIFIED:
                        self._set(event.object)
                    case EventType.DELETED:
                        self._remove(key_of(event.object))
                    case EventType.BOOKMARK:
                        pass
                self.resource_version = event.object["metadata"]["resourceVersion"]

    def _set(self, obj: Json) -> None:
        key = key_of(obj)
        revision = obj["metadata"].get("resourceVersion", "")
        if revision and self._revisions.get(key) == revision:
            return
        old, new = self._objects.get(key), self._decode(obj)
        self._objects[key] = new
        self._revisions[key] = revision
        self._reindex(key, old, new)
        for handler in self._handlers:
            handler(old, new)

    def _remove(self, key: ObjectKey) -> None:
        old = self._objects.pop(key, None)
        self._revisions.pop(key, None)
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
