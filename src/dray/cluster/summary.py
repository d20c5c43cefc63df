"""What a cluster looks like at a glance: devices free and used, claims, pods and why they wait. Pure."""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dray.api.claims import ResourceClaim
from dray.api.devices import Device
from dray.api.meta import Json
from dray.api.quantities import Quantity
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.placement.taintrules import apply_rules

DeviceKey = tuple[str, str, str]
"""Driver, pool, device."""
NETWORK = ""
"""In place of a node's name, for pools that belong to none."""


class DeviceState(enum.StrEnum):
    FREE = "free"
    USED = "used"
    SHARED = "shared"
    """Some claims have a part of it; others may still get one."""
    TAINTED = "tainted"
    BLOCKED = "blocked"
    """What it consists of is given out as parts of other devices."""


@dataclass(frozen=True)
class DeviceView:
    name: str
    state: DeviceState
    claims: tuple[str, ...] = ()


@dataclass(frozen=True)
class PoolView:
    node: str
    driver: str
    name: str
    devices: tuple[DeviceView, ...]

    @property
    def counts(self) -> Counter[DeviceState]:
        return Counter(device.state for device in self.devices)


@dataclass(frozen=True)
class NodeView:
    name: str
    is_ready: bool
    pods: int


@dataclass(frozen=True)
class ClaimView:
    name: str
    """With its namespace."""
    state: str
    devices: tuple[str, ...]
    users: tuple[str, ...]


@dataclass(frozen=True)
class PodView:
    name: str
    """With its namespace."""
    phase: str
    node: str
    reason: str = ""


@dataclass(frozen=True)
class Summary:
    nodes: tuple[NodeView, ...] = ()
    pools: tuple[PoolView, ...] = ()
    claims: tuple[ClaimView, ...] = ()
    pods: tuple[PodView, ...] = ()
    waiting: tuple[PodView, ...] = ()
    """Pods that don't run and should, with the reason."""

    @property
    def devices(self) -> Counter[DeviceState]:
        return sum((pool.counts for pool in self.pools), Counter())


@dataclass(frozen=True)
class ClusterObjects:
    nodes: Sequence[Json] = ()
    slices: Sequence[ResourceSlice] = ()
    claims: Sequence[ResourceClaim] = ()
    pods: Sequence[Json] = ()
    rules: Sequence[DeviceTaintRule] = ()
    events: Sequence[Json] = field(default_factory=tuple)
    """Of pods; they say why a pod that has a node doesn't run."""


def summarize(objects: ClusterObjects) -> Summary:
    pods = [pod for pod in objects.pods if _phase(pod) not in ("Succeeded", "Failed")]
    pods_per_node = Counter(pod["spec"].get("nodeName", "") for pod in pods)
    warnings = _last_warnings(objects.events)
    waiting = [pod for pod in pods if _is_waiting(pod)]
    return Summary(
        nodes=tuple(
            NodeView(node["metadata"]["name"], _is_ready(node), pods_per_node[node["metadata"]["name"]])
            for node in sorted(objects.nodes, key=lambda node: _natural(node["metadata"]["name"]))
        ),
        pools=tuple(_view_pools(objects)),
        claims=tuple(_view_claim(claim) for claim in objects.claims),
        pods=tuple(_view_pod(pod) for pod in objects.pods),
        waiting=tuple(_view_pod(pod, _why(pod, warnings)) for pod in waiting),
    )


# Devices


def _view_pools(objects: ClusterObjects) -> Iterable[PoolView]:
    rules = {rule.metadata.name: rule for rule in objects.rules}
    users = _users(objects.claims)
    pools: dict[tuple[str, str, str], list[ResourceSlice]] = defaultdict(list)
    for item in objects.slices:
        spec = item.spec
        pools[(spec.node_name or NETWORK, spec.driver, spec.pool.name)].append(apply_rules(item, rules))
    for (node, driver, name), slices in sorted(pools.items(), key=lambda entry: (_natural(entry[0][0]), entry[0][1:])):
        newest = max(item.spec.pool.generation for item in slices)
        current = [item for item in slices if item.spec.pool.generation == newest]
        devices = [device for item in current for device in item.spec.devices]
        left = _counters_left(current, devices, driver, name, users)
        views = tuple(_view_device(device, users.get((driver, name, device.name), ()), left) for device in devices)
        if views:
            yield PoolView(node, driver, name, views)


