"""One node of a local cluster: its agent and its drivers, in this process, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from dray.cluster.podfeeds import SharedPods
from dray.driver.base import Driver
from dray.driver.runner import DriverPaths, DriverRunner
from dray.node.agent import AlreadyRunning, NodeAgent, NodeOptions
from dray.node.images import ImageFolders
from dray.node.leftovers import end_all_containers
from dray.node.processes import ProcessRuntime
from dray.node.runtimes import Runtime
from dray.node.simulated import SimulatedRuntime
from dray.runtime.client import Client
from dray.runtime.clock import Clock

log = logging.getLogger(__name__)

RuntimeName = Literal["process", "simulated"]
IMAGES = Path(__file__).parent / "images"
"""Folders that stand for the images of the examples."""


def make_runtime(name: RuntimeName, clock: Clock, images: Sequence[Path] = ()) -> Runtime:
    return SimulatedRuntime(clock) if name == "simulated" else ProcessRuntime(ImageFolders(IMAGES, *images))


class Runnable(Protocol):
    async def run(self) -> None: ...


@dataclass(frozen=True)
class LocalNodeOptions:
    agent: NodeOptions
    runtime: RuntimeName = "process"
    images: tuple[Path, ...] = ()
    drivers: Mapping[str, Callable[[], Driver]] = field(default_factory=dict)
    """By name; called for every start of a driver."""


class LocalNode:
    """`fail` is called with what went wrong if a part ends that shouldn't. `pods` is shared by nodes of a process."""

    def __init__(
        self,
        options: LocalNodeOptions,
        agent_client: Client,
        driver_client: Callable[[str], Client],
        clock: Clock,
        fail: Callable[[BaseException], None],
        pods: SharedPods | None = None,
    ) -> None:
        self._options = options
        self._pods = pods
        self._agent_client = agent_client
        self._driver_client = driver_client
        self._clock = clock
        self._fail = fail
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self.runners: dict[str, DriverRunner] = {}
        self.agent: NodeAgent | None = None

    @property
    def name(self) -> str:
        return self._options.agent.name

    @property
    def root(self) -> Path:
        return self._options.agent.root

    @property
    def driver_names(self) -> tuple[str, ...]:
        return tuple(self._options.drivers)

    async def start(self) -> None:
        self.start_agent()
        for driver in self._options.drivers:
            self.start_driver(driver)

    async def wait_ready(self) -> None:
        """Until every driver has registered and its devices are published."""
        for runner in list(self.runners.values()):
            await runner.wait_registered()
            await runner.wait_published()

    async def stop(self, *, keep_containers: bool = False) -> None:
        """Ends drivers and agent, then the containers, whose end stays on record."""
        await asyncio.gather(*(self._end(key) for key in list(self._tasks)))
        if not keep_containers:
            await end_all_containers(self._options.agent.pods)

    # Parts

    def start_agent(self) -> None:
        options = self._options
        runtime = make_runtime(options.runtime, self._clock, options.images)
        pods = None if self._pods is None else self._pods.of(self.name)
        self.agent = NodeAgent(self._agent_client, self._clock, runtime, options.agent, pods=pods)
        self._run("agent", self.agent)

    async def stop_agent(self) -> None:
        await self._end("agent")

    def start_driver(self, name: str, *, instance: str = "", driver: Driver | None = None) -> DriverRunner:
        """Another `instance` runs beside the first, as in an upgrade."""
        runner = DriverRunner(
            driver or self._options.drivers[name](),
            self._driver_client(name),
            node_name=self.name,
            paths=DriverPaths.under(self.root),
            instance=instance,
            durable=self._options.agent.durable,
            clock=self._clock,
        )
        key = f"{name}-{instance}" if instance else name
        self.runners[key] = runner
        self._run(key, runner)
        return runner

    async def stop_driver(self, name: str, *, instance: str = "") -> None:
        key = f"{name}-{instance}" if instance else name
        await self._end(key)
        del self.runners[key]

    def _run(self, key: str, part: Runnable) -> None:
        task = asyncio.create_task(part.run(), name=f"{self.name} {key}")
        self._tasks[key] = task
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            if not isinstance(error, AlreadyRunning):  # that is no failure of ours, and is told to the user
                log.error("%s failed", task.get_name(), exc_info=error)
            self._fail(error)

    async def _end(self, key: str) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):  # `_ended` has told of it
                await task
