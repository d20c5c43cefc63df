"""Who may write which part of a claim's status.

Permission to update `resourceclaims/status` is not enough. Allocations and reservations are the scheduler's: they need
the verb on the synthetic subresource `resourceclaims/binding`. Device status belongs to drivers: it needs, per driver,
`associated-node:<verb>` (from a service account on the node of the allocation) or `arbitrary-node:<verb>` on
`resourceclaims/driver`, with the driver as name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from dray.api.claims import AllocatedDeviceStatus, AllocationResult, ResourceClaimStatus
from dray.api.meta import RESOURCE_GROUP
from dray.api.names import check_dns_label, check_dns_subdomain, node_name_problems
from dray.validation.fields import STATUS, Errors, forbidden
from dray.validation.rendering import quote

NODE_NAME_EXTRA: Final = "authentication.kubernetes.io/node-name"


class Access(NamedTuple):
    """One question to the authorizer, about `resourceclaims` of this group."""

    verb: str
    subresource: str
    namespace: str
    name: str
    group: str = RESOURCE_GROUP
    resource: str = "resourceclaims"


class Decision(NamedTuple):
    allowed: bool
    reason: str = ""


class Requester(NamedTuple):
    """Who asks, with which verb, and who decides."""

    authorize: Callable[[Access], Decision]
    user: str
    extra: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    verb: str = "update"


def check_status_access(
    new: ResourceClaimStatus, old: ResourceClaimStatus, errors: Errors, requester: Requester, namespace: str
) -> None:
    if new.allocation != old.allocation or new.reserved_for != old.reserved_for:
        refused = _ask(requester, Access(requester.verb, "binding", "", ""))
        if refused is not None:
            detail = (
                "changing status.allocation or status.reservedFor requires "
                f'resource="resourceclaims/binding", verb="{requester.verb}" permission: {refused}'
            )
            errors.append(forbidden(STATUS.child("allocation"), detail))
    if new.allocation is not None:
        _check_device_access(new, old, errors, requester, namespace)


def _check_device_access(
    new: ResourceClaimStatus, old: ResourceClaimStatus, errors: Errors, requester: Requester, namespace: str
) -> None:
    verbs = [f"arbitrary-node:{requester.verb}"]
    if _is_on_allocated_node(requester, new.allocation):
        verbs.insert(0, f"associated-node:{requester.verb}")
    for driver in sorted(_affected_drivers(new, old)):
        refusals = []
        for verb in verbs:
            refused = _ask(requester, Access(verb, "driver", namespace, driver))
            if refused is None:
                break
            refusals.append(refused)
        else:
            detail = (
                'changing status.devices requires resource="resourceclaims/driver", '
                f'verb="[{" ".join(verbs)}]" permission: {refusals[0]}'
            )
            errors.append(forbidden(STATUS.child("devices"), detail))


def _affected_drivers(new: ResourceClaimStatus, old: ResourceClaimStatus) -> set[str]:
    """Drivers of entries that were added, changed or removed."""
    stored = {_identity(device): device for device in old.devices}
    drivers = set()
    for device in new.devices:
        if device != stored.pop(_identity(device), None):
            drivers.add(device.driver)
    return drivers | {device.driver for device in stored.values()}


def _identity(device: AllocatedDeviceStatus) -> tuple[str, str, str, str]:
    return device.driver, device.pool, device.device, device.share_id or ""


def _is_on_allocated_node(requester: Requester, allocation: AllocationResult | None) -> bool:
    if not _is_service_account(requester.user):
        return False
    match requester.extra.get(NODE_NAME_EXTRA, ()):
        case [node] if not node_name_problems(node):
            return node == _node_of(allocation)
        case _:
            return False


def _is_service_account(user: str) -> bool:
    match user.split(":"):
        case ["system", "serviceaccount", namespace, name]:
            return not check_dns_label(namespace) and not check_dns_subdomain(name)
        case _:
            return False


def _node_of(allocation: AllocationResult | None) -> str:
    """The node of an allocation that is bound to one by name, else nothing."""
    if allocation is None or allocation.node_selector is None:
        return ""
    match allocation.node_selector.node_selector_terms:
        case [term] if not term.match_expressions and len(term.match_fields) == 1:
            requirement = term.match_fields[0]
            if requirement.key == "metadata.name" and requirement.operator == "In" and len(requirement.values) == 1:
                return requirement.values[0]
    return ""


def _ask(requester: Requester, access: Access) -> str | None:
    """None if allowed, else why not, as a 403 would say it."""
    decision = requester.authorize(access)
    if decision.allowed:
        return None
    scope = f"in the namespace {quote(access.namespace)}" if access.namespace else "at the cluster scope"
    named = f" {quote(access.name)}" if access.name else ""
    reason = f": {decision.reason}" if decision.reason else ""
    return (
        f"{access.resource}.{access.group}{named} is forbidden: User {quote(requester.user)} cannot {access.verb} "
        f'resource "{access.resource}/{access.subresource}" in API group {quote(access.group)} {scope}{reason}'
    )
