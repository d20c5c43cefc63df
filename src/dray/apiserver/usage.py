"""What one object uses of a quota, by the names that a quota's `hard` may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from dray.api.claims import ResourceClaim
from dray.api.codec import decode_as
from dray.api.features import FeatureGates
from dray.api.meta import RESOURCE_GROUP, Json
from dray.api.pods import Pod, is_terminal, pod_requests, view_pod
from dray.api.quantities import Quantity
from dray.api.resourcequotas import ResourceQuota
from dray.api.views import ResourceList
from dray.apiserver.pod_defaults import iter_containers, qos_class
from dray.apiserver.resources import Row
from dray.validation.quota import ExtendedResources, claim_usage

ONE: Final = Quantity.of(1)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_COUNTED_BY_NAME: Final = frozenset({"pods", "configmaps", "secrets", "resourcequotas"})
"""Core resources that a quota can also count without `count/`."""

_POD_SCOPES: Final = frozenset({"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass"})


class ClaimWorld:
    """What else the usage of a claim depends on."""

    def __init__(
        self,
        extended: ExtendedResources,
        find_pod: Callable[[str, str], Pod | None],
        find_owned_claims: Callable[[str, str], Iterable[ResourceClaim]],
        now: datetime,
        gates: FeatureGates,
    ) -> None:
        self.extended = extended
        self.find_pod = find_pod
        self.find_owned_claims = find_owned_claims
        self.now = now
        self.gates = gates


def usage_of(row: Row, obj: Json | None, world: ClaimWorld) -> ResourceList:
    """Empty for what isn't there, or counts no more."""
    if obj is None:
        return {}
    usage: ResourceList = {f"count/{row.group_resource}": ONE}
    if not row.group and row.plural in _COUNTED_BY_NAME:
        usage[row.plural] = ONE
    if row.kind == "Pod":
        pod = view_pod(obj)
        if is_terminal(pod):
            return {"count/pods": ONE}
        usage |= _pod_amounts(obj, pod)
    elif row.kind == "ResourceClaim" and row.group == RESOURCE_GROUP:
        claim = decode_as(ResourceClaim, obj)
        usage |= claim_usage(claim, world.extended, world.find_pod, world.find_owned_claims, world.now, world.gates)
    return usage


def _pod_amounts(obj: Json, pod: Pod) -> ResourceList:
    amounts: ResourceList = {}
    for name, amount in pod_requests(pod).items():
        amounts[f"requests.{name}"] = amount
        if name in _COMPUTE:
            amounts[name] = amount
    for _, _, container in iter_containers(obj["spec"]):
        for name, text in (container.get("resources", {}).get("limits") or {}).items():
            key = f"limits.{name}"
            amounts[key] = amounts.get(key, Quantity.ZERO) + Quantity.parse(text)
    return amounts


def quota_covers(quota: ResourceQuota, row: Row, obj: Json) -> bool:
    """Whether the quota's scopes select the object; scopes are about pods."""
    scopes = list(quota.spec.scopes)
    if quota.spec.scope_selector is not None:
        for requirement in quota.spec.scope_selector.match_expressions:
            if requirement.scope_name == "PriorityClass":
                if not _selects_priority(requirement.operator, requirement.values, obj):
                    return False
            else:
                scopes.append(requirement.scope_name)
        if quota.spec.scope_selector.match_expressions and row.kind != "Pod":
            return False
    if scopes and row.kind != "Pod":
        return False
    return all(_in_scope(scope, obj) for scope in scopes)


def _selects_priority(operator: str, values: tuple[str, ...], obj: Json) -> bool:
    name = obj.get("spec", {}).get("priorityClassName", "")
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
    spec = obj["spec"]
    match scope:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
        case _:
            return False


def missing_amounts(names: Iterable[str], row: Row, obj: Json) -> dict[str, list[str]]:
    """Compute resources that a quota limits and a pod's containers don't state: container names by resource."""
    missing: dict[str, list[str]] = {}
    if row.kind != "Pod":
        return missing
    for name in names:
        kind, _, resource = (
            name.rpartition(".") if name.startswith(("requests.", "limits.")) else ("requests", "", name)
        )
        if resource not in _COMPUTE:
            continue
        for _, _, container in iter_containers(obj["spec"]):
            if resource not in (container.get("resources", {}).get(kind) or {}):
                missing.setdefault(name, []).append(container.get("name", ""))
    return missing
