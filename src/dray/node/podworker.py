"""Takes one pod through its life on this node.

    admit ─▶ prepare claims ─▶ init containers ─▶ containers ─▶ release claims ─▶ (deleted)

Every step may be cut short by the pod's deletion; then what was started is stopped and what was prepared is given
back, in this order, before the pod may go. A claim that can't be released keeps the pod: its device is still in use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from dray.api.cdi import ContainerEdits
from dray.api.errors import NotFound, StatusError
from dray.api.meta import Json
from dray.api.pods import ClaimNotCreated, Pod, UnknownClaimSource, claim_name, is_terminal, view_pod
from dray.api.resources import PODS
from dray.api.times import format_time
from dray.node.cdi import CdiDeviceMissing, CdiRegistry
from dray.node.checkpoint import HeldClaim
from dray.node.preparation import DriverFailed, NotUsable, Preparation
from dray.node.runtimes import ContainerSpec, Running, Runtime, StartFailed
from dray.node.statuses import ContainerRecord, merge_conditions, pod_status
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.events import EventRecorder, ObjectReference

log = logging.getLogger(__name__)

FIRST_RETRY = 0.5
LONGEST_RETRY = 30.0
FIRST_RESTART = 1.0
LONGEST_RESTART = 300.0
DEFAULT_GRACE = 30.0


@dataclass(frozen=True)
class NodeServices:
    """What every pod worker of a node shares."""

    client: Client
    clock: Clock
    preparation: Preparation
    runtime: Runtime
    cdi: CdiRegistry
    recorder: EventRecorder
    pods_directory: Path


class PodWorker:
    def __init__(self, services: NodeServices, obj: Json) -> None:
        self._services = services
        self._obj = obj
        self._pod: Pod = view_pod(obj)
        self._stop = asyncio.Event()
        self._started_at = format_time(services.clock.now())
        self._running: dict[str, Running] = {}
        self._records = _records(obj)
        self.uid = self._pod.metadata.uid

    def update(self, obj: Json | None) -> None:
        """The pod changed; None if it is gone from the API."""
        if obj is not None:
            self._obj = obj
            self._pod = view_pod(obj)
        if obj is None or self._pod.metadata.deletion_timestamp is not None:
            self._stop.set()

    @property
    def _about(self) -> ObjectReference:
        metadata = self._pod.metadata
        return ObjectReference("v1", "Pod", metadata.namespace, metadata.name, metadata.uid)

    def log_path(self, container: str) -> Path:
        return self._directory / container / "log"

    @property
    def _directory(self) -> Path:
        return self._services.pods_directory / self.uid

    async def run(self) -> None:
        phase = self._pod.status.phase
        if not is_terminal(self._pod) and self._pod.metadata.deletion_timestamp is None:
            claims = await self._prepare_until_done()
            if claims is not None:
                phase = await self._run_containers(claims)
            elif not self._stop.is_set():
                phase = "Failed"
        await self._stop_containers()
        await self._until_done("release of claims", lambda: self._services.preparation.release(self.uid))
        if phase in ("Succeeded", "Failed"):
            await self._report(phase)
        await self._stop.wait()
        await self._remove()

    # Claims

    async def _prepare_until_done(self) -> dict[str, HeldClaim] | None:
        """Claims by their name in the pod; None if the pod ended first."""
        delay = FIRST_RETRY
        while not self._stop.is_set():
            try:
                return await self._prepare()
            except (NotUsable, DriverFailed, ClaimNotCreated, UnknownClaimSource, StatusError, OSError) as error:
                self._services.recorder.warning(
                    self._about, "FailedPrepareDynamicResources", f"Failed to prepare dynamic resources: {error}"
                )
            await self._pause(delay)
            delay = min(delay * 2, LONGEST_RETRY)
        return None

    async def _prepare(self) -> dict[str, HeldClaim]:
        pod = self._pod
        entries: list[tuple[str, str]] = []
        for entry in pod.spec.resource_claims:
            name = claim_name(pod, entry).name
            if name is not None:
                entries.append((entry.name, name))
        if not entries:
            return {}
        namespace = pod.metadata.namespace
        held = await self._services.preparation.prepare(self.uid, [(namespace, name) for _, name in entries])
        return {entry: claim for (entry, _), claim in zip(entries, held, strict=True)}

    # Containers

    async def _run_containers(self, claims: dict[str, HeldClaim]) -> str:
        spec = self._obj["spec"]
        for container in spec.get("initContainers") or ():
            if not await self._run_init(container, claims):
                return "Failed"
            if self._stop.is_set():
                return "Pending"
        loops = [self._container_loop(container, claims) for container in spec["containers"]]
        results = await asyncio.gather(*loops)
        if self._stop.is_set():
            return "Failed" if any(results) else "Succeeded"
        return "Succeeded" if not any(results) else "Failed"

    async def _run_init(self, container: Json, claims: dict[str, HeldClaim]) -> bool:
        """True if it ended well; it is repeated unless the pod may not restart."""
        while not self._stop.is_set():
            code = await self._run_once(container, claims)
            if code == 0:
                return True
            if self._pod.spec.restart_policy == "Never":
                return False
            await self._pause(FIRST_RESTART)
        return True

    async def _container_loop(self, container: Json, claims: dict[str, HeldClaim]) -> int:
        """Run and restart one container as the restart policy says; the last exit code."""
        delay = FIRST_RESTART
        while True:
            code = await self._run_once(container, claims)
            policy = self._pod.spec.restart_policy or "Always"
            if self._stop.is_set() or policy == "Never" or (policy == "OnFailure" and code == 0):
                return code
            self._records[container["name"]].restarts += 1
            await self._pause(delay)
            if self._stop.is_set():
                return code
            delay = min(delay * 2, LONGEST_RESTART)

    async def _run_once(self, container: Json, claims: dict[str, HeldClaim]) -> int:
        record = self._records[container["name"]]
        try:
            running = await self._services.runtime.start(self._describe(container, claims))
        except (StartFailed, CdiDeviceMissing) as error:
            record.state, record.reason, record.message = "waiting", "CreateContainerError", str(error)
            record.exit_code = 128
            self._services.recorder.warning(self._about, "Failed", f"Error: {error}")
            await self._report("Pending")
            return 128
        record.state, record.reason, record.message = "running", "", ""
        record.id, record.started_at = running.id, self._now()
        self._running[record.name] = running
        self._services.recorder.normal(self._about, "Started", f"Started container {record.name}")
        await self._report("Running" if not record.is_init else "Pending")
        ended = asyncio.ensure_future(running.wait())
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait((ended, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not ended.done():
            await running.stop(self._grace)
        record.exit_code = await ended
        record.state, record.finished_at = "terminated", self._now()
        del self._running[record.name]
        return record.exit_code

    def _describe(self, container: Json, claims: dict[str, HeldClaim]) -> ContainerSpec:
        names: list[str] = []
        for use in (container.get("resources") or {}).get("claims") or ():
            held = claims.get(use["name"])
            if held is not None:
                names += held.cdi_device_ids(use.get("request", ""))
        metadata = self._pod.metadata
        return ContainerSpec(
            pod_name=metadata.name,
            pod_namespace=metadata.namespace,
            pod_uid=metadata.uid,
            name=container["name"],
            directory=self._directory / container["name"],
            log_path=self.log_path(container["name"]),
            command=(*(container.get("command") or ()), *(container.get("args") or ())),
            env={item["name"]: item["value"] for item in container.get("env") or () if "value" in item},
            working_directory=container.get("workingDir", ""),
            edits=self._services.cdi.resolve(names) if names else ContainerEdits(),
            annotations=metadata.annotations,
        )

    @property
    def _grace(self) -> float:
        metadata, spec = self._pod.metadata, self._pod.spec
        for seconds in (metadata.deletion_grace_period_seconds, spec.termination_grace_period_seconds):
            if seconds is not None:
                return float(seconds)
        return DEFAULT_GRACE

    async def _stop_containers(self) -> None:
        await asyncio.gather(*(running.stop(self._grace) for running in list(self._running.values())))

    # The API

    async def _report(self, phase: str) -> None:
        status = pod_status(list(self._records.values()), phase=phase, started_at=self._started_at, now=self._now())
        known = (self._obj.get("status") or {}).get("conditions") or []
        status["conditions"] = merge_conditions(known, status["conditions"])
        await self._until_done("status update", lambda: self._patch_status(status))

    async def _patch_status(self, status: Json) -> None:
        metadata = self._pod.metadata
        patch: Json = {"metadata": {"uid": metadata.uid}, "status": status}
        try:
            self._obj = await self._services.client.patch(
                PODS, metadata.name, patch, metadata.namespace, subresource="status"
            )
        except NotFound:
            self._stop.set()

    async def _remove(self) -> None:
        """The pod was deleted and nothing of it is left here: let it go."""
        metadata = self._pod.metadata

        async def delete() -> None:
            try:
                await self._services.client.delete(
                    PODS, metadata.name, metadata.namespace, uid=metadata.uid, grace_period_seconds=0
                )
            except NotFound:
                return

        await self._until_done("deletion", delete)

    async def _until_done(self, what: str, action: Callable[[], Awaitable[None]]) -> None:
        delay = FIRST_RETRY
        while True:
            try:
                await action()
                return
            except (DriverFailed, StatusError, OSError) as error:
                log.warning("pod %s: %s: %s; again in %.1fs", self._pod.metadata.key, what, error, delay)
                if isinstance(error, DriverFailed):
                    self._services.recorder.warning(
                        self._about, "FailedUnprepareDynamicResources", f"Failed to unprepare: {error}"
                    )
            await self._services.clock.sleep(delay)
            delay = min(delay * 2, LONGEST_RETRY)

    async def _pause(self, seconds: float) -> None:
        """Sleep, unless the pod is to stop."""
        sleeping = asyncio.ensure_future(self._services.clock.sleep(seconds))
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((sleeping, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            stopping.cancel()

    def _now(self) -> str:
        return format_time(self._services.clock.now())


def _records(obj: Json) -> dict[str, ContainerRecord]:
    spec = obj["spec"]
    records = {
        container["name"]: ContainerRecord(container["name"], container.get("image", ""), is_init=True)
        for container in spec.get("initContainers") or ()
    }
    for container in spec["containers"]:
        records[container["name"]] = ContainerRecord(container["name"], container.get("image", ""))
    return records
