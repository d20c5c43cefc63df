"""Leader election on a Lease: at most one of several equal processes acts.

A candidate takes the lease if nobody holds it or the holder hasn't renewed it for the lease duration *as seen on the
candidate's own clock* (clocks of machines differ). Every write is a compare-and-swap on resourceVersion, so two
candidates can't both win. A leader that fails to renew before the renew deadline stops leading on its own, which is
earlier than anyone else can take over.

A machine may halt for a while, with everybody on it. That is no reason for anybody to lose the lease: a leader that
wakes up after its deadline asks once more, and still leads if the answer is that nobody else did meanwhile; a candidate
doesn't hold the time against the leader in which it didn't look.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from dray.api.errors import AlreadyExists, Conflict, NotFound, StatusError
from dray.api.meta import Json
from dray.api.resources import LEASES
from dray.api.times import format_micro_time
from dray.runtime.client import Client
from dray.runtime.clock import Clock, wait_at_most

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds; the defaults are Kubernetes'."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


KUBERNETES_TIMES = LeaseTimes()


class LostLease(Exception):
    """The lease could not be renewed in time; whoever led must stop."""


class LeaderElector:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        name: str,
        identity: str,
        namespace: str = "kube-system",
        times: LeaseTimes = KUBERNETES_TIMES,
    ) -> None:
        self._client = client
        self._clock = clock
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._times = times
        self._lease: Json | None = None
        self._observed_at = 0.0
        self.is_leader = False

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, run `lead` while it is held, give it back. Raises LostLease if it is lost meanwhile."""
        while not await self._try_acquire():
            self._observed_at += await self._oversleep(self._times.retry_period)
        self.is_leader = True
        log.info("%s leads with lease %s/%s", self._identity, self._namespace, self._name)
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.ensure_future(self._renew_until_lost())
        try:
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost = renewing.done() and not leading.done()
            self.is_leader = False
            for task in (leading, renewing):
                task.cancel()
            await asyncio.gather(leading, renewing, return_exceptions=True)
            if not lost:
                await self._release()
        if lost:
            cause = None if renewing.cancelled() else renewing.exception()
            raise LostLease(f"{self._identity} lost lease {self._namespace}/{self._name}") from cause
        if not leading.cancelled() and (error := leading.exception()) is not None:
            raise error

    async def _renew_until_lost(self) -> None:
        renewed = self._clock.monotonic()
        while (left := renewed + self._times.renew_deadline - self._clock.monotonic()) > 0:
            late = await self._oversleep(min(self._times.retry_period, left))
            started = self._clock.monotonic()
            left = renewed + self._times.renew_deadline - started
            if late:
                left = max(left, self._times.retry_period)
            try:  # a server that doesn't answer must not hold us past the deadline
                if left > 0 and await wait_at_most(self._clock, left, self._try_acquire()):
                    renewed = started  # nobody's clock for us started earlier than that
            except TimeoutError as error:
                log.warning("lease %s/%s: %s", self._namespace, self._name, error)

    async def _oversleep(self, seconds: float) -> float:
        """Sleep, and tell for how much longer than that this process stood still, as far as it is worth mentioning."""
        started = self._clock.monotonic()
        await self._clock.sleep(seconds)
        late = self._clock.monotonic() - started - seconds
        return late if late > self._times.retry_period else 0.0

    async def _try_acquire(self) -> bool:
        try:
            return await self._acquire()
        except (Conflict, AlreadyExists):
            return False
        except (StatusError, OSError) as error:
            log.warning("lease %s/%s: %s", self._namespace, self._name, error)
            return False

    async def _acquire(self) -> bool:
        now = format_micro_time(self._clock.now())
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            fresh: Json = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"name": self._name, "namespace": self._namespace},
                "spec": self._spec(now, now, 0),
            }
            self._observe(await self._client.create(LEASES, fresh, self._namespace))
            return True
        spec = lease.get("spec") or {}
        if self._lease is None or spec != self._lease.get("spec"):
            self._observe(lease)
        holder = spec.get("holderIdentity", "")
        mine = holder == self._identity
        expired = self._clock.monotonic() - self._observed_at >= self._times.duration
        if holder and not mine and not expired:
            return False
        acquired = spec.get("acquireTime", now) if mine else now
        transitions = int(spec.get("leaseTransitions", 0)) + (0 if mine else 1)
        mine_now = lease | {"spec": spec | self._spec(acquired, now, transitions)}
        self._observe(await self._client.update(LEASES, mine_now))
        return True

    def _observe(self, lease: Json) -> None:
        self._lease = lease
        self._observed_at = self._clock.monotonic()

    def _spec(self, acquired: str, renewed: str, transitions: int) -> Json:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(self._times.duration),
            "acquireTime": acquired,
            "renewTime": renewed,
            "leaseTransitions": transitions,
        }

    async def _release(self) -> None:
        """Let the next candidate take over at once instead of after the lease duration."""
        if self._lease is None:
            return
        spec = self._lease["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            await self._client.update(LEASES, self._lease | {"spec": spec})
        except (StatusError, OSError) as error:
            log.info("lease %s/%s was not released: %s", self._namespace, self._name, error)
