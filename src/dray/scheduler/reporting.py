"""Tells pods that fit nowhere why, in their condition and in an event.

Explaining takes longer than rejecting, so it waits for a quiet moment and takes little time of a busy scheduler. By
then the pod may have been placed, or rejected for another reason: only the last word is written. Pods of one template
share an explanation as long as nothing changes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from dray.allocator.search import Limits
from dray.api.claims import ResourceClaim
from dray.api.errors import StatusError
from dray.api.meta import ObjectKey
from dray.api.pods import Pod
from dray.placement.explaining import explain_rejection
from dray.placement.planning import Rejection
from dray.placement.pods import PodFacts
from dray.runtime.events import EventRecorder, ObjectReference
from dray.scheduler.binding import Binder
from dray.scheduler.queue import QueuedPod
from dray.scheduler.rejections import describe_rejection
from dray.scheduler.state import SchedulerState

log = logging.getLogger(__name__)

EXPLAIN_SECONDS: Final = 0.05
BUSY_SHARE: Final = 0.1
"""Of the time, while pods wait for a decision."""
WRITES: Final = 16


class Rejected(NamedTuple):
    queued: QueuedPod
    pod: Pod
    facts: PodFacts
    claims: Sequence[ResourceClaim]
    rejection: Rejection


class Reporter:
    def __init__(
        self, state: SchedulerState, binder: Binder, recorder: EventRecorder, is_busy: Callable[[], bool]
    ) -> None:
        self._state = state
        self._binder = binder
        self._recorder = recorder
        self._is_busy = is_busy
        self._waiting: dict[ObjectKey, Rejected] = {}
        self._writing: dict[ObjectKey, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(WRITES)
        self._more = asyncio.Event()
        self._known: dict[tuple[object, ...], list[str]] = {}
        self._known_at = -1

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._writing

    def tell(self, rejected: Rejected) -> None:
        """Soon."""
        self._waiting[rejected.queued.key] = rejected
        self._more.set()

    async def finish(self, key: ObjectKey) -> None:
        """No report about the pod is written after this: it is about to be bound."""
        self._waiting.pop(key, None)
        if (task := self._writing.get(key)) is not None:
            await asyncio.wait((task,))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                rejected = await self._next()
                started = time.perf_counter()
                reason, message = describe_rejection(rejected.rejection)
                message = "\n".join((message, *self._explain(rejected)))
                took = time.perf_counter() - started
                if message != rejected.queued.told:
                    await self._slots.acquire()
                    task = group.create_task(self._write(rejected, reason, message))
                    self._writing[rejected.queued.key] = task
                await asyncio.sleep(took / BUSY_SHARE if self._is_busy() else 0)

    async def _next(self) -> Rejected:
        """The oldest of those that still wait and about whom nothing is being written."""
        while True:
            self._more.clear()
            for key in [key for key in self._waiting if key not in self._writing]:
                rejected = self._waiting.pop(key)
                if self._state.pending(key) is not None:
                    return rejected
            await self._more.wait()

    def _explain(self, rejected: Rejected) -> list[str]:
        picture, claims = self._state.picture, rejected.claims
        if not claims:
            return []
        changes = self._state.queue.changes
        if changes != self._known_at:
            self._known.clear()
            self._known_at = changes
        key = (rejected.facts.static_key, str(rejected.rejection), self._template_of(rejected))
        if key not in self._known:
            start = time.perf_counter()
            limits = Limits(lambda: time.perf_counter() - start > EXPLAIN_SECONDS)
            self._known[key] = explain_rejection(picture, rejected.facts, claims, rejected.rejection, limits)
        return self._known[key]

    def _template_of(self, rejected: Rejected) -> object:
        """The same for pods that are told the same. What names a claim is for one pod alone."""
        if len(rejected.claims) > 1 or rejected.rejection.error is not None:
            return rejected.queued.key
        return self._state.picture.index.compile(rejected.claims)[0]

    async def _write(self, rejected: Rejected, reason: str, message: str) -> None:
        key, queued = rejected.queued.key, rejected.queued
        try:
            await self._binder.report(rejected.pod, reason, message)
            self._recorder.warning(refer_to(rejected.pod), "FailedScheduling", message)
            queued.told = message
        except (StatusError, OSError) as error:
            log.info("pod %s was not told why it can't be placed: %s", key, error)
        finally:
            self._slots.release()
            self._writing.pop(key, None)
            self._more.set()


def refer_to(pod: Pod) -> ObjectReference:
    return ObjectReference("v1", "Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