def _users(claims: Iterable[ResourceClaim]) -> dict[DeviceKey, tuple[str, ...]]:
    users: dict[DeviceKey, list[str]] = defaultdict(list)
    for claim in claims:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            if not result.admin_access:
                users[(result.driver, result.pool, result.device)].append(str(claim.metadata.key))
    return {key: tuple(names) for key, names in users.items()}


def _counters_left(
    slices: Iterable[ResourceSlice],
    devices: Iterable[Device],
    driver: str,
    pool: str,
    users: Mapping[DeviceKey, tuple[str, ...]],
) -> dict[tuple[str, str], Quantity]:
    left = {
        (counters.name, name): counter.value
        for item in slices
        for counters in item.spec.shared_counters
        for name, counter in counters.counters.items()
    }
    for device in devices:
        if (driver, pool, device.name) in users:
            for part in device.consumes_counters:
                for name, counter in part.counters.items():
                    key = (part.counter_set, name)
                    left[key] = left.get(key, Quantity.ZERO) - counter.value
    return left


def _view_device(device: Device, claims: tuple[str, ...], left: Mapping[tuple[str, str], Quantity]) -> DeviceView:
    if claims:
        state = DeviceState.SHARED if device.allow_multiple_allocations else DeviceState.USED
    elif any(taint.effect in ("NoSchedule", "NoExecute") for taint in device.taints):
        state = DeviceState.TAINTED
    elif any(
        counter.value > left.get((part.counter_set, name), Quantity.ZERO)
        for part in device.consumes_counters
        for name, counter in part.counters.items()
    ):
        state = DeviceState.BLOCKED
    else:
        state = DeviceState.FREE
    return DeviceView(device.name, state, claims)


# Claims, nodes and pods


def _view_claim(claim: ResourceClaim) -> ClaimView:
    allocation = claim.status.allocation
    states = ["allocated" if allocation is not None else "pending"]
    if claim.status.reserved_for:
        states.append("reserved")
    if claim.metadata.deletion_timestamp:
        states.append("deleted")
    results = allocation.devices.results if allocation is not None else ()
    return ClaimView(
        str(claim.metadata.key),
        ",".join(states),
        tuple(f"{result.pool}/{result.device}" for result in results),
        tuple(user.name for user in claim.status.reserved_for),
    )


def _is_ready(node: Json) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def _phase(pod: Json) -> str:
    return (pod.get("status") or {}).get("phase") or "Pending"


def _view_pod(pod: Json, reason: str = "") -> PodView:
    metadata = pod["metadata"]
    phase = "Terminating" if "deletionTimestamp" in metadata else _phase(pod)
    return PodView(f"{metadata['namespace']}/{metadata['name']}", phase, pod["spec"].get("nodeName", ""), reason)


def _last_warnings(events: Iterable[Json]) -> dict[str, str]:
    """By the UID of the object that they are about."""
    last: dict[str, tuple[str, str]] = {}
    for event in events:
        if event.get("type") == "Warning":
            uid = (event.get("involvedObject") or {}).get("uid", "")
            when = (
                event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or ""
            )
            if uid not in last or when >= last[uid][0]:
                last[uid] = (when, event.get("message", ""))
    return {uid: message for uid, (_, message) in last.items()}


def _is_waiting(pod: Json) -> bool:
    """Also if only one of its containers doesn't run, but should."""
    return _phase(pod) == "Pending" or "deletionTimestamp" in pod["metadata"] or any(_waiting_containers(pod))


def _waiting_containers(pod: Json) -> Iterable[tuple[str, Json]]:
    status = pod.get("status") or {}
    for part in ("initContainerStatuses", "containerStatuses"):
        for item in status.get(part) or ():
            if (state := (item.get("state") or {}).get("waiting")) is not None:
                yield item["name"], state


def _why(pod: Json, warnings: Mapping[str, str]) -> str:
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or condition.get("reason") or "")
    if "deletionTimestamp" not in pod["metadata"]:
        for name, state in _waiting_containers(pod):
            if state.get("message"):
                return f"container {name}: {state['reason']}: {state['message']}"
    if warning := warnings.get(pod["metadata"]["uid"], ""):
        return warning
    if not pod["spec"].get("nodeName"):
        return "not scheduled yet"
    return (
        "its containers are being started"
        if "deletionTimestamp" not in pod["metadata"]
        else "its containers are ending"
    )


def _natural(name: str) -> tuple[object, ...]:
    """node-2 before node-10."""
    head = name.rstrip("0123456789")
    return (head, int(name[len(head) :] or 0))
