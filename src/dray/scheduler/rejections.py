"""What a pod that fits nowhere is told, and which events could help it."""

from __future__ import annotations

from dray.allocator.errors import ClassMissing
from dray.placement.planning import CANNOT_ALLOCATE, ELSEWHERE, Rejection
from dray.scheduler.queue import Wake
from dray.scheduler.state import DEVICES, NODES, ROOM, claim_wake

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


def describe_rejection(rejection: Rejection) -> tuple[str, str]:
    """Reason and message of the PodScheduled condition, beginning with the words that Kubernetes uses."""
    match rejection.error:
        case None:
            return UNSCHEDULABLE, str(rejection)
        case ClassMissing() as error:
            problem = f"request {error.request}: device class {error.class_name} does not exist"
            return UNSCHEDULABLE, f"0/{rejection.nodes} nodes are available: {problem}."
        case error:
            return SCHEDULER_ERROR, f'running "DynamicResources" filter plugin: {error}'


def find_wakes(rejection: Rejection) -> set[Wake]:
    """The events after which another try makes sense."""
    wakes = {NODES}
    if rejection.error is not None:
        wakes.add(DEVICES)
    for reason in rejection.reasons:
        if reason == CANNOT_ALLOCATE:
            wakes.add(DEVICES)
        elif reason.startswith("Insufficient") or reason == "Too many pods" or "free ports" in reason:
            wakes.add(ROOM)
        elif reason == ELSEWHERE:
            wakes |= {claim_wake(claim.metadata.key) for claim in rejection.blocked_by}
    return wakes
