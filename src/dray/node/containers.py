"""Runs one container of a pod: starts it, adopts it from an earlier agent, restarts it as the restart policy says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dray.api.meta import Time
from dray.api.times import format_time
from dray.node.cdi import CdiDeviceMissing
from dray.node.environment import UnsupportedVariable
from dray.node.runtimes import ContainerSpec, CreateFailed, Running, Runtime, StartFailed
from dray.node.statuses import ContainerRecord
from dray.runtime.clock import Clock

log = logging.getLogger(__name__)

FIRST_RESTART = 1.0
LONGEST_RESTART = 300.0
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
    describe: Callable[[int], ContainerSpec]
    identify: Callable[[], ContainerSpec]
    """Only what is needed to find it: works even if its devices are gone."""
    restart_policy: str
    stopping: Stopping
    grace: Callable[[], float]
    changed: Callable[[], None]
    tell: Callable[[str, str], None]
    """Records an event: reason and message."""

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
            delay = min(delay * 2, LONGEST_RESTART)

    def _restarts_after(self, code: int) -> bool:
        return self.restart_policy == "Always" or (self.restart_policy == "OnFailure" and code != 0)

    async def _attempt(self, found: Running | None) -> int | None:
        """The exit code; None if there was nothing to run yet."""
        try:
            running = found or await self.runtime.start(self.describe(self.record.restarts))
        except (CreateFailed, CdiDeviceMissing, UnsupportedVariable) as error:
            self.record.wait_for("CreateContainerError", str(error))
            self.tell("Failed", f"Error: {error}")
            self.changed()
            return None
        except StartFailed as error:
            self.record.started_at = self._now()
            self.record.end(START_ERROR, self._now(), "StartError", str(error))
            self.tell("Failed", f"Error: {error}")
            self.changed()
            return START_ERROR
        self.record.restarts = running.attempt
        self.record.run(running.id, running.started_at)
        self.changed()
        if found is None:
            self.tell("Started", f"Started container {self.record.name}")
        code = await self._wait(running)
        self.record.end(code, self._now())
        self.changed()
        return code

    async def _wait(self, running: Running) -> int:
        ended = asyncio.ensure_future(running.wait())
        stopping = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait((ended, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                await running.stop(self.grace())
            return await ended
        finally:
            ended.cancel()
            stopping.cancel()

    def _now(self) -> Time:
        return format_time(self.clock.now())
