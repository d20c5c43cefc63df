"""What ResourceClaims cost in a ResourceQuota.

A claim counts as one object, as the devices that it may get per class, and, since a class can stand for an extended
resource, as requests for that resource. A claim which the scheduler made for a pod's extended resources is charged
only for what the pod isn't charged for already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from dray.api.claims import (
    ALLOCATION_MODE_ALL,
    ALLOCATION_MODE_EXACT_COUNT,
    MAX_ALLOCATION_RESULTS,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dray.api.classes import DeviceClass
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.names import is_extended_resource_name
from dray.api.pods import Pod, is_terminal, pod_requests
from dray.api.quantities import Quantity
from dray.api.times import parse_time
from dray.api.views import ResourceList

CLAIM_COUNT: Final = "count/resourceclaims.resource.k8s.io"
PER_CLASS_SUFFIX: Final = ".deviceclass.resource.k8s.io/devices"
IMPLICIT_RESOURCE_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
EXTENDED_RESOURCE_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
_REQUESTS: Final = "requests."

ExtendedResources = Mapping[str, str]
"""Names of extended resources by the device class that stands for them."""


def extended_resources(classes: Iterable[DeviceClass]) -> ExtendedResources:
    return {
        device_class.metadata.name: device_class.spec.extended_resource_name
        for device_class in classes
        if device_class.spec.extended_resource_name
    }


def matching_resources(names: Iterable[str], extended: ExtendedResources, gates: FeatureGates = ALL_GATES) -> list[str]:
    """Which of the names in a quota's `hard` are about claims."""
    return [name for name in names if _is_about_claims(name, extended, gates)]


def _is_about_claims(name: str, extended: ExtendedResources, gates: FeatureGates) -> bool:
    if name == CLAIM_COUNT or name.endswith(PER_CLASS_SUFFIX):
        return True
    if "DRAExtendedResource" not in gates or not name.startswith(_REQUESTS):
        return False
    resource = name.removeprefix(_REQUESTS)
    if resource.startswith(IMPLICIT_RESOURCE_PREFIX):
        return resource.removeprefix(IMPLICIT_RESOURCE_PREFIX) in extended
    return "/" in resource and "kubernetes.io/" not in resource and resource in extended.values()


def claim_usage(
    claim: ResourceClaim,
    extended: ExtendedResources,
    find_pod: Callable[[str, str], Pod | None],
    find_owned_claims: Callable[[str, str], Iterable[ResourceClaim]],
    now: datetime,
    gates: FeatureGates = ALL_GATES,
) -> ResourceList:
    """What the claim uses, by name in the quota.

    `find_pod` gets a pod by namespace and name, `find_owned_claims` the claims for extended resources that a pod owns,
    by the pod's namespace and uid.
    """
    devices: dict[str, int] = {}
    for request in claim.spec.devices.requests:
        for class_name, count in _devices_by_class(request).items():
            devices[class_name] = devices.get(class_name, 0) + count
    usage = {CLAIM_COUNT: Quantity.of(1)}
    for class_name, count in devices.items():
        usage[f"{class_name}{PER_CLASS_SUFFIX}"] = Quantity.of(count)
    if "DRAExtendedResource" in gates:
        charged = _charged_to_pod(claim, find_pod, find_owned_claims, now)
        for name, count in _extended_requests(devices, extended).items():
            rest = Quantity.of(count) - charged.get(name, Quantity.ZERO)
            if rest.sign > 0:
                usage[name] = rest
    return usage


def _devices_by_class(request: DeviceRequest) -> dict[str, int]:
    """The most devices that a request may get of each class."""
    if request.first_available:
        most: dict[str, int] = {}
        for alternative in request.first_available:
            count = _count(alternative)
            if count > most.get(alternative.device_class_name, 0):
                most[alternative.device_class_name] = count
        return most
    if request.exactly is not None:
        return {request.exactly.device_class_name: _count(request.exactly)}
    return {}


def _count(request: ExactDeviceRequest | DeviceSubRequest) -> int:
    match request.allocation_mode:
        case mode if mode == ALLOCATION_MODE_EXACT_COUNT:
            return request.count
        case mode if mode == ALLOCATION_MODE_ALL:
            return MAX_ALLOCATION_RESULTS
        case _:
            return 0  # a mode of a later release; nobody can say what it costs


def _extended_requests(devices: Mapping[str, int], extended: ExtendedResources) -> dict[str, int]:
    requests: dict[str, int] = {}
    for class_name, count in devices.items():
        if not class_name:
            continue
        requests[f"{_REQUESTS}{IMPLICIT_RESOURCE_PREFIX}{class_name}"] = count
        if resource := extended.get(class_name):
            # Classes that share a resource aren't added up; Kubernetes takes any one of them.
            name = f"{_REQUESTS}{resource}"
            requests[name] = max(count, requests.get(name, 0))
    return requests


def _charged_to_pod(
    claim: ResourceClaim,
    find_pod: Callable[[str, str], Pod | None],
    find_owned_claims: Callable[[str, str], Iterable[ResourceClaim]],
    now: datetime,
) -> ResourceList:
    """The extended resources that the quota charges to the pod for which the scheduler made this claim."""
    if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) != "true":
        return {}
    owner = next((reference for reference in claim.metadata.owner_references if reference.controller), None)
    if owner is None or owner.kind != "Pod" or owner.api_version != "v1":
        return {}
    pod = find_pod(claim.metadata.namespace, owner.name)
    if pod is None or pod.metadata.uid != owner.uid:
        return {}
    status = pod.status.extended_resource_claim_status
    if status is not None:
        if status.resource_claim_name != claim.metadata.name:
            return {}
    elif any(_is_older(other, claim) for other in find_owned_claims(claim.metadata.namespace, pod.metadata.uid)):
        # The pod doesn't say yet which claim is its own: the first one gets the benefit.
        return {}
    return _pod_usage(pod, now)


def _is_older(claim: ResourceClaim, other: ResourceClaim) -> bool:
    return _creation_order(claim) < _creation_order(other)


def _creation_order(claim: ResourceClaim) -> tuple[float, str]:
    created = claim.metadata.creation_timestamp
    return parse_time(created).timestamp() if created else float("-inf"), claim.metadata.name


def _pod_usage(pod: Pod, now: datetime) -> ResourceList:
    if not _counts(pod, now):
        return {}
    return {
        f"{_REQUESTS}{name}": amount
        for name, amount in pod_requests(pod).items()
        if is_extended_resource_name(name) or name.startswith(IMPLICIT_RESOURCE_PREFIX)
    }


def _counts(pod: Pod, now: datetime) -> bool:
    """Whether the pod is charged at all: not when it is done, or should be gone but its node doesn't answer."""
    if is_terminal(pod):
        return False
    deletion, grace = pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds
    return deletion is None or grace is None or now <= parse_time(deletion) + timedelta(seconds=grace)
