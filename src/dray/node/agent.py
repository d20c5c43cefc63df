"""The node agent: one per node. Finds drivers, follows the pods that were bound here, and gives each a worker."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from prometheus_client import CollectorRegistry

import dray
from dray.api.errors import StatusError
from dray.api.meta import Json
from dray.api.resources import PODS, RESOURCE_SLICES
from dray.node.cdi import CdiRegistry
from dray.node.checkpoint import Checkpoint
from dray.node.health import HealthBook
from dray.node.heartbeat import Heartbeat, NodeFacts
from dray.node.leftovers import Leftovers, end_all_containers
from dray.node.metrics import NodeMetrics
from dray.node.plugins import Plugin, PluginRegistry
from dray.node.podworker import NodeServices, PodWorker
from dray.node.preparation import CALL_TIMEOUT, Preparation
from dray.node.runtimes import Runtime
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.events import EventRecorder
from dray.runtime.informer import Handler, Informer
from dray.runtime.queue import WorkQueue

log = logging.getLogger(__name__)

WIPE_DELAY = 30.0
"""A driver that is gone for this long loses its slices: it may only be restarting."""
WORKER_RETRY = 1.0


class AlreadyRunning(Exception):
    """Another agent works in the same directory."""


@dataclass(frozen=True)
class NodeOptions:
    name: str
    root: Path
    """Everything the agent keeps is below: checkpoints, sockets, CDI files, pods."""
    labels: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=lambda: {"cpu": "16", "memory": "64Gi", "pods": "110"})
    address: str = "127.0.0.1"
    log_port: int = 0
    """Where the API server fetches logs; 0 if it doesn't need to."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    wipe_delay: float = WIPE_DELAY
    call_timeout: float = CALL_TIMEOUT
    """Seconds that a driver may take for one call."""
    durable: bool = True
    """Whether checkpoints survive a crash of the machine, too; simulated nodes can do without."""

    @property
    def registry(self) -> Path:
        return self.root / "plugins_registry"

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"

    @property
    def pods(self) -> Path:
        return self.root / "pods"


class PodFeed(Protocol):
    """The pods of one node, as an informer gives them."""

    def __iter__(self) -> Iterator[Json]: ...

    @property
    def has_synced(self) -> bool: ...

    async def wait_synced(self) -> None: ...

    def add_handler(self, handler: Handler[Json]) -> None: ...

    async def run(self) -> None: ...


