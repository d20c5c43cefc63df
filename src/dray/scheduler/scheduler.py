"""The scheduler: takes pods from the queue, decides, assumes the decision, and writes it in the background.

Deciding never waits for the API. A search for devices that takes longer than a few milliseconds is handed to a
thread, on a fork of the picture, so that informers, leases and bindings go on; its answer is asked again of the
picture as it is then, which is quick, and only then assumed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from dray.allocator.errors import AllocationError, DeadlineExceeded
from dray.allocator.search import Limits
from dray.api.claims import ResourceClaim
from dray.api.errors import StatusError
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.pods import DEFAULT_SCHEDULER, Pod
from dray.api.times import format_time
from dray.placement.picture import Picture
from dray.placement.planning import Placement, Preferences, Rejection, confirm_placement, plan_placement
from dray.placement.pods import PodFacts
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.events import EventRecorder
from dray.runtime.informers import Informers
from dray.scheduler.binding import Binder
from dray.scheduler.committing import STALE_RESERVATION, Committer
from dray.scheduler.conditions import DEFAULT_TIMEOUT, needs_waiting
from dray.scheduler.decisions import Decision, make_decision
from dray.scheduler.metrics import SchedulerMetrics
from dray.scheduler.podclaims import Waiting, find_claims
from dray.scheduler.queue import QueuedPod
from dray.scheduler.rejections import SCHEDULER_ERROR, find_plugins, find_wakes
from dray.scheduler.reporting import Rejected, Reporter
from dray.scheduler.state import SchedulerState, claim_wake
from dray.scheduler.watching import follow_cluster

log = logging.getLogger(__name__)

QUICK = 0.02
"""Seconds that a decision may hold the event loop."""
TURN = 0.005
"""Seconds after which others get their turn."""
SWEEP_INTERVAL = 30.0


@dataclass(frozen=True)
class SchedulerOptions:
    name: str = DEFAULT_SCHEDULER
    gates: FeatureGates = ALL_GATES
    preferences: Preferences = field(default_factory=Preferences)
    filter_timeout: float = 10.0
    """Per node; 0 means none (also with the gate DRASchedulerFilterTimeout off)."""
    bindings: int = 128
    """Decisions written at the same time."""
    binding_timeout: float = DEFAULT_TIMEOUT


class Scheduler:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        options: SchedulerOptions | None = None,
        registry: CollectorRegistry | None = None,
        informers: Informers | None = None,
    ) -> None:
        """`informers`, if given, are shared with other components and run by whoever made them."""
        self._options = options or SchedulerOptions()
        self.registry = registry or CollectorRegistry()
        self._client = client
        self._clock = clock
        self.state = SchedulerState(clock, self._options.gates, self._options.name)
        self._informers = informers or Informers(client, clock)
        self._runs_informers = informers is None
        follow_cluster(self._informers, self.state)
        self._recorder = EventRecorder(client, clock, self._options.name)
        self._binder = Binder(client, clock, written=self.state.claim_written, noted=self.state.claims.note)
        self.metrics = SchedulerMetrics(self.registry, self.state.queue, self.state.picture.index.statistics)
        self._reporter = Reporter(self.state, self._binder, self._recorder, lambda: self._is_deciding)
        self._committer = Committer(
            self.state,
            self._binder,
            self._recorder,
            self._reporter,
            self.metrics,
            clock,
            binding_timeout=self._options.binding_timeout,
        )
        self._slots = asyncio.Semaphore(self._options.bindings)
        self._group: asyncio.TaskGroup | None = None
        self._under_way = 0

    @property
    def is_ready(self) -> bool:
        return self._informers.have_synced

    @property
    def is_working(self) -> bool:
        """Whether something can be decided or is being written now."""
        return self._is_deciding or not self._reporter.is_idle

    @property
    def _is_deciding(self) -> bool:
        return self._under_way > 0 or self.state.queue.has_active

    @property
    def is_idle(self) -> bool:
        """Nothing to do now or later, as far as is known; for tests that wait until things have settled."""
        return self.is_ready and not self.is_working and not self.state.queue.counts()["backoff"]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            if self._runs_informers:
                group.create_task(self._informers.run())
            group.create_task(self._recorder.run())
            await self._informers.wait_synced()
            group.create_task(self._reporter.run())
            group.create_task(self._sweep())
            await self._schedule()

    async def _sweep(self) -> None:
        while True:
            await self._clock.sleep(SWEEP_INTERVAL)
            self.state.queue.sweep()

    async def _schedule(self) -> None:
        turn = time.perf_counter()
        while True:
            queued = self.state.queue.try_pop()
            if queued is None:
                queued = await self.state.queue.pop()
                turn = time.perf_counter()
            await self._slots.acquire()
            self._under_way += 1
            started = False
            try:
                started = await self._attempt(queued)
            finally:
                if not started:
                    self._done()
            if time.perf_counter() - turn > TURN:
                await asyncio.sleep(0)
                turn = time.perf_counter()

    def _done(self) -> None:
        self._under_way -= 1
        self._slots.release()

    async def _attempt(self, queued: QueuedPod) -> bool:
        """Decide for one pod. True if a decision is being written, which then ends the attempt."""
        pending = self.state.pending(queued.key)
        if pending is None:
            self.state.queue.remove(queued.key)
            return False
        pod, facts = pending
        claims = find_claims(pod, self.state.claims.get)
        if isinstance(claims, Waiting):
            self.state.enqueue(queued.key)
            return False
        busy = self.state.is_busy(queued.key, claims)
        if busy is None:  # a change of the pod brought it here although it is being bound
            return False
        if busy:
            self.state.queue.park(queued, "claim is being allocated", map(claim_wake, busy))
            return False
        plan = await self._plan(facts, claims)
        if self.state.pending(queued.key) is None:  # deleted while a thread searched
            return False
        if plan is None:
            self.state.queue.back_off(queued, "the cluster changed during the search")
            return False
        if isinstance(plan, Rejection):
            self._reject(Rejected(queued, pod, facts, claims, plan))
            return False
        self._commit(queued, pod, facts, claims, plan)
        return True

    # Deciding

    async def _plan(self, facts: PodFacts, claims: Sequence[ResourceClaim]) -> Placement | Rejection | None:
        """None: the cluster changed while a thread searched; look again."""
        with self.metrics.filter.time():
            try:
                return self._plan_on(self.state.picture, facts, claims, _limit_all(QUICK))
            except DeadlineExceeded:
                pass
            plan = await asyncio.to_thread(self._plan_on, self.state.picture.fork(), facts, claims, self._slow_limits())
            if isinstance(plan, Rejection):
                return plan
            # The answer counts only if it still stands.
            try:
                return confirm_placement(self.state.picture, facts, claims, plan.node, limits=_limit_all(QUICK))
            except AllocationError as error:
                log.info("pod %s: node %s is gone from under it: %s", facts.key, plan.node, error)
                return None

    def _plan_on(
        self, picture: Picture, facts: PodFacts, claims: Sequence[ResourceClaim], limits: Limits
    ) -> Placement | Rejection:
        return plan_placement(picture, facts, claims, preferences=self._options.preferences, limits=limits)

    def _slow_limits(self) -> Limits:
        if "DRASchedulerFilterTimeout" in self._options.gates and self._options.filter_timeout:
            return _limit_each(self._options.filter_timeout)
        return Limits()

    def _reject(self, rejected: Rejected) -> None:
        queued, plan = rejected.queued, rejected.rejection
        self.metrics.attempts.labels("unschedulable" if plan.error is None else "error").inc()
        self._reporter.tell(rejected)
        why = SCHEDULER_ERROR if plan.error else str(plan)
        if self._free_one(queued, rejected.pod, plan.blocked_by):
            self.state.queue.back_off(queued, why)
        else:
            self.state.queue.park(queued, why, find_wakes(plan), find_plugins(plan))

    def _free_one(self, queued: QueuedPod, pod: Pod, claims: Sequence[ResourceClaim]) -> bool:
        """Take an allocation back that stands in the pod's way and that nobody uses (PostFilter).

        A reservation for the pod itself may be what is left of a scheduler that was killed before it could bind. Or
        another one is about to: then it will have done so soon. Returns whether to look again later, for this.
        """
        waits = False
        for claim in claims:
            users = {user.uid for user in claim.status.reserved_for}
            if self.state.is_busy(queued.key, (claim,)) or (users and queued.uid not in users):
                continue
            if not users:
                self._spawn(self._binder.free(claim))
                return False
            now = self._clock.monotonic()
            if now - queued.blocked_since.setdefault(claim.metadata.uid, now) >= self._patience(claim):
                self._spawn(self._binder.take_back(pod, [claim], deallocate=True))
                return False
            waits = True
        return waits

    def _patience(self, claim: ResourceClaim) -> float:
        return self._options.binding_timeout if needs_waiting((claim,)) else STALE_RESERVATION

    # Committing

    def _commit(
        self, queued: QueuedPod, pod: Pod, facts: PodFacts, claims: Sequence[ResourceClaim], plan: Placement
    ) -> None:
        decision = make_decision(pod, plan.node, claims, plan.allocations, format_time(self._clock.now()))
        self.state.assume(facts, decision)
        self._spawn(self._write(queued, decision))

    async def _write(self, queued: QueuedPod, decision: Decision) -> None:
        try:
            await self._committer.commit(queued, decision)
        finally:
            self._done()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        assert self._group is not None  # only called while running
        return self._group.create_task(_logged(work))


def _limit_all(seconds: float) -> Limits:
    """For the whole question."""
    end = time.perf_counter() + seconds
    return Limits(lambda: time.perf_counter() > end)


def _limit_each(seconds: float) -> Limits:
    """For each node (KEP-4381, Filter)."""
    end = 0.0

    def renew() -> None:
        nonlocal end
        end = time.perf_counter() + seconds

    return Limits(lambda: time.perf_counter() > end, renew)


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    """Writes that nobody waits for: a failure is told, and the next event leads to another try."""
    try:
        await work
    except (StatusError, OSError) as error:
        log.info("a write that nobody waits for failed: %s", error)
