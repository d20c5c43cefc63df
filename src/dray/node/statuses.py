"""The status that a pod on this node shows: built from what its containers did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dray.api.meta import Json, Time

ContainerState = Literal["waiting", "running", "terminated"]


@dataclass(slots=True)
class ContainerRecord:
    """What is known of one container of a pod."""

    name: str
    image: str
    state: ContainerState = "waiting"
    reason: str = ""
    message: str = ""
    id: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None
    exit_code: int = 0
    restarts: int = 0
    is_init: bool = False

    def status(self) -> Json:
        details: Json = {}
        match self.state:
            case "waiting":
                details["reason"] = self.reason or "ContainerCreating"
                if self.message:
                    details["message"] = self.message
            case "running":
                details["startedAt"] = self.started_at
            case "terminated":
                details = {
                    "exitCode": self.exit_code,
                    "reason": self.reason or ("Completed" if self.exit_code == 0 else "Error"),
                    "startedAt": self.started_at,
                    "finishedAt": self.finished_at,
                    "containerID": self.id,
                }
                if self.message:
                    details["message"] = self.message
        result: Json = {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "ready": self.state == "running" or (self.is_init and self.state == "terminated" and self.exit_code == 0),
            "started": self.state == "running",
            "restartCount": self.restarts,
            "state": {self.state: details},
        }
        if self.id:
            result["containerID"] = self.id
        return result


def pod_status(
    records: list[ContainerRecord], *, phase: str, started_at: Time, now: Time, reason: str = "", message: str = ""
) -> Json:
    """A merge patch for `status`. Conditions that others own (PodScheduled) are added by the caller."""
    containers = [record for record in records if not record.is_init]
    init = [record for record in records if record.is_init]
    is_initialized = all(record.state == "terminated" and record.exit_code == 0 for record in init)
    is_ready = phase == "Running" and all(record.state == "running" for record in containers)
    done = phase in ("Succeeded", "Failed")
    status: Json = {
        "phase": phase,
        "startTime": started_at,
        "conditions": [
            _condition("Initialized", is_initialized, now, "PodCompleted" if done else ""),
            _condition("Ready", is_ready, now, "PodCompleted" if done else "" if is_ready else "ContainersNotReady"),
            _condition(
                "ContainersReady", is_ready, now, "PodCompleted" if done else "" if is_ready else "ContainersNotReady"
            ),
        ],
        "containerStatuses": [record.status() for record in containers],
        "reason": reason or None,
        "message": message or None,
    }
    if init:
        status["initContainerStatuses"] = [record.status() for record in init]
    return status


def _condition(kind: str, holds: bool, now: Time, reason: str) -> Json:
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
