"""Carries a decision out, in the background: claims, devices that become ready, the binding; or rolls it back."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from dray.api.claims import ResourceClaim
from dray.api.errors import StatusError
from dray.api.times import parse_time
from dray.runtime.clock import Clock
from dray.runtime.events import EventRecorder
from dray.scheduler.binding import Binder
from dray.scheduler.conditions import needs_waiting, readiness
from dray.scheduler.confirmations import DevicesTaken
from dray.scheduler.decisions import Decision
from dray.scheduler.metrics import SchedulerMetrics
from dray.scheduler.podclaims import is_reserved_for
from dray.scheduler.queue import QueuedPod
from dray.scheduler.reporting import Reporter, refer_to
from dray.scheduler.state import SchedulerState

log = logging.getLogger(__name__)


STALE_RESERVATION = 10.0
"""Seconds after which a reservation for a pod that isn't bound is what a scheduler left behind that was killed."""


class DevicesNotReady(Exception):
    """Binding conditions failed or took too long."""


class Committer:
    def __init__(
        self,
        state: SchedulerState,
        binder: Binder,
        recorder: EventRecorder,
        reporter: Reporter,
        metrics: SchedulerMetrics,
        clock: Clock,
        *,
        binding_timeout: float,
    ) -> None:
        self._state = state
        self._binder = binder
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._binding_timeout = binding_timeout
        self._reporter = reporter

    async def commit(self, queued: QueuedPod, decision: Decision) -> None:
        written: list[ResourceClaim] = []
        adopted: list[ResourceClaim] = []
        try:
            with self._metrics.pre_bind.time():
                await self._binder.write_claims(decision, written, adopted)
                await self._state.wait_confirmed(decision)
                if needs_waiting(decision.after):
                    await self._wait_for_devices(decision.after)
            await self._reporter.finish(decision.pod.metadata.key)
            with self._metrics.bind.time():
                await self._binder.bind(decision)
        except (StatusError, OSError, DevicesNotReady, DevicesTaken) as error:
            await self._give_up(queued, decision, written, adopted, error)
        else:
            self._metrics.attempts.labels("scheduled").inc()
            for before, after in decision.changes:
                if before.status.allocation is None:
                    self._metrics.allocated(after, self._state.picture.index.gates)
            key = decision.pod.metadata.key
            self._state.queue.finish(queued)
            self._recorder.normal(
                refer_to(decision.pod), "Scheduled", f"Successfully assigned {key} to {decision.node}"
            )

    async def _wait_for_devices(self, claims: Sequence[ResourceClaim]) -> None:
        keys = [claim.metadata.key for claim in claims]
        while True:
            current = [claim for key in keys if (claim := self._state.claims.get(key)) is not None]
            if len(current) < len(keys):
                raise DevicesNotReady("a claim is gone")
            state, reason = readiness(current)
            if state == "ready":
                return
            left = self._time_left(current)
            if state == "failed" or left <= 0:
                raise DevicesNotReady(reason)
            await self._state.wait_claim_news(left)

    def _time_left(self, claims: Sequence[ResourceClaim]) -> float:
        """The limit counts from the allocation, also if another scheduler made it."""
        now = self._clock.now()
        ages = [
            (now - parse_time(allocation.allocation_timestamp)).total_seconds()
            for claim in claims
            if (allocation := claim.status.allocation) is not None and allocation.allocation_timestamp
        ]
        return self._binding_timeout - max(ages, default=0.0)

    async def _give_up(
        self,
        queued: QueuedPod,
        decision: Decision,
        written: Sequence[ResourceClaim],
        adopted: Sequence[ResourceClaim],
        error: Exception,
    ) -> None:
        self._metrics.attempts.labels("error").inc()
        log.info("pod %s: not bound to %s: %s", decision.pod.metadata.key, decision.node, error)
        match error:
            case DevicesNotReady():
                # The driver has told since, in the claims.
                stored = (self._state.claims.get(each.metadata.key) or each for each in (*written, *adopted))
                release: Sequence[ResourceClaim] = list(stored)
            case DevicesTaken():
                release = [*written, *(each for each in adopted if self._is_left_over(queued, each))]
            case _:  # whoever made the reservations that we found may still be about to bind the pod
                release = written
        deallocate = isinstance(error, (DevicesNotReady, DevicesTaken))
        await self._binder.take_back(decision.pod, release, deallocate=deallocate)
        self._state.give_up(decision)
        self._state.queue.back_off(queued, type(error).__name__)

    def _is_left_over(self, queued: QueuedPod, claim: ResourceClaim) -> bool:
        """Whether an earlier attempt made the reservation, and nobody is about to bind the pod or to take it back."""
        if not is_reserved_for(claim, queued.uid):
            return False
        now = self._clock.monotonic()
        return now - queued.blocked_since.setdefault(claim.metadata.uid, now) >= STALE_RESERVATION
