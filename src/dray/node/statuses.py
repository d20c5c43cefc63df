"""The status that a pod on this node shows: built from what its containers did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from dray.api.meta import Json, Time

ContainerState = Literal["waiting", "running", "terminated"]
ContainerKind = Literal["main", "init", "sidecar"]

NOT_READY = "ContainersNotReady"
COMPLETED = "PodCompleted"


@dataclass(slots=True)
class ContainerRecord:
    """What is known of one container of a pod."""

    name: str
    image: str
    kind: ContainerKind = "main"
    state: ContainerState = "waiting"
    reason: str = ""
    message: str = ""
    id: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None
    exit_code: int = 0
    restarts: int = 0
    is_started: bool = True
    """While it runs: whether its startup probe, if it has one, has passed."""
    is_ready: bool = True
    """While it runs: what its readiness probe says, if it has one."""
    last_end: Json | None = None
    resources: list[Json] = field(default_factory=list)
    """Health of its devices, as `allocatedResourcesStatus` shows it."""

    @classmethod
    def known(cls, container: Json, kind: ContainerKind, status: Json | None) -> ContainerRecord:
        """As the pod's status has it: an agent before this one may have written that."""
        record = cls(container["name"], container.get("image", ""), kind)
        if status is None:
            return record
        record.restarts = status.get("restartCount") or 0
        record.last_end = (status.get("lastState") or {}).get("terminated")
        record.id = status.get("containerID") or ""
        match status.get("state") or {}:
            case {"terminated": dict(end)}:
                record.state = "terminated"
                record.exit_code, record.reason = end.get("exitCode") or 0, end.get("reason") or ""
                record.message = end.get("message") or ""
                record.started_at, record.finished_at = end.get("startedAt"), end.get("finishedAt")
            case {"running": dict(running)}:
                record.state, record.started_at = "running", running.get("startedAt")
                record.is_started, record.is_ready = bool(status.get("started")), bool(status.get("ready"))
        return record

    def wait_for(self, reason: str, message: str = "") -> None:
        if self.state == "terminated":
            self.last_end = self._end()
        self.state, self.reason, self.message = "waiting", reason, message

    def run(self, container_id: str, started_at: Time) -> None:
        self.state, self.reason, self.message = "running", "", ""
        self.id, self.started_at = container_id, started_at

    def end(self, exit_code: int, now: Time, reason: str = "", message: str = "") -> None:
        self.state, self.exit_code, self.finished_at = "terminated", exit_code, now
        self.reason, self.message = reason, message

    @property
    def has_succeeded(self) -> bool:
        return self.state == "terminated" and self.exit_code == 0

    @property
    def has_never_run(self) -> bool:
        return self.state == "waiting" and self.last_end is None

    @property
    def runs_ready(self) -> bool:
        return self.state == "running" and self.is_started and self.is_ready

    def status(self) -> Json:
        result: Json = {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "ready": self.runs_ready or (self.kind == "init" and self.has_succeeded),
            "started": self.state == "running" and self.is_started,
            "restartCount": self.restarts,
            "state": {self.state: self._details()},
            "lastState": {"terminated": self.last_end} if self.last_end else {},
        }
        if self.id:
            result["containerID"] = self.id
        if self.resources:
            result["allocatedResourcesStatus"] = self.resources
        return result

    def _details(self) -> Json:
        match self.state:
            case "waiting":
                details: Json = {"reason": self.reason or "ContainerCreating"}
                return {**details, "message": self.message} if self.message else details
            case "running":
                return {"startedAt": self.started_at}
            case "terminated":
                return self._end()

    def _end(self) -> Json:
        details: Json = {
            "exitCode": self.exit_code,
            "reason": self.reason or ("Completed" if self.exit_code == 0 else "Error"),
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
        }
        if self.id:
            details["containerID"] = self.id
        if self.message:
            details["message"] = self.message
        return details


def pod_status(
    records: Iterable[ContainerRecord],
    *,
    phase: str,
    started_at: Time,
    now: Time,
    host_ip: str = "",
    reason: str = "",
    message: str = "",
) -> Json:
    """A merge patch for `status`. Conditions that others own (PodScheduled) are added by the caller."""
    containers: list[ContainerRecord] = []
    init: list[ContainerRecord] = []
    for record in records:
        (containers if record.kind == "main" else init).append(record)
    done = phase in ("Succeeded", "Failed")
    is_initialized = phase != "Pending" or not init
    sidecars = (record for record in init if record.kind == "sidecar")
    is_ready = phase == "Running" and all(record.runs_ready for record in (*containers, *sidecars))
    not_ready = COMPLETED if done else "" if is_ready else NOT_READY
    is_waiting = phase == "Running" and any(record.has_never_run for record in containers)
    status: Json = {
        "phase": "Pending" if is_waiting else phase,
        "startTime": started_at,
        "conditions": [
            _condition("PodReadyToStartContainers", not done, now),
            _condition("Initialized", is_initialized, now, COMPLETED if done else "" if is_initialized else NOT_READY),
            _condition("Ready", is_ready, now, not_ready),
            _condition("ContainersReady", is_ready, now, not_ready),
        ],
        "containerStatuses": [record.status() for record in containers],
        "reason": reason or None,
        "message": message or None,
    }
    if init:
        status["initContainerStatuses"] = [record.status() for record in init]
    if host_ip:
        status |= {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}], "podIP": host_ip, "podIPs": [{"ip": host_ip}]}
    return status


def _condition(kind: str, holds: bool, now: Time, reason: str = "") -> Json:
    condition: Json = {"type": kind, "status": "True" if holds else "False", "lastTransitionTime": now}
    if reason:
        condition["reason"] = reason
    return condition


def merge_conditions(old: list[Json], new: list[Json]) -> list[Json]:
    """`new` over `old` by type; a condition that keeps its status keeps its transition time."""
    by_type = {condition["type"]: condition for condition in old}
    for condition in new:
        known = by_type.get(condition["type"])
        if known is not None and known.get("status") == condition["status"] and "lastTransitionTime" in known:
            condition = {**condition, "lastTransitionTime": known["lastTransitionTime"]}
        by_type[condition["type"]] = condition
    return list(by_type.values())
