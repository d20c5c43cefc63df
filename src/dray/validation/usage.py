"""What one object of any kind uses of a quota, by the names that a quota's `hard` may have.

Admission adds this up as objects come and go; the quota controller counts everything anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dray.api.claims import ResourceClaim
from dray.api.codec import decode_as
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import RESOURCE_GROUP, Json
from dray.api.pods import Pod, is_terminal, iter_containers, pod_requests, view_pod
from dray.api.quantities import Quantity
from dray.api.resourcequotas import ResourceQuota
from dray.api.resources import Resource
from dray.api.views import ResourceList
from dray.validation.quota import ExtendedResources, claim_usage

ONE: Final = Quantity.of(1)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_COUNTED_BY_NAME: Final = frozenset({"pods", "configmaps", "secrets", "resourcequotas"})
"""Core resources that a quota can also count without `count/`."""


def _no_pod(namespace: str, name: str) -> Pod | None:
    return None


def _no_claims(namespace: str, uid: str) -> Iterable[ResourceClaim]:
    return ()


@dataclass(frozen=True, slots=True)
class ClaimWorld:
    """What else the usage of a claim depends on; see `dray.validation.quota`."""

    now: datetime
    extended: ExtendedResources
    find_pod: Callable[[str, str], Pod | None] = _no_pod
    find_owned_claims: Callable[[str, str], Iterable[ResourceClaim]] = _no_claims
    gates: FeatureGates = ALL_GATES


def object_usage(resource: Resource, obj: Json, world: ClaimWorld) -> ResourceList:
    usage: ResourceList = {f"count/{resource.group_resource}": ONE}
    if not resource.group and resource.plural in _COUNTED_BY_NAME:
        usage[resource.plural] = ONE
    if resource.kind == "Pod":
        pod = view_pod(obj)
        if is_terminal(pod):
            return {"count/pods": ONE}
        usage |= _pod_amounts(pod)
    elif resource.kind == "ResourceClaim" and resource.group == RESOURCE_GROUP:
        claim = decode_as(ResourceClaim, obj)
        usage |= claim_usage(claim, world.extended, world.find_pod, world.find_owned_claims, world.now, world.gates)
    return usage


def _pod_amounts(pod: Pod) -> ResourceList:
    amounts: ResourceList = {}
    for name, amount in pod_requests(pod).items():
        amounts[f"requests.{name}"] = amount
        if name in _COMPUTE:
            amounts[name] = amount
    for container in iter_containers(pod):
        for name, amount in container.resources.limits.items():
            key = f"limits.{name}"
            amounts[key] = amounts.get(key, Quantity.ZERO) + amount
    return amounts


def is_counted(resource: Resource, names: Iterable[str]) -> bool:
    """Whether objects of this resource can matter to a quota that limits these names."""
    own = {f"count/{resource.group_resource}"}
    if not resource.group:
        own.add(resource.plural)
    broad = resource.kind in ("Pod", "ResourceClaim")
    return any(name in own or (broad and not name.startswith("count/")) for name in names)


def quota_covers(quota: ResourceQuota, resource: Resource, obj: Json) -> bool:
    """Whether the quota's scopes select the object; scopes are about pods."""
    scopes = list(quota.spec.scopes)
    selector = quota.spec.scope_selector
    if not scopes and (selector is None or not selector.match_expressions):
        return True
    if resource.kind != "Pod":
        return False
    for requirement in selector.match_expressions if selector is not None else ():
        if requirement.scope_name == "PriorityClass":
            if not _selects_priority(requirement.operator, requirement.values, obj):
                return False
        else:
            scopes.append(requirement.scope_name)
    return all(_in_scope(scope, obj) for scope in scopes)


def _selects_priority(operator: str, values: tuple[str, ...], obj: Json) -> bool:
    name = obj["spec"].get("priorityClassName", "")
    match operator:
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "Exists":
            return bool(name)
        case _:
            return not name


def _in_scope(scope: str, obj: Json) -> bool:
    terminating = obj["spec"].get("activeDeadlineSeconds") is not None
    match scope:
        case "Terminating":
            return terminating
        case "NotTerminating":
            return not terminating
        case "BestEffort":
            return _is_best_effort(view_pod(obj))
        case "NotBestEffort":
            return not _is_best_effort(view_pod(obj))
        case _:
            return False


def _is_best_effort(pod: Pod) -> bool:
    return not any(
        container.effective_requests.get(name) for container in iter_containers(pod) for name in ("cpu", "memory")
    )


def unstated_amounts(names: Iterable[str], resource: Resource, obj: Json) -> dict[str, list[str]]:
    """Compute resources that a quota limits and a pod's containers don't state: container names by resource."""
    missing: dict[str, list[str]] = {}
    if resource.kind != "Pod":
        return missing
    pod = view_pod(obj)
    for name in names:
        kind, dot, amount = name.partition(".")
        if not dot:
            kind, amount = "requests", name
        if kind not in ("requests", "limits") or amount not in _COMPUTE:
            continue
        for container in iter_containers(pod):
            stated = container.effective_requests if kind == "requests" else container.resources.limits
            if amount not in stated:
                missing.setdefault(name, []).append(container.name)
    return missing
