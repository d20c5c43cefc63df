"""What a pod that fits nowhere is told, and which events could help it."""

from __future__ import annotations

from dray.allocator.errors import ClassMissing
from dray.placement.planning import CANNOT_ALLOCATE, ELSEWHERE, TIMED_OUT, Rejection
from dray.scheduler.queue import Wake
from dray.scheduler.state import DEVICES, DYNAMIC_RESOURCES, NODES, ROOM, claim_wake

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
        if reason in (CANNOT_ALLOCATE, TIMED_OUT):
            wakes.add(DEVICES)
        elif reason.startswith("Insufficient") or reason == "Too many pods" or "free ports" in reason:
            wakes.add(ROOM)
        elif reason == ELSEWHERE:
            wakes |= {claim_wake(claim.metadata.key) for claim in rejection.blocked_by}
    return wakes


def find_plugins(rejection: Rejection) -> frozenset[str]:
    """Kubernetes' names of what the pod fails at, for metrics."""
    plugins = {_plugin(reason) for reason in rejection.reasons}
    if rejection.error is not None:
        plugins.add(DYNAMIC_RESOURCES)
    return frozenset(plugins)


def _plugin(reason: str) -> str:
    if reason in (CANNOT_ALLOCATE, TIMED_OUT, ELSEWHERE):
        return DYNAMIC_RESOURCES
    return next((plugin for words, plugin in _PLUGINS.items() if words in reason), "Other")


_PLUGINS = {
    "were unschedulable": "NodeUnschedulable",
    "untolerated taint": "TaintToleration",
    "node affinity/selector": "NodeAffinity",
    "free ports": "NodePorts",
    "Insufficient": "NodeResourcesFit",
    "Too many pods": "NodeResourcesFit",
}
