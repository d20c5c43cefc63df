"""Pods that wait for a node.

    gated ──gates removed──▶ active ──pop──▶ (being scheduled) ──bound──▶ gone
                               ▲  ▲                │
              event that helps │  │ time's up      │ does not fit
                               │  backoff ◀────────┤ failed in a way that may pass
                          unschedulable ◀──────────┘

- *active* is ordered by priority, then by age.
- *unschedulable* pods wait for an event that can help them: the queue keeps what each pod waits for, so an event costs
  what it wakes, not what waits. Nothing wakes a pod by mere time, except a long sweep against lost events.
- An event that arrives while a pod is being scheduled counts as well: the attempt may have been decided before it.
  So an attempt remembers the number of the last event it could have seen, and is repeated at once if a later event
  would have woken it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from dray.api.meta import ObjectKey
from dray.runtime.clock import Clock

FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 10.0
SWEEP_AFTER = 300.0
EVENTS_KEPT = 10_000


class Wake(NamedTuple):
    """Something that happened, or that a pod waits for: (`device`, ""), (`claim`, "ns/name"), (`node`, "")."""

    topic: str
    name: str = ""


@dataclass
class QueuedPod:
    key: ObjectKey
    uid: str
    priority: int
    created: str
    attempts: int = 0
    waits_for: frozenset[Wake] = frozenset()
    parked_at: float = 0.0
    reason: str = ""
    plugins: frozenset[str] = frozenset()
    """What it fails at, in Kubernetes' names."""
    told: str = ""
    """The last message that the pod's condition and event carry."""
    blocked_since: dict[str, float] = field(default_factory=dict)
    """When a claim that is reserved for the pod was first found in its way, by the claim's UID."""
    seen_event: int = 0
    position: int = field(default=0, compare=False)


