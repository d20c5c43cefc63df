"""A cluster of separate processes on this machine: what `LocalCluster` has in one, over HTTPS.

One process each for the API server, the controllers, the scheduler, and every node with its drivers. They are the
commands that a user could start by hand; this one starts them in order, watches over them and stops them again.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dray.api.errors import StatusError
from dray.api.features import ALL_GATES
from dray.api.resources import NODES, RESOURCE_SLICES
from dray.cluster.datadir import find_error
from dray.cluster.local import ClusterOptions
from dray.cluster.setup import UP_LABEL, prepare_objects
from dray.cluster.simulated import simulated_controller
from dray.runtime.clock import SystemClock
from dray.runtime.http_client import HttpClient
from dray.runtime.kubeconfig import load_kubeconfig

START_SECONDS = 45.0
STOP_SECONDS = 20.0
LOOK_INTERVAL = 0.1


class PartFailed(Exception):
    """A process of the cluster ended; the text says which, and where its log is."""


class SeparateCluster:
    """`model` is what was asked for: a name or a file, which every node's process reads for itself."""

    def __init__(self, options: ClusterOptions, model: str) -> None:
        self._options = options
        self._model = model
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._log_starts: dict[str, int] = {}
        self._tasks: list[asyncio.Task[Any]] = []
        self._client: HttpClient | None = None
        self.kubeconfig = options.data_dir / "admin.kubeconfig"

    @property
    def client(self) -> HttpClient:
        assert self._client is not None, "the cluster isn't running"
        return self._client

    @property
    def address(self) -> str:
        return self.client.access.server

    @property
    def process_ids(self) -> tuple[int, ...]:
        """In the order in which they are stopped."""
        return tuple(self._processes[command].pid for command in self._stop_order)

    @property
    def _stop_order(self) -> list[str]:
        """Nodes first, then who acts on them, the API last."""
        return sorted(self._processes, key=lambda command: (command == "apiserver", not command.startswith("node")))

    async def start(self) -> None:
        """Everything is up when this returns, and devices are published. Raises PartFailed."""
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._start()
        except TimeoutError:
            await self.stop()
            logs = self._options.data_dir / "logs"
            raise PartFailed(f"the cluster was not up within {START_SECONDS:g}s; see {logs}") from None
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        options = self._options
        names = options.node_names
        self.kubeconfig.unlink(missing_ok=True)
        arguments = ["--data-dir", str(options.data_dir), "--port", str(options.port)]
        arguments += ["--memory"] if options.memory else []
        gates = ["--feature-gates", ",".join(f"{name}=false" for name in ALL_GATES.enabled - options.gates.enabled)]
        await self._spawn("apiserver", *arguments, *gates, *(part for name in names for part in ("--node", name)))
        await self._until(self.kubeconfig.exists)
        self._client = HttpClient(load_kubeconfig([self.kubeconfig]), agent="dray-up")
        await self._until(self._answers)
        await prepare_objects(self._client, options.model, names, options.data_dir)
        for part, more in (("controllers", ()), ("scheduler", gates)):
            await self._spawn(part, "--kubeconfig", str(self._kubeconfig_of(part)), "--no-leader-elect", *more)
        for driver, pools in options.model.make_cluster_pools(len(names)).items():
            controller = simulated_controller(driver, pools, self._client, SystemClock())
            self._tasks.append(asyncio.create_task(controller.run()))
        for index, name in enumerate(names):
            await self._spawn_node(index, name)
        await self._until(self._has_devices)

    async def _spawn_node(self, index: int, name: str) -> None:
        options = self._options
        labels = {UP_LABEL: "true", **options.model.make_node(index).labels}
        await self._spawn(
            f"node {name}",
            *("--kubeconfig", str(self._kubeconfig_of(f"node-{name}"))),
            *("--root", str(options.data_dir / "nodes" / name)),
            *("--model", self._model, "--model-node", str(index), "--model-nodes", str(len(options.node_names))),
            *("--runtime", options.runtime),
            *(part for place in options.images for part in ("--image-dir", str(place))),
            *(part for key, value in labels.items() for part in ("--label", f"{key}={value}")),
        )

    def _kubeconfig_of(self, who: str) -> Path:
        return self._options.data_dir / "kubeconfigs" / f"{who}.kubeconfig"

    async def _answers(self) -> bool:
        try:
            await self.client.list(NODES)
        except (StatusError, OSError):
            return False
        return True

    async def _has_devices(self) -> bool:
        """Every node is there, and so are the slices of every driver that has devices of its own."""
        options = self._options
        nodes = await self.client.list(NODES, label_selector=UP_LABEL)
        slices = await self.client.list(RESOURCE_SLICES)
        present = {(item["spec"].get("nodeName"), item["spec"]["driver"]) for item in slices["items"]}
        wanted = {
            (name, driver.name)
            for index, name in enumerate(options.node_names)
            for driver in options.model.make_node(index).drivers
            if driver.devices
        }
        return len(nodes["items"]) >= len(options.node_names) and wanted <= present

    # Processes

    def _log_of(self, command: str) -> Path:
        return self._options.data_dir / "logs" / f"{command.replace(' ', '-')}.log"

    async def _spawn(self, command: str, *arguments: str) -> None:
        log = self._log_of(command)
        self._log_starts[command] = log.stat().st_size if log.exists() else 0
        self._processes[command] = await _spawn(log, *command.split(" "), *arguments)

    async def _until(self, condition: Callable[[], bool | Awaitable[bool]]) -> None:
        """Other processes can't wake us: ask again and again. Raises PartFailed."""
        while True:
            answer = condition()
            if isinstance(answer, Awaitable):
                answer = await answer
            if answer:
                return
            self._check()
            await asyncio.sleep(LOOK_INTERVAL)

    def _check(self) -> None:
        for command, process in self._processes.items():
            if process.returncode is not None:
                log = self._log_of(command)
                why = find_error(log, self._log_starts[command])
                raise PartFailed(f"`dray {command}` ended with {process.returncode} (see {log}): {why}")

    async def wait_failed(self) -> None:
        """Waits for ever, or raises PartFailed."""
        await asyncio.wait(
            [asyncio.ensure_future(process.wait()) for process in self._processes.values()],
            return_when=asyncio.FIRST_COMPLETED,
        )
        self._check()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        order = self._stop_order
        nodes = [command for command in order if command.startswith("node")]
        await asyncio.gather(*(self._end(command) for command in nodes))
        for command in order[len(nodes) :]:
            await self._end(command)
        self._processes.clear()
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _end(self, command: str) -> None:
        process = self._processes[command]
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _spawn(log: Path, *arguments: str) -> asyncio.subprocess.Process:
    """In a session of its own, so that Ctrl-C reaches us alone and we stop the others in order."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dray", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
