"""Tables of the core kinds: pods, nodes, events and the others that a DRA cluster shows."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from dray.api.meta import Json
from dray.api.tables import AGE, NAME, Cells, Column, TableKind, age_of, at, list_at, name_of, number_at, text_at
from dray.api.times import format_age, human_duration, parse_time

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def _wide(name: str, description: str) -> Column:
    return Column(name, description, priority=1)


def _or_none(text: str) -> str:
    return text or "<none>"


# Pods


class _PodSummary:
    """What a pod's containers add up to: the status in one word, how many are ready, how often they restarted."""

    def __init__(self, pod: Json) -> None:
        self.reason = _pod_reason(pod)
        self.ready = 0
        self.restarts = 0
        self.last_restart = ""
        sidecars = {
            text_at(container, "name")
            for container in list_at(pod, "spec", "initContainers")
            if text_at(container, "restartPolicy") == "Always"
        }
        self.total = len(list_at(pod, "spec", "containers")) + len(sidecars)
        if not self._read_init_containers(pod, sidecars) or _has_condition(pod, "Initialized"):
            self._read_containers(pod, sidecars)
        if at(pod, "metadata", "deletionTimestamp"):
            if text_at(pod, "status", "reason") == "NodeLost":
                self.reason = "Unknown"
            elif text_at(pod, "status", "phase") not in ("Succeeded", "Failed"):
                self.reason = "Terminating"

    def _count(self, status: Any) -> None:
        self.restarts += number_at(status, "restartCount")
        self.last_restart = max(self.last_restart, text_at(status, "lastState", "terminated", "finishedAt"))

    def _read_init_containers(self, pod: Json, sidecars: set[str]) -> bool:
        """Whether one of them still has to finish."""
        for position, status in enumerate(list_at(pod, "status", "initContainerStatuses")):
            self._count(status)
            terminated = at(status, "state", "terminated")
            waiting = text_at(status, "state", "waiting", "reason")
            if terminated is not None and not at(terminated, "exitCode"):
                continue
            if text_at(status, "name") in sidecars and at(status, "started"):
                self.ready += bool(at(status, "ready"))
                continue
            if terminated is not None:
                self.reason = f"Init:{_terminated_reason(terminated)}"
            elif waiting and waiting != "PodInitializing":
                self.reason = f"Init:{waiting}"
            else:
                self.reason = f"Init:{position}/{len(list_at(pod, 'spec', 'initContainers'))}"
            return True
        return False

    def _read_containers(self, pod: Json, sidecars: set[str]) -> None:
        self.restarts = 0
        self.last_restart = ""
        for status in list_at(pod, "status", "initContainerStatuses"):
            if text_at(status, "name") in sidecars:
                self._count(status)
        running = False
        for status in reversed(list_at(pod, "status", "containerStatuses")):
            self._count(status)
            terminated = at(status, "state", "terminated")
            if waiting := text_at(status, "state", "waiting", "reason"):
                self.reason = waiting
            elif terminated is not None:
                self.reason = _terminated_reason(terminated)
            elif at(status, "ready") and at(status, "state", "running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed" and running:
            self.reason = "Running" if _has_condition(pod, "Ready") else "NotReady"


def _pod_reason(pod: Json) -> str:
    for condition in list_at(pod, "status", "conditions"):
        if at(condition, "type") == "PodScheduled" and at(condition, "reason") == "SchedulingGated":
            return "SchedulingGated"
    return text_at(pod, "status", "reason") or text_at(pod, "status", "phase")


def _terminated_reason(terminated: Any) -> str:
    if reason := text_at(terminated, "reason"):
        return reason
    if signal := number_at(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number_at(terminated, 'exitCode')}"


def _has_condition(obj: Json, type_: str) -> bool:
    return any(
        at(condition, "type") == type_ and at(condition, "status") == "True"
        for condition in list_at(obj, "status", "conditions")
    )


def _pod_cells(obj: Json, now: datetime) -> Cells:
    summary = _PodSummary(obj)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts += f" ({format_age(now, summary.last_restart)} ago)"
    gates = [text_at(gate, "conditionType") for gate in list_at(obj, "spec", "readinessGates")]
    passed = sum(_has_condition(obj, gate) for gate in gates)
    addresses = list_at(obj, "status", "podIPs")
    return (
        name_of(obj),
        f"{summary.ready}/{summary.total}",
        summary.reason,
        restarts,
        age_of(obj, now),
        _or_none(text_at(addresses[0], "ip") if addresses else text_at(obj, "status", "podIP")),
        _or_none(text_at(obj, "spec", "nodeName")),
        _or_none(text_at(obj, "status", "nominatedNodeName")),
        f"{passed}/{len(gates)}" if gates else "<none>",
    )


# Nodes and namespaces


def _node_cells(obj: Json, now: datetime) -> Cells:
    known = {at(condition, "type") for condition in list_at(obj, "status", "conditions")}
    states = ["Unknown" if "Ready" not in known else "Ready" if _has_condition(obj, "Ready") else "NotReady"]
    if at(obj, "spec", "unschedulable"):
        states.append("SchedulingDisabled")
    labels = at(obj, "metadata", "labels") or {}
    roles = {label.removeprefix(_ROLE_PREFIX) for label in labels if label.startswith(_ROLE_PREFIX)}
    roles |= {labels.get("kubernetes.io/role", "")}
    info = at(obj, "status", "nodeInfo")
    return (
        name_of(obj),
        ",".join(states),
        _or_none(",".join(sorted(filter(None, roles)))),
        age_of(obj, now),
        text_at(info, "kubeletVersion"),
        _or_none(_address(obj, "InternalIP")),
        _or_none(_address(obj, "ExternalIP")),
        text_at(info, "osImage") or "<unknown>",
        text_at(info, "kernelVersion") or "<unknown>",
        text_at(info, "containerRuntimeVersion") or "<unknown>",
    )


def _address(node: Json, type_: str) -> str:
    for address in list_at(node, "status", "addresses"):
        if at(address, "type") == type_:
            return text_at(address, "address")
    return ""


def _namespace_cells(obj: Json, now: datetime) -> Cells:
    return name_of(obj), text_at(obj, "status", "phase"), age_of(obj, now)


# Events


def _event_cells(obj: Json, now: datetime) -> Cells:
    # events.k8s.io gives other names to what the core group has.
    subject = at(obj, "involvedObject") or at(obj, "regarding")
    source = at(obj, "source") or at(obj, "deprecatedSource")
    first = at(obj, "firstTimestamp") or at(obj, "deprecatedFirstTimestamp") or at(obj, "eventTime")
    last = at(obj, "lastTimestamp") or at(obj, "deprecatedLastTimestamp") or first
    count = number_at(obj, "count") or number_at(obj, "deprecatedCount") or 1
    if (series := at(obj, "series")) is not None:
        last, count = at(series, "lastObservedTime"), number_at(series, "count")
    kind, name = text_at(subject, "kind").lower(), text_at(subject, "name")
    component = (
        text_at(source, "component") or text_at(obj, "reportingComponent") or text_at(obj, "reportingController")
    )
    instance = text_at(source, "host") or text_at(obj, "reportingInstance")
    return (
        format_age(now, last),
        text_at(obj, "type"),
        text_at(obj, "reason"),
        f"{kind}/{name}" if name else kind,
        text_at(subject, "fieldPath"),
        f"{component}, {instance}" if instance else component,
        (text_at(obj, "message") or text_at(obj, "note")).strip(),
        format_age(now, first),
        count,
        name_of(obj),
    )


# Jobs and the rest


_JOB_STATES: Final = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def _job_cells(obj: Json, now: datetime) -> Cells:
    containers = list_at(obj, "spec", "template", "spec", "containers")
    return (
        name_of(obj),
        _job_state(obj),
        _job_completions(obj),
        _job_duration(obj, now),
        age_of(obj, now),
        ",".join(text_at(container, "name") for container in containers),
        ",".join(text_at(container, "image") for container in containers),
        _or_none(_selector_text(at(obj, "spec", "selector"))),
    )


def _job_state(obj: Json) -> str:
    reached = [state for state in _JOB_STATES if _has_condition(obj, state)]
    if at(obj, "metadata", "deletionTimestamp") and not {"Complete", "Failed"} & set(reached):
        return "Terminating"
    return reached[0] if reached else "Running"


def _job_completions(obj: Json) -> str:
    succeeded = number_at(obj, "status", "succeeded")
    if at(obj, "spec", "completions") is not None:
        return f"{succeeded}/{number_at(obj, 'spec', 'completions')}"
    parallelism = number_at(obj, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Json, now: datetime) -> str:
    start, end = at(obj, "status", "startTime"), at(obj, "status", "completionTime")
    if not start:
        return ""
    return human_duration((parse_time(end) if end else now) - parse_time(start))


def _selector_text(selector: Any) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((at(selector, "matchLabels") or {}).items()))


