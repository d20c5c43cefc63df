"""Takes one pod through its life on this node.

    admit ─▶ prepare claims ─▶ fill volumes ─▶ init containers ─▶ containers ─▶ release claims ─▶ (deleted)

Every step may be cut short by the pod's deletion; then what was started is stopped and what was prepared is given
back, in this order, before the pod may go. A claim that can't be released keeps the pod: its device is still in use.

A worker may be started anew at any point, by a new agent: what is prepared and what runs is found, not done again.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from dray.api.errors import StatusError
from dray.api.meta import Json
from dray.api.pods import ClaimNotCreated, Pod, UnknownClaimSource, claim_name, is_terminal, view_pod
from dray.api.times import format_time
from dray.node.cdi import CdiRegistry
from dray.node.checkpoint import HeldClaim
from dray.node.containers import ContainerLoop, Stopping, pause
from dray.node.descriptions import EXTENDED, describe_container, identify_container
from dray.node.health import HealthBook
from dray.node.preparation import ClaimUse, DriverFailed, NotUsable, Preparation
from dray.node.probes import find_unsupported, read_probes
from dray.node.reporting import PodReporter
from dray.node.runtimes import ContainerSpec, Runtime
from dray.node.sources import ConfigUnusable, fetch_sources, iter_container_sources, iter_volume_sources
from dray.node.statuses import ContainerKind, ContainerRecord
from dray.node.volumes import fill_volumes
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.events import EventRecorder, ObjectReference

log = logging.getLogger(__name__)

FIRST_RETRY = 0.5
LONGEST_RETRY = 30.0
DEFAULT_GRACE = 30.0
WARNINGS = ("Failed", "Unhealthy")


@dataclass(frozen=True)
class NodeServices:
    """What every pod worker of a node shares."""

    client: Client
    clock: Clock
    preparation: Preparation
    runtime: Runtime
    cdi: CdiRegistry
    health: HealthBook
    recorder: EventRecorder
    pods_directory: Path
    host_ip: str = ""


class PodWorker:
    def __init__(self, services: NodeServices, obj: Json) -> None:
        self._services = services
        self._obj = obj
        self._pod: Pod = view_pod(obj)
        self.uid = self._pod.metadata.uid
        self._stopping = Stopping(services.clock)
        self._nudged = asyncio.Event()
        self._claims: dict[str, HeldClaim] = {}
        self._records = _records(obj)
        self._reporter = PodReporter(
            services.client, services.clock, obj, self._records.values(), services.host_ip, gone=self._stopping.set
        )

    def renew(self) -> PodWorker:
        """A worker for the same pod that starts from the beginning."""
        worker = PodWorker(self._services, self._obj)
        worker.update(self._obj)
        if self._stopping.is_set:
            worker.update(None)
        return worker

    def update(self, obj: Json | None) -> None:
        """The pod changed; None if it is gone from the API."""
        if obj is not None:
            self._obj = obj
            self._pod = view_pod(obj)
        if obj is None or self._pod.metadata.deletion_timestamp is not None:
            self._stopping.set()

    def nudge(self) -> None:
        """Something that it may wait for has happened: a driver is up, or knows more about its devices."""
        self._nudged.set()
        self._show_health()

    @property
    def _directory(self) -> Path:
        return self._services.pods_directory / self.uid

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            reporting = group.create_task(self._reporter.run())
            await self._live()
            reporting.cancel()

    async def _live(self) -> None:
        is_done = is_terminal(self._pod)
        phase = "Failed"  # unless it gets to its end: it was stopped before that, or before it began
        if not is_done and await self._prepare_until_done() and await self._fill_volumes_until_done():
            phase = await self._run_containers()
        await self._stop_leftovers()
        await self._until_done("release of claims", lambda: self._services.preparation.release(self.uid))
        if not is_done:
            await self._reporter.finish(phase)
        await self._stopping.wait()
        await self._until_done("deletion", self._reporter.remove)
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def _is_deleted(self) -> bool:
        return self._stopping.is_set or self._pod.metadata.deletion_timestamp is not None

    # Claims and volumes

    async def _prepare_until_done(self) -> bool:
        async def prepare() -> None:
            self._claims = await self._services.preparation.prepare(self.uid, list(self._uses()))

        return await self._try_until_done(
            prepare,
            lambda error: self._warn("FailedPrepareDynamicResources", f"Failed to prepare dynamic resources: {error}"),
        )

    async def _fill_volumes_until_done(self) -> bool:
        volumes = self._obj["spec"].get("volumes") or ()
        wanted = [source for volume in volumes for source in iter_volume_sources(volume)]

        async def fill() -> None:
            sources = await fetch_sources(self._services.client, self._pod.metadata.namespace, wanted)
            fill_volumes(self._obj, sources, self._directory, self._services.host_ip)

        return not volumes or await self._try_until_done(fill, lambda error: self._warn("FailedMount", str(error)))

    async def _try_until_done(self, action: Callable[[], Awaitable[None]], tell: Callable[[Exception], None]) -> bool:
        """False if the pod was stopped first."""
        delay = FIRST_RETRY
        while not self._is_deleted:
            self._nudged.clear()
            try:
                await action()
                return True
            except (
                *(NotUsable, DriverFailed, ClaimNotCreated, UnknownClaimSource),
                *(ConfigUnusable, StatusError, OSError),
            ) as error:
                tell(error)
                self._reporter.changed()
            await self._stopping.pause(delay, self._nudged)
            delay = min(delay * 2, LONGEST_RETRY)
        return False

    def _uses(self) -> list[ClaimUse]:
        pod = self._pod
        uses: list[ClaimUse] = []
        for entry in pod.spec.resource_claims:
            name, must_be_owned = claim_name(pod, entry)
            if name is not None:
                uses.append(ClaimUse(entry.name, pod.metadata.namespace, name, must_be_owned))
        extended = pod.status.extended_resource_claim_status
        if extended is not None:
            uses.append(ClaimUse(EXTENDED, pod.metadata.namespace, extended.resource_claim_name, True))
        return uses

    # Containers

    async def _run_containers(self) -> str:
        """Until the pod is done or to be stopped; the phase that it ends in."""
        end_sidecars = Stopping(self._services.clock)
        async with asyncio.TaskGroup() as group:
            for container in self._obj["spec"].get("initContainers") or ():
                code = 0
                if container.get("restartPolicy") == "Always":
                    sidecar = self._loop(container, "Always", end_sidecars)
                    group.create_task(sidecar.run())
                    await self._stopping.or_wait(sidecar.has_started)
                else:
                    policy = "Never" if self._pod.spec.restart_policy == "Never" else "OnFailure"
                    code = await self._loop(container, policy, self._stopping).run()
                if code or self._stopping.is_set:
                    end_sidecars.set()
                    return "Failed"
            self._reporter.phase = "Running"
            policy = self._pod.spec.restart_policy or "Always"
            loops = [self._loop(container, policy, self._stopping) for container in self._obj["spec"]["containers"]]
            codes = [await task for task in [group.create_task(loop.run()) for loop in loops]]
            end_sidecars.set()
        return "Failed" if any(codes) else "Succeeded"

    def _loop(self, container: Json, policy: str, stopping: Stopping) -> ContainerLoop:
        record = self._records[container["name"]]
        record.resources = self._services.health.container_status(container, self._claims)
        if left_out := ", ".join(find_unsupported(container)):
            self._warn("Unsupported", f"Container {container['name']}: this node agent leaves out: {left_out}")
        return ContainerLoop(
            runtime=self._services.runtime,
            clock=self._services.clock,
            record=record,
            describe=lambda attempt: self._describe(container, attempt),
            identify=lambda: identify_container(container, self._obj, self._directory),
            restart_policy=policy,
            stopping=stopping,
            grace=lambda: self._grace,
            changed=self._reporter.changed,
            tell=self._tell,
            probes=read_probes(container),
        )

    async def _describe(self, container: Json, attempt: int) -> ContainerSpec:
        services = self._services
        wanted = iter_container_sources(container)
        return describe_container(
            container,
            self._obj,
            self._claims,
            await fetch_sources(services.client, self._pod.metadata.namespace, wanted),
            cdi=services.cdi,
            pod_directory=self._directory,
            address=services.host_ip,
            attempt=attempt,
        )

    def _tell(self, reason: str, message: str) -> None:
        recorder = self._services.recorder
        (recorder.warning if reason in WARNINGS else recorder.normal)(self._about, reason, message)

    async def _stop_leftovers(self) -> None:
        """Containers of a pod that was to stop while no agent was there."""
        containers = [*(self._obj["spec"].get("initContainers") or ()), *self._obj["spec"]["containers"]]
        await asyncio.gather(*(self._stop_leftover(container) for container in containers))

    async def _stop_leftover(self, container: Json) -> None:
        record = self._records[container["name"]]
        found = self._services.runtime.find(identify_container(container, self._obj, self._directory))
        if found is not None and record.state != "terminated":
            await found.stop(self._grace)
            record.run(found.id, found.started_at)
            record.end(await found.wait(), format_time(self._services.clock.now()))

    def _show_health(self) -> None:
        for container in self._obj["spec"]["containers"]:
            record = self._records[container["name"]]
            resources = self._services.health.container_status(container, self._claims)
            if resources != record.resources:
                record.resources = resources
                self._reporter.changed()

    @property
    def _grace(self) -> float:
        metadata, spec = self._pod.metadata, self._pod.spec
        for seconds in (metadata.deletion_grace_period_seconds, spec.termination_grace_period_seconds):
            if seconds is not None:
                return float(seconds)
        return DEFAULT_GRACE

    # The API

    @property
    def _about(self) -> ObjectReference:
        metadata = self._pod.metadata
        return ObjectReference("v1", "Pod", metadata.namespace, metadata.name, metadata.uid)

    def _warn(self, reason: str, message: str) -> None:
        self._services.recorder.warning(self._about, reason, message)

    async def _until_done(self, what: str, action: Callable[[], Awaitable[None]]) -> None:
        delay = FIRST_RETRY
        while True:
            self._nudged.clear()
            try:
                await action()
                return
            except (DriverFailed, StatusError, OSError) as error:
                log.warning("pod %s: %s: %s; again in %.1fs", self._pod.metadata.key, what, error, delay)
                if isinstance(error, DriverFailed):
                    self._warn("FailedUnprepareDynamicResources", f"Failed to unprepare dynamic resources: {error}")
            await pause(self._services.clock, delay, self._nudged)
            delay = min(delay * 2, LONGEST_RETRY)


def _records(obj: Json) -> dict[str, ContainerRecord]:
    spec, status = obj["spec"], obj.get("status") or {}
    known = {
        item["name"]: item for part in ("initContainerStatuses", "containerStatuses") for item in status.get(part) or ()
    }
    records: dict[str, ContainerRecord] = {}
    for container in spec.get("initContainers") or ():
        kind: ContainerKind = "sidecar" if container.get("restartPolicy") == "Always" else "init"
        records[container["name"]] = ContainerRecord.known(container, kind, known.get(container["name"]))
    for container in spec["containers"]:
        records[container["name"]] = ContainerRecord.known(container, "main", known.get(container["name"]))
    return records
