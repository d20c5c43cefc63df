"""Follows the probes of a running container: when it has started, whether it is ready, when it must be ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

from dray.node.probes import Probe, ProbeKind
from dray.node.statuses import ContainerRecord
from dray.runtime.clock import Clock


class Prober:
    """For one attempt of a container, whose record it keeps up to date. `ask` says why a probe fails, if it does."""

    def __init__(
        self,
        probes: Mapping[ProbeKind, Probe],
        ask: Callable[[Probe], Awaitable[str]],
        clock: Clock,
        record: ContainerRecord,
        *,
        changed: Callable[[], None],
        tell: Callable[[str, str], None],
    ) -> None:
        self._probes = probes
        self._ask = ask
        self._clock = clock
        self._record = record
        self._changed = changed
        self._tell = tell

    async def run(self) -> Probe:
        """Until the container must be ended; the probe that says so."""
        startup = self._probes.get("startup")
        if startup is not None and not self._record.is_started:
            if not await self._first(startup, True, False):
                return startup
            self._record.is_started = True
            self._record.is_ready = "readiness" not in self._probes
            self._changed()
        following = asyncio.ensure_future(self._follow_readiness())
        try:
            liveness = self._probes.get("liveness")
            if liveness is None:
                never: asyncio.Future[Probe] = asyncio.get_running_loop().create_future()
                return await never
            await self._first(liveness, False)
            return liveness
        finally:
            following.cancel()

    async def _follow_readiness(self) -> None:
        if (probe := self._probes.get("readiness")) is not None:
            async with aclosing(self._results(probe)) as results:
                async for passes in results:
                    if passes != self._record.is_ready:
                        self._record.is_ready = passes
                        self._changed()

    async def _first(self, probe: Probe, *answers: bool) -> bool:
        """The first result that is one of these."""
        async with aclosing(self._results(probe)) as results:
            async for passes in results:
                if passes in answers:
                    return passes
        raise AssertionError("results never end")

    async def _results(self, probe: Probe) -> AsyncGenerator[bool, None]:
        """What the probe says whenever it has said so often enough in a row."""
        await self._clock.sleep(probe.initial_delay)
        passed = failed = 0
        while True:
            why = await self._ask(probe)
            if why:
                passed, failed = 0, failed + 1
                self._tell("Unhealthy", f"{probe.kind.capitalize()} probe failed: {why}")
                if failed >= probe.failure_threshold:
                    yield False
            else:
                passed, failed = passed + 1, 0
                if passed >= probe.success_threshold:
                    yield True
            await self._clock.sleep(probe.period)
