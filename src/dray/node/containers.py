"""Runs one container of a pod: starts it, adopts it from an earlier agent, restarts it as the restart policy says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dray.api.errors import StatusError
from dray.api.meta import Time
from dray.api.times import format_time
from dray.node.cdi import CdiDeviceMissing
from dray.node.probes import Probe, ProbeKind
from dray.node.probing import Prober
from dray.node.runtimes import ContainerSpec, CreateFailed, Running, Runtime, StartFailed
from dray.node.sources import ConfigUnusable
from dray.node.statuses import ContainerRecord
from dray.runtime.clock import Clock

log = logging.getLogger(__name__)

FIRST_RESTART = 1.0
LONGEST_RESTART = 300.0
LONGEST_WAIT = 20.0
"""Between looks whether what a container needs to start is there by now."""
FORGIVEN_AFTER = 600.0
"""A container that ran for this long starts with the shortest delay again."""
START_ERROR = 128
"""The exit code of a container whose program could not be run."""


class Stopping:
    """That a pod shall stop, and how long its containers may take. Sleeps through it end early."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()

    async def or_wait(self, event: asyncio.Event) -> None:
        """Wait for the event, unless the pod is to stop."""
        waits = [asyncio.ensure_future(one.wait()) for one in (self._event, event)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def pause(self, seconds: float, *others: asyncio.Event) -> None:
        """Sleep, unless the pod is to stop, or one of the other events happens."""
        await pause(self._clock, seconds, self._event, *others)


async def pause(clock: Clock, seconds: float, *events: asyncio.Event) -> None:
    """Sleep, unless one of the events happens."""
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(event.wait()) for event in events]
    waits.append(asyncio.ensure_future(clock.sleep(seconds)))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


@dataclass(frozen=True)
class ContainerLoop:
    """`describe` resolves the container anew for every attempt; `changed` tells that its record has changed."""

    runtime: Runtime
    clock: Clock
    record: ContainerRecord
    describe: Callable[[int], Awaitable[ContainerSpec]]
    identify: Callable[[], ContainerSpec]
    """Only what is needed to find it: works even if its devices are gone."""
    restart_policy: str
    stopping: Stopping
    grace: Callable[[], float]
    changed: Callable[[], None]
    tell: Callable[[str, str], None]
    """Records an event: reason and message."""
    probes: Mapping[ProbeKind, Probe] = field(default_factory=dict)
    has_started: asyncio.Event = field(default_factory=asyncio.Event)
    """Its startup probe, if there is one, has passed."""

    async def run(self) -> int:
        """Until it has ended for good; the last exit code."""
        delay = FIRST_RESTART
        found = self.runtime.find(self.identify())
        if found is not None and found.attempt < self.record.restarts:
            found = None  # an attempt that is known to be over
        while True:
            started = self.clock.monotonic()
            code = await self._attempt(found)
            found = None
            if self.clock.monotonic() - started > FORGIVEN_AFTER:
                delay = FIRST_RESTART
            if code is not None:
                if self.stopping.is_set or not self._restarts_after(code):
                    return code
                self.record.restarts += 1
                self.record.wait_for("CrashLoopBackOff", f"back-off {delay:.0f}s restarting container")
                self.changed()
            await self.stopping.pause(delay)
            if self.stopping.is_set:
                return START_ERROR if code is None else code
            delay = min(delay * 2, LONGEST_RESTART if code is not None else LONGEST_WAIT)

    def _restarts_after(self, code: int) -> bool:
        return self.restart_policy == "Always" or (self.restart_policy == "OnFailure" and code != 0)

    async def _attempt(self, found: Running | None) -> int | None:
        """The exit code; None if there was nothing to run yet."""
        try:
            spec = await (self._describe_found() if found else self.describe(self.record.restarts))
            running = found or await self.runtime.start(spec)
        except (ConfigUnusable, StatusError, OSError) as error:
            self._wait_for("CreateContainerConfigError", error)
            return None
        except (CreateFailed, CdiDeviceMissing) as error:
            self._wait_for("CreateContainerError", error)
            return None
        except StartFailed as error:
            self.record.started_at = self._now()
            self.record.end(START_ERROR, self._now(), "StartError", str(error))
            self.tell("Failed", f"Error: {error}")
            self.changed()
            return START_ERROR
        self.record.restarts = running.attempt
        if found is None or self.record.state != "running":
            self.record.is_started = "startup" not in self.probes
            self.record.is_ready = self.record.is_started and "readiness" not in self.probes
        self.record.run(running.id, running.started_at)
        self._changed()
        if found is None:
            self.tell("Started", f"Started container {self.record.name}")
        code = await self._wait(running, spec)
        self.record.end(code, self._now())
        self.changed()
        return code

    async def _describe_found(self) -> ContainerSpec:
        """For its probes. It runs, whatever happened since to what it was started with."""
        try:
            return await self.describe(self.record.restarts) if self.probes else self.identify()
        except (ConfigUnusable, CdiDeviceMissing, StatusError, OSError):
            return self.identify()

    def _wait_for(self, reason: str, error: Exception) -> None:
        self.record.wait_for(reason, str(error))
        self.tell("Failed", f"Error: {error}")
        self.changed()

    def _changed(self) -> None:
        if self.record.is_started:
            self.has_started.set()
        self.changed()

    async def _wait(self, running: Running, spec: ContainerSpec) -> int:
        ended = asyncio.ensure_future(running.wait())
        stopping = asyncio.ensure_future(self.stopping.wait())
        probing = asyncio.ensure_future(self._probe(spec)) if self.probes else None
        waits = [task for task in (ended, stopping, probing) if task is not None]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                grace = self.grace()
                if probing is not None and probing.done():
                    grace = self._give_up(probing.result(), grace)
                await running.stop(grace)
            return await ended
        finally:
            for task in waits:
                task.cancel()

    def _give_up(self, failed: Probe, grace: float) -> float:
        """Say why it is ended; how long it may take."""
        what = f"Container {self.record.name} failed {failed.kind} probe"
        self.tell("Killing", f"{what}, will be restarted" if self.restart_policy != "Never" else what)
        return grace if failed.grace is None else failed.grace

    async def _probe(self, spec: ContainerSpec) -> Probe:
        prober = Prober(
            self.probes,
            lambda probe: self.runtime.ask(spec, probe),
            self.clock,
            self.record,
            changed=self._changed,
            tell=self.tell,
        )
        return await prober.run()

    def _now(self) -> Time:
        return format_time(self.clock.now())
