"""The `simulated` runtime: a container runs for the time that its pod's annotations say, and nothing really happens."""

from __future__ import annotations

import asyncio

from dray.api.times import format_time
from dray.node.probes import Probe
from dray.node.runtimes import ContainerSpec, Running, StartFailed
from dray.runtime.clock import Clock

RUN_SECONDS = "dray.dev/run-seconds"
EXIT_CODE = "dray.dev/exit-code"


class SimulatedRuntime:
    """Without the annotation a container runs until it is stopped. Probes pass. Nothing outlives the agent."""

    name = "simulated"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def start(self, spec: ContainerSpec) -> Running:
        text = spec.annotations.get(RUN_SECONDS)
        try:
            seconds = None if text is None else float(text)
            exit_code = int(spec.annotations.get(EXIT_CODE, "0"))
        except ValueError as error:
            raise StartFailed(f"annotations {RUN_SECONDS} and {EXIT_CODE} are numbers: {error}") from error
        return _Simulated(spec, self._clock, seconds, exit_code)

    def find(self, spec: ContainerSpec) -> Running | None:
        return None

    async def ask(self, spec: ContainerSpec, probe: Probe) -> str:
        return ""


class _Simulated:
    def __init__(self, spec: ContainerSpec, clock: Clock, seconds: float | None, exit_code: int) -> None:
        self.id = f"simulated://{spec.pod_uid}/{spec.name}/{spec.attempt}"
        self.attempt = spec.attempt
        self.started_at = format_time(clock.now())
        self._ended = asyncio.Event()
        self._exit_code = exit_code
        self._timer = None if seconds is None else asyncio.create_task(self._end_after(clock, seconds))

    async def _end_after(self, clock: Clock, seconds: float) -> None:
        await clock.sleep(seconds)
        self._ended.set()

    async def wait(self) -> int:
        await self._ended.wait()
        return self._exit_code

    async def stop(self, grace_seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._ended.is_set():
            self._exit_code = 143  # as a process that SIGTERM ended
            self._ended.set()
