"""Follows one resource by list and watch, and tells others what changes.

The list gives a revision, the watch starts right after it, so no event is lost in between. When the watch breaks or
ends, it goes on from the last revision that was seen; if the server says that this one is gone (410), everything is
listed again, and what vanished meanwhile is reported as deleted.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol

from dray.api.errors import Expired, NotFound, StatusError
from dray.api.meta import Json, ObjectKey
from dray.api.resources import Resource
from dray.runtime.client import Client, EventType
from dray.runtime.clock import Clock

log = logging.getLogger(__name__)

PAGE_SIZE: Final = 500
FIRST_BACKOFF: Final = 0.1
LONGEST_BACKOFF: Final = 30.0
SHORT_WATCH: Final = 1.0
"""A watch that ends sooner, without an event, counts as a failure: a server that only ever hangs up must not keep us
busy."""
UNSERVED_PAUSE: Final = 60.0


def key_of(obj: Json) -> ObjectKey:
    metadata = obj["metadata"]
    return ObjectKey(metadata.get("namespace", ""), metadata["name"])


class Sink(Protocol):
    def set(self, key: ObjectKey, obj: Json) -> None: ...
    def remove(self, key: ObjectKey) -> None: ...


class Reflector:
    def __init__(
        self,
        client: Client,
        resource: Resource,
        clock: Clock,
        *,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> None:
        self.resource = resource
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._field_selector = field_selector
        self._label_selector = label_selector
        self._sinks: list[Sink] = []
        self._revision = ""
        self._seen: dict[ObjectKey, str] = {}
        """The revision of each object."""
        self._synced = asyncio.Event()
        self._pages = True
        self._progress = 0

    def add(self, sink: Sink) -> None:
        """Before `run`."""
        self._sinks.append(sink)

    @property
    def has_synced(self) -> bool:
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def run(self) -> None:
        """Follow the resource until cancelled. Failures of the server are waited out with growing pauses."""
        failures = 0
        while True:
            started, progress = self._clock.monotonic(), self._progress
            problem = "the watch ended at once"
            try:
                if not self._revision:
                    await self._list_all()
                await self._follow()
            except Expired as error:
                self._revision = ""
                problem = str(error)
            except (StatusError, OSError) as error:
                if isinstance(error, NotFound) and not self._revision and not self._seen:
                    await self._wait_until_served(error)
                    continue
                started = self._clock.monotonic()
                problem = str(error)
            if self._progress > progress or self._clock.monotonic() - started > SHORT_WATCH:
                failures = 0
                continue
            delay = min(FIRST_BACKOFF * 2.0 ** min(failures, 20), LONGEST_BACKOFF)
            failures += 1
            log.info("watching %s: %s; trying again in %.1fs", self.resource.group_resource, problem, delay)
            await self._clock.sleep(delay)

    async def _wait_until_served(self, error: NotFound) -> None:
        """The server doesn't have this API: so there are no objects, for now."""
        if not self.has_synced:
            log.warning("%s: %s; looking again later", self.resource.group_resource, error)
            self._synced.set()
        await self._clock.sleep(UNSERVED_PAUSE)

    async def _list_all(self) -> None:
        listed: set[ObjectKey] = set()
        token = ""
        while True:
            try:
                page = await self._client.list(
                    self.resource,
                    self._namespace,
                    field_selector=self._field_selector,
                    label_selector=self._label_selector,
                    limit=PAGE_SIZE if self._pages else 0,
                    continue_token=token,
                )
            except Expired:
                self._pages = not token  # the pages take longer than the server remembers: ask for all at once
                raise
            for obj in page.get("items") or ():
                key = key_of(obj)
                listed.add(key)
                self._set(key, obj)
            token = page["metadata"].get("continue", "")
            if not token:
                break
        for key in self._seen.keys() - listed:
            self._remove(key)
        self._revision = page["metadata"]["resourceVersion"]
        self._pages = True
        self._synced.set()

    async def _follow(self) -> None:
        async with self._client.watch(
            self.resource,
            self._namespace,
            field_selector=self._field_selector,
            label_selector=self._label_selector,
            resource_version=self._revision,
        ) as events:
            async for event in events:
                match event.type:
                    case EventType.ADDED | EventType.MODIFIED:
                        self._set(key_of(event.object), event.object)
                    case EventType.DELETED:
                        self._remove(key_of(event.object))
                    case EventType.BOOKMARK:
                        pass
                self._revision = event.object["metadata"]["resourceVersion"]
                self._progress += 1

    def _set(self, key: ObjectKey, obj: Json) -> None:
        revision = obj["metadata"].get("resourceVersion", "")
        if revision and self._seen.get(key) == revision:
            return
        self._seen[key] = revision
        for sink in self._sinks:
            sink.set(key, obj)

    def _remove(self, key: ObjectKey) -> None:
        if self._seen.pop(key, None) is not None:
            for sink in self._sinks:
                sink.remove(key)