def _lease_cells(obj: Json, now: datetime) -> Cells:
    return name_of(obj), text_at(obj, "spec", "holderIdentity"), age_of(obj, now)


def _config_map_cells(obj: Json, now: datetime) -> Cells:
    return name_of(obj), len(at(obj, "data") or {}) + len(at(obj, "binaryData") or {}), age_of(obj, now)


def _service_account_cells(obj: Json, now: datetime) -> Cells:
    return name_of(obj), len(list_at(obj, "secrets")), age_of(obj, now)


def _quota_cells(obj: Json, now: datetime) -> Cells:
    requests: list[str] = []
    limits: list[str] = []
    used = at(obj, "status", "used") or {}
    for name, hard in sorted((at(obj, "status", "hard") or {}).items()):
        (limits if name.startswith("limits") else requests).append(f"{name}: {used.get(name, '0')}/{hard}")
    return name_of(obj), ", ".join(requests), ", ".join(limits), age_of(obj, now)


_STATUS: Final = Column("Status", "The state in one word.")
_EVENT: Final = TableKind(
    (
        Column("Last Seen", "How long ago it happened last."),
        Column("Type", "Normal or Warning."),
        Column("Reason", "Why, in one word."),
        Column("Object", "What it is about."),
        _wide("Subobject", "Which part of the object."),
        _wide("Source", "Who tells it."),
        Column("Message", "What happened."),
        _wide("First Seen", "How long ago it happened first."),
        _wide("Count", "How often it happened."),
        NAME._replace(priority=1),
    ),
    _event_cells,
)

