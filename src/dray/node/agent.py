"""The node agent: one per node. Finds drivers, follows the pods that were bound here, and gives each a worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry

import dray
from dray.api.errors import NotFound, StatusError
from dray.api.meta import Json, ObjectKey
from dray.api.resources import PODS, RESOURCE_SLICES
from dray.node.cdi import CdiRegistry
from dray.node.checkpoint import Checkpoint
from dray.node.heartbeat import Heartbeat
from dray.node.metrics import NodeMetrics
from dray.node.plugins import PluginRegistry
from dray.node.podworker import NodeServices, PodWorker
from dray.node.preparation import Preparation
from dray.node.runtimes import Runtime
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.events import EventRecorder
from dray.runtime.informer import Informer, key_of
from dray.runtime.queue import WorkQueue

log = logging.getLogger(__name__)

WIPE_DELAY = 30.0
"""A driver that is gone for this long loses its slices: it may only be restarting."""


@dataclass(frozen=True)
class NodeOptions:
    name: str
    root: Path
    """Everything the agent keeps is below: checkpoints, sockets, CDI files, pods."""
    labels: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=lambda: {"cpu": "16", "memory": "64Gi", "pods": "110"})
    wipe_delay: float = WIPE_DELAY

    @property
    def registry(self) -> Path:
        return self.root / "plugins_registry"

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"


class NodeAgent:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        runtime: Runtime,
        options: NodeOptions,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.registry = registry or CollectorRegistry()
        self._client = client
        self._clock = clock
        self._options = options
        for directory in (options.registry, options.cdi):
            directory.mkdir(parents=True, exist_ok=True)
        self._recorder = EventRecorder(client, clock, "kubelet")
        self.plugins = PluginRegistry(options.registry, clock, self._driver_changed)
        self._wipes: WorkQueue[str] = WorkQueue("slice wipes", clock)
        checkpoint = Checkpoint(options.root / "claims")
        preparation = Preparation(client, self.plugins, checkpoint, NodeMetrics(self.registry))
        self._checkpoint = checkpoint
        self._preparation = preparation
        self._services = NodeServices(
            client=client,
            clock=clock,
            preparation=preparation,
            runtime=runtime,
            cdi=CdiRegistry(options.cdi),
            recorder=self._recorder,
            pods_directory=options.root / "pods",
        )
        self._heartbeat = Heartbeat(
            client,
            clock,
            node_name=options.name,
            labels=options.labels,
            capacity=options.capacity,
            version=f"dray-{dray.__version__}",
        )
        self._pods: Informer[Json] = Informer(client, PODS, field_selector=f"spec.nodeName={options.name}", clock=clock)
        self._workers: dict[str, tuple[PodWorker, asyncio.Task[None]]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._pods.add_handler(self._pod_changed)

    @property
    def is_ready(self) -> bool:
        return self._pods.has_synced

    def log_path(self, pod_uid: str, container: str) -> Path:
        return self._options.root / "pods" / pod_uid / container / "log"

    async def run(self) -> None:
        await self._heartbeat.register()
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._recorder.run())
            group.create_task(self._keep_alive())
            group.create_task(self.plugins.run())
            group.create_task(self._wipes.work(self._wipe))
            group.create_task(self._pods.run())
            for driver in await self._drivers_with_slices():
                self._wipes.add_after(driver, self._options.wipe_delay)
            await self._pods.wait_synced()
            group.create_task(self._release_leftovers())

    async def _keep_alive(self) -> None:
        while True:
            try:
                await self._heartbeat.run()
            except (StatusError, OSError) as error:
                log.warning("heartbeat of node %s: %s", self._options.name, error)
            await self._clock.sleep(1.0)

    # Pods

    def _pod_changed(self, old: Json | None, new: Json | None) -> None:
        uid = (new or old or {})["metadata"]["uid"]
        if new is not None and uid not in self._workers:
            self._start(PodWorker(self._services, new))
        if old is not None and (new is None or new["metadata"]["uid"] != old["metadata"]["uid"]):
            self._tell(old["metadata"]["uid"], None)
        if new is not None:
            self._tell(uid, new)

    def _start(self, worker: PodWorker) -> None:
        assert self._group is not None  # pods are followed only while the agent runs
        task = self._group.create_task(self._run_worker(worker))
        self._workers[worker.uid] = (worker, task)

    async def _run_worker(self, worker: PodWorker) -> None:
        try:
            await worker.run()
        except Exception:
            log.exception("pod %s: the worker failed", worker.uid)
            raise
        finally:
            self._workers.pop(worker.uid, None)

    def _tell(self, uid: str, pod: Json | None) -> None:
        if (entry := self._workers.get(uid)) is not None:
            entry[0].update(pod)

    async def _release_leftovers(self) -> None:
        """Claims that a previous run of the agent prepared for pods that are gone meanwhile."""
        present = {pod["metadata"]["uid"] for pod in self._pods}
        leftovers = {uid for claim in self._checkpoint.claims for uid in claim.pods} - present
        for uid in sorted(leftovers):
            delay = 0.5
            while True:
                try:
                    await self._preparation.release(uid)
                    break
                except Exception as error:  # noqa: BLE001 - drivers may fail in any way; the claim must not be forgotten
                    log.warning("claims of the gone pod %s: %s; again in %.1fs", uid, error, delay)
                await self._clock.sleep(delay)
                delay = min(delay * 2, 30.0)

    # Slices of drivers that are gone

    def _driver_changed(self, driver: str, is_registered: bool) -> None:
        if not is_registered:
            self._wipes.add_after(driver, self._options.wipe_delay)

    async def _drivers_with_slices(self) -> set[str]:
        slices = await self._client.list(RESOURCE_SLICES, field_selector=f"spec.nodeName={self._options.name}")
        return {item["spec"]["driver"] for item in slices.get("items") or ()}

    async def _wipe(self, driver: str) -> float | None:
        """Devices of a driver that isn't there can't be prepared: don't let them be given out."""
        if driver in self.plugins.drivers:
            return None
        selector = f"spec.nodeName={self._options.name},spec.driver={driver}"
        slices = await self._client.list(RESOURCE_SLICES, field_selector=selector)
        for item in slices.get("items") or ():
            key: ObjectKey = key_of(item)
            try:
                await self._client.delete(RESOURCE_SLICES, key.name, uid=item["metadata"]["uid"])
            except NotFound:
                continue
        return None
