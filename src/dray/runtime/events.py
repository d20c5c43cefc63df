"""Events for people: recorded without blocking, written in the background, equal ones counted instead of repeated.

The queue is bounded: when the API server is away for long, new events are dropped and counted, because events are
best effort and must never hold up the work that they describe.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import NamedTuple

from dray.api.errors import NotFound, StatusError
from dray.api.meta import Json
from dray.api.resources import EVENTS
from dray.api.times import format_time
from dray.runtime.client import Client
from dray.runtime.clock import Clock

log = logging.getLogger(__name__)

QUEUE_LENGTH = 10_000
REMEMBERED = 4096
MESSAGE_LIMIT = 1024


class ObjectReference(NamedTuple):
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, obj: Json, *, api_version: str = "", kind: str = "") -> ObjectReference:
        metadata = obj["metadata"]
        return cls(
            api_version or obj["apiVersion"],
            kind or obj["kind"],
            metadata.get("namespace", ""),
            metadata["name"],
            metadata.get("uid", ""),
        )


class _Record(NamedTuple):
    about: ObjectReference
    type: str
    reason: str
    message: str


class EventRecorder:
    def __init__(self, client: Client, clock: Clock, component: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._queue: asyncio.Queue[_Record] = asyncio.Queue(QUEUE_LENGTH)
        self._written: OrderedDict[_Record, tuple[str, int]] = OrderedDict()
        self._sequence = 0
        self.dropped = 0

    def normal(self, about: ObjectReference, reason: str, message: str) -> None:
        self._put(_Record(about, "Normal", reason, message))

    def warning(self, about: ObjectReference, reason: str, message: str) -> None:
        self._put(_Record(about, "Warning", reason, message))

    def _put(self, record: _Record) -> None:
        try:
            self._queue.put_nowait(record)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._write(await self._queue.get())

    async def flush(self) -> None:
        """Write what waits now; for a clean end and for tests."""
        while not self._queue.empty():
            await self._write(self._queue.get_nowait())

    async def _write(self, record: _Record) -> None:
        try:
            if not await self._count_again(record):
                await self._create(record)
        except (StatusError, OSError) as error:
            log.info("event %s about %s was not written: %s", record.reason, record.about.name, error)

    async def _count_again(self, record: _Record) -> bool:
        if (written := self._written.get(record)) is None:
            return False
        name, count = written
        patch: Json = {"count": count + 1, "lastTimestamp": self._now()}
        try:
            await self._client.patch(EVENTS, name, patch, _namespace(record))
        except NotFound:  # events expire
            del self._written[record]
            return False
        self._remember(record, name, count + 1)
        return True

    async def _create(self, record: _Record) -> None:
        self._sequence += 1
        now = self._clock.now()
        suffix = f"{int(now.timestamp() * 1e6) + self._sequence:x}"
        name = f"{record.about.name[:200]}.{suffix}"
        about: Json = {"apiVersion": record.about.api_version, "kind": record.about.kind, "name": record.about.name}
        if record.about.namespace:
            about["namespace"] = record.about.namespace
        if record.about.uid:
            about["uid"] = record.about.uid
        event: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(record)},
            "involvedObject": about,
            "type": record.type,
            "reason": record.reason,
            "message": record.message[:MESSAGE_LIMIT],
            "count": 1,
            "firstTimestamp": self._now(),
            "lastTimestamp": self._now(),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        await self._client.create(EVENTS, event, _namespace(record))
        self._remember(record, name, 1)

    def _remember(self, record: _Record, name: str, count: int) -> None:
        self._written[record] = (name, count)
        self._written.move_to_end(record)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    def _now(self) -> str:
        return format_time(self._clock.now())


def _namespace(record: _Record) -> str:
    return record.about.namespace or "default"