class SchedulingQueue:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._active: list[tuple[int, str, int, ObjectKey]] = []
        self._backoff: list[tuple[float, int, ObjectKey]] = []
        self._pods: dict[ObjectKey, QueuedPod] = {}
        self._where: dict[ObjectKey, str] = {}
        self._waiting: dict[Wake, set[ObjectKey]] = {}
        self._events: deque[tuple[int, Wake]] = deque(maxlen=EVENTS_KEPT)
        self._event_number = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def changes(self) -> int:
        """How often something happened that could help somebody."""
        return self._event_number

    @property
    def has_active(self) -> bool:
        return self._first_active() is not None

    def counts(self) -> dict[str, int]:
        """How many pods are where, for metrics."""
        result = {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}
        for place in self._where.values():
            if place in result:
                result[place] += 1
        return result

    def plugins(self) -> Counter[str]:
        """How many parked pods fail at what."""
        parked = (self._pods[key] for key, place in self._where.items() if place in ("unschedulable", "gated"))
        return Counter(plugin for pod in parked for plugin in pod.plugins)

    def add(self, pod: QueuedPod) -> None:
        """A pod that can be tried now."""
        self.remove(pod.key)
        self._pods[pod.key] = pod
        self._activate(pod)

    def gate(self, pod: QueuedPod, plugin: str, reason: str) -> None:
        """A pod that may not be tried before it changes, or its claims do."""
        self.remove(pod.key)
        self._pods[pod.key] = pod
        pod.reason = reason
        pod.plugins = frozenset((plugin,))
        self._park(pod, "gated", ())

    def remove(self, key: ObjectKey) -> None:
        pod = self._pods.pop(key, None)
        if pod is not None:
            self._stop_waiting(pod)
        self._where.pop(key, None)

    def finish(self, pod: QueuedPod) -> None:
        """The pod has a node."""
        if self._has(pod):
            self.remove(pod.key)

    def _has(self, pod: QueuedPod) -> bool:
        """Whether the pod is still here: it may be gone, and another of its name may have come meanwhile."""
        return self._pods.get(pod.key) is pod

    def get(self, key: ObjectKey) -> QueuedPod | None:
        return self._pods.get(key)

    def is_gated(self, key: ObjectKey) -> bool:
        return self._where.get(key) == "gated"

    async def pop(self) -> QueuedPod:
        """The next pod to try; it is nowhere until it is parked, put back or removed."""
        while True:
            if (pod := self.try_pop()) is not None:
                return pod
            self._changed.clear()
            await self._wait()

    def try_pop(self) -> QueuedPod | None:
        self._end_backoffs()
        pod = self._first_active()
        if pod is None:
            return None
        heapq.heappop(self._active)
        self._where[pod.key] = "trying"
        pod.attempts += 1
        pod.seen_event = self._event_number
        return pod

    def _first_active(self) -> QueuedPod | None:
        """The top of the heap, rid of entries whose pods went elsewhere meanwhile."""
        while self._active:
            _, _, position, key = self._active[0]
            pod = self._pods.get(key)
            if pod is not None and self._where[key] == "active" and pod.position == position:
                return pod
            heapq.heappop(self._active)
        return None

    async def _wait(self) -> None:
        if not self._backoff:
            await self._changed.wait()
            return
        pause = max(0.0, self._backoff[0][0] - self._clock.monotonic())
        sleeper = asyncio.ensure_future(self._clock.sleep(pause))
        waiter = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((sleeper, waiter), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
            waiter.cancel()

    def park(
        self, pod: QueuedPod, reason: str, waits_for: Iterable[Wake], plugins: frozenset[str] = frozenset()
    ) -> None:
        """The pod doesn't fit; it is tried again when one of `waits_for` happens (or happened meanwhile)."""
        if not self._has(pod):
            return
        pod.reason = reason
        pod.plugins = plugins
        wakes = frozenset(waits_for)
        for number, event in reversed(self._events):
            if number <= pod.seen_event:
                break
            if event in wakes:
                self._activate(pod)
                return
        self._park(pod, "unschedulable", wakes)

    def back_off(self, pod: QueuedPod, reason: str) -> None:
        """The attempt failed in a way that may pass by itself (a conflict, a server away)."""
        if not self._has(pod):
            return
        pod.reason = reason
        pause = min(FIRST_BACKOFF * 2.0 ** max(0, pod.attempts - 1), LONGEST_BACKOFF)
        self._where[pod.key] = "backoff"
        pod.position = next(self._order)
        heapq.heappush(self._backoff, (self._clock.monotonic() + pause, pod.position, pod.key))
        self._changed.set()

    def happened(self, *wakes: Wake) -> int:
        """Something changed in the cluster: wake the pods that wait for it, at once. Returns how many."""
        woken = 0
        for wake in wakes:
            self._event_number += 1
            self._events.append((self._event_number, wake))
            for key in list(self._waiting.get(wake, ())):
                pod = self._pods[key]
                if self._where[key] == "unschedulable":
                    self._stop_waiting(pod)
                    self._activate(pod)
                    woken += 1
        return woken

    def sweep(self) -> int:
        """Try pods again that have waited for very long, in case an event was lost."""
        now = self._clock.monotonic()
        old = [
            pod
            for key, pod in self._pods.items()
            if self._where[key] == "unschedulable" and now - pod.parked_at > SWEEP_AFTER
        ]
        for pod in old:
            self._stop_waiting(pod)
            self._activate(pod)
        return len(old)

    def _activate(self, pod: QueuedPod) -> None:
        pod.position = next(self._order)
        self._where[pod.key] = "active"
        heapq.heappush(self._active, (-pod.priority, pod.created, pod.position, pod.key))
        self._changed.set()

    def _park(self, pod: QueuedPod, place: str, waits_for: Iterable[Wake]) -> None:
        pod.waits_for = frozenset(waits_for)
        pod.parked_at = self._clock.monotonic()
        self._where[pod.key] = place
        for wake in pod.waits_for:
            self._waiting.setdefault(wake, set()).add(pod.key)

    def _stop_waiting(self, pod: QueuedPod) -> None:
        for wake in pod.waits_for:
            waiting = self._waiting.get(wake)
            if waiting is not None:
                waiting.discard(pod.key)
                if not waiting:
                    del self._waiting[wake]
        pod.waits_for = frozenset()

    def _end_backoffs(self) -> None:
        now = self._clock.monotonic()
        while self._backoff and self._backoff[0][0] <= now:
            _, position, key = heapq.heappop(self._backoff)
            pod = self._pods.get(key)
            if pod is not None and self._where[key] == "backoff" and pod.position == position:
                self._activate(pod)