CORE_KINDS: Final[dict[tuple[str, str], TableKind]] = {
    ("", "Pod"): TableKind(
        (
            NAME,
            Column("Ready", "Containers that are ready, of all."),
            _STATUS,
            Column("Restarts", "How often containers were restarted."),
            AGE,
            _wide("IP", "The pod's address."),
            _wide("Node", "Where the pod runs."),
            _wide("Nominated Node", "Where the pod will run when others have made room."),
            _wide("Readiness Gates", "Readiness gates that are passed, of all."),
        ),
        _pod_cells,
    ),
    ("", "Node"): TableKind(
        (
            NAME,
            _STATUS,
            Column("Roles", "What the node is for."),
            AGE,
            Column("Version", "The version of the node's agent."),
            _wide("Internal-IP", "The address inside of the cluster."),
            _wide("External-IP", "The address for others."),
            _wide("OS-Image", "The operating system."),
            _wide("Kernel-Version", "The kernel."),
            _wide("Container-Runtime", "What runs containers."),
        ),
        _node_cells,
    ),
    ("", "Namespace"): TableKind((NAME, _STATUS, AGE), _namespace_cells),
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("batch", "Job"): TableKind(
        (
            NAME,
            _STATUS,
            Column("Completions", "Pods that succeeded, of those wanted."),
            Column("Duration", "How long it took, or takes."),
            AGE,
            _wide("Containers", "The names of the containers."),
            _wide("Images", "What they run."),
            _wide("Selector", "The labels of its pods."),
        ),
        _job_cells,
    ),
    ("coordination.k8s.io", "Lease"): TableKind((NAME, Column("Holder", "Who holds it."), AGE), _lease_cells),
    ("", "ConfigMap"): TableKind((NAME, Column("Data", "How many entries it has."), AGE), _config_map_cells),
    ("", "ServiceAccount"): TableKind((NAME, Column("Secrets", "How many it has."), AGE), _service_account_cells),
    ("", "ResourceQuota"): TableKind(
        (
            NAME,
            Column("Request", "Used and allowed amounts of requests and counts."),
            Column("Limit", "Used and allowed amounts of limits."),
            AGE,
        ),
        _quota_cells,
    ),
}