class NodeAgent:
    """`pods` takes the place of a watch of its own."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        runtime: Runtime,
        options: NodeOptions,
        *,
        pods: PodFeed | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.registry = registry or CollectorRegistry()
        self._client = client
        self._clock = clock
        self._options = options
        for directory in (options.registry, options.cdi, options.pods):
            directory.mkdir(parents=True, exist_ok=True)
        self._recorder = EventRecorder(client, clock, "kubelet")
        self._health = HealthBook(clock, lambda driver: self._nudge())
        self.plugins = PluginRegistry(options.registry, clock, self._driver_changed, self._driver_joined)
        self._wipes: WorkQueue[str] = WorkQueue("slice wipes", clock)
        checkpoint = Checkpoint(options.root / "claims", durable=options.durable)
        preparation = Preparation(
            client, self.plugins, checkpoint, NodeMetrics(self.registry), call_timeout=options.call_timeout
        )
        self._leftovers = Leftovers(clock, options.pods, checkpoint, preparation)
        self._services = NodeServices(
            client=client,
            clock=clock,
            preparation=preparation,
            runtime=runtime,
            cdi=CdiRegistry(options.cdi),
            health=self._health,
            recorder=self._recorder,
            pods_directory=options.pods,
            host_ip=options.address,
        )
        self._heartbeat = Heartbeat(
            client,
            clock,
            NodeFacts(
                name=options.name,
                labels=options.labels,
                annotations=options.annotations,
                capacity=options.capacity,
                version=f"dray-{dray.__version__}",
                address=options.address,
                log_port=options.log_port,
                runtime=runtime.name,
            ),
        )
        self._pods: PodFeed = pods or Informer(
            client, PODS, field_selector=f"spec.nodeName={options.name}", clock=clock
        )
        self._workers: dict[str, PodWorker] = {}
        self._group: asyncio.TaskGroup | None = None
        self._pods.add_handler(self._pod_changed)

    @property
    def is_ready(self) -> bool:
        return self._pods.has_synced

    @property
    def is_idle(self) -> bool:
        """No pod is on this node; for those who wait until all is gone."""
        return not self._workers

    async def run(self) -> None:
        """Until cancelled. Containers go on; the next agent finds them. Raises AlreadyRunning."""
        with _only_one(self._options.root):
            await self._until_done("registration", self._heartbeat.register)
            await self._until_done("wiping of slices", self._wipe_all)
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._wipes.work(self._wipe))
                group.create_task(self._recorder.run())
                group.create_task(self._keep_alive())
                group.create_task(self.plugins.run())
                group.create_task(self._pods.run())
                await self._pods.wait_synced()
                for uid in self._leftovers.find(pod["metadata"]["uid"] for pod in self._pods):
                    group.create_task(self._leftovers.clear(uid))

    async def end_containers(self) -> None:
        """End what runs here, after `run` has ended."""
        await end_all_containers(self._options.pods)

    async def _until_done(self, what: str, action: Callable[[], Awaitable[object]]) -> None:
        """Nothing can start before this is done: the API server may be on its way up."""
        delay = 0.2
        while True:
            try:
                await action()
                return
            except (StatusError, OSError) as error:
                log.warning("node %s: %s: %s; again in %.1fs", self._options.name, what, error, delay)
            await self._clock.sleep(delay)
            delay = min(delay * 2, 10.0)

    async def _keep_alive(self) -> None:
        while True:
            try:
                await self._heartbeat.run()
            except (StatusError, OSError) as error:
                log.warning("heartbeat of node %s: %s", self._options.name, error)
            await self._clock.sleep(1.0)

    # Pods

    def _pod_changed(self, old: Json | None, new: Json | None) -> None:
        if old is not None and (new is None or new["metadata"]["uid"] != old["metadata"]["uid"]):
            self._tell(old["metadata"]["uid"], None)
        if new is None:
            return
        uid = new["metadata"]["uid"]
        if uid not in self._workers:
            assert self._group is not None  # pods are followed only while the agent runs
            self._workers[uid] = PodWorker(self._services, new)
            self._group.create_task(self._run_worker(uid))
        self._tell(uid, new)

    async def _run_worker(self, uid: str) -> None:
        """A worker that fails must not take the node with it: it starts anew and finds what there is."""
        try:
            while True:
                worker = self._workers[uid]
                try:
                    await worker.run()
                    return
                except Exception:
                    log.exception("pod %s: its worker failed; it starts anew in %.0fs", uid, WORKER_RETRY)
                await self._clock.sleep(WORKER_RETRY)
                self._workers[uid] = worker.renew()
        finally:
            del self._workers[uid]

    def _tell(self, uid: str, pod: Json | None) -> None:
        if (worker := self._workers.get(uid)) is not None:
            worker.update(pod)

    def _nudge(self) -> None:
        for worker in self._workers.values():
            worker.nudge()

    # Drivers

    def _driver_joined(self, plugin: Plugin) -> None:
        self._health.follow(plugin)

    def _driver_changed(self, driver: str, is_up: bool) -> None:
        if is_up:
            self._nudge()
        else:
            self._wipes.add_after(driver, self._options.wipe_delay)

    async def _wipe_all(self) -> None:
        """Before the first driver registers: whoever comes back publishes anew, the others must not be counted on."""
        await self._client.delete_collection(RESOURCE_SLICES, field_selector=f"spec.nodeName={self._options.name}")

    async def _wipe(self, driver: str) -> float | None:
        """Devices of a driver that isn't there can't be prepared: don't let them be given out."""
        if driver not in self.plugins.up:
            log.info("driver %s is gone: deleting its slices of node %s", driver, self._options.name)
            selector = f"spec.nodeName={self._options.name},spec.driver={driver}"
            await self._client.delete_collection(RESOURCE_SLICES, field_selector=selector)
        return None


@contextmanager
def _only_one(root: Path) -> Iterator[None]:
    """The kernel lets go of the lock when the process ends, however it ends."""
    descriptor = os.open(root / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(f"another node agent works in {root}; end it, or choose another directory") from None
        yield
    finally:
        os.close(descriptor)
