"""Fields of features that are turned off.

A gated field is cleared when its gate is off, unless the stored object already uses the feature, anywhere in it: then
an update keeps it. Validation sees what is left.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from dray.api.claims import (
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from dray.api.classes import DeviceClassSpec
from dray.api.features import ALL_GATES, FeatureGates

Details = ExactDeviceRequest | DeviceSubRequest


def drop_claim_spec(spec: ResourceClaimSpec, old: ResourceClaimSpec | None, gates: FeatureGates) -> ResourceClaimSpec:
    if gates == ALL_GATES:
        return spec
    claim = spec.devices
    stored = old.devices if old is not None else DeviceClaim()
    if "DRAPrioritizedList" not in gates and not any(request.first_available for request in stored.requests):
        claim = _with_requests(claim, lambda request: replace(request, first_available=()))
    if "DRADeviceTaints" not in gates and not any(details.tolerations for details in _iter_details(stored)):
        claim = _with_details(claim, lambda details: replace(details, tolerations=()))
    if "DRAAdminAccess" not in gates and not _asks_for_admin_access(stored):
        claim = _with_requests(claim, _without_admin_access)
    if "DRAConsumableCapacity" not in gates and not _uses_consumable_capacity(stored):
        claim = _with_constraints(claim, lambda constraint: replace(constraint, distinct_attribute=None))
        claim = _with_details(claim, lambda details: replace(details, capacity=None))
    if "DRADerivedAttributes" not in gates and not any(details.derived_attributes for details in _iter_details(stored)):
        claim = _with_details(claim, lambda details: replace(details, derived_attributes=()))
    if "DRACELDeviceConstraint" not in gates and all(constraint.cel is None for constraint in stored.constraints):
        claim = _with_constraints(claim, lambda constraint: replace(constraint, cel=None))
    return replace(spec, devices=claim)


def _iter_details(claim: DeviceClaim) -> list[Details]:
    found: list[Details] = [request.exactly for request in claim.requests if request.exactly is not None]
    for request in claim.requests:
        found += request.first_available
    return found


def _with_details(claim: DeviceClaim, change: Callable[[Details], Details]) -> DeviceClaim:
    def changed(request: DeviceRequest) -> DeviceRequest:
        exactly = change(request.exactly) if request.exactly is not None else None
        return replace(request, exactly=exactly, first_available=tuple(map(change, request.first_available)))

    return _with_requests(claim, changed)


def _with_requests(claim: DeviceClaim, change: Callable[[DeviceRequest], DeviceRequest]) -> DeviceClaim:
    return replace(claim, requests=tuple(map(change, claim.requests))) if claim.requests else claim


def _with_constraints(claim: DeviceClaim, change: Callable[[DeviceConstraint], DeviceConstraint]) -> DeviceClaim:
    return replace(claim, constraints=tuple(map(change, claim.constraints)))


def _asks_for_admin_access(claim: DeviceClaim) -> bool:
    return any(request.exactly is not None and request.exactly.admin_access is not None for request in claim.requests)


def _without_admin_access(request: DeviceRequest) -> DeviceRequest:
    if request.exactly is None or request.exactly.admin_access is None:
        return request
    return replace(request, exactly=replace(request.exactly, admin_access=None))


def _uses_consumable_capacity(claim: DeviceClaim) -> bool:
    if any(constraint.distinct_attribute is not None for constraint in claim.constraints):
        return True
    return any(details.capacity is not None for details in _iter_details(claim))


def drop_claim_status(claim: ResourceClaim, old: ResourceClaim, gates: FeatureGates) -> ResourceClaim:
    if gates == ALL_GATES:
        return claim
    status = claim.status
    results = old.status.allocation.devices.results if old.status.allocation is not None else ()
    if "DRAResourceClaimDeviceStatus" not in gates and not old.status.devices:
        status = replace(status, devices=())
    claim = replace(claim, status=status)
    if "DRAAdminAccess" not in gates and not (
        _asks_for_admin_access(old.spec.devices) or any(result.admin_access is not None for result in results)
    ):
        claim = _with_results(claim, lambda result: replace(result, admin_access=None))
    if "DRAConsumableCapacity" not in gates and not _shares_devices(old):
        claim = _with_results(claim, lambda result: replace(result, share_id=None, consumed_capacity={}))
        devices = tuple(replace(device, share_id=None) for device in claim.status.devices)
        claim = replace(claim, status=replace(claim.status, devices=devices))
    if "DRADeviceBindingConditions" not in gates and not any(
        result.binding_conditions or result.binding_failure_conditions for result in results
    ):
        claim = _with_results(
            claim, lambda result: replace(result, binding_conditions=(), binding_failure_conditions=())
        )
    if "DRAOptionalNodeOperations" not in gates and not any(result.skip_node_operations for result in results):
        claim = _with_results(claim, lambda result: replace(result, skip_node_operations=()))
    return claim


def _shares_devices(claim: ResourceClaim) -> bool:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return (
        _uses_consumable_capacity(claim.spec.devices)
        or any(result.share_id is not None or result.consumed_capacity for result in results)
        or any(device.share_id is not None for device in claim.status.devices)
    )


def _with_results(
    claim: ResourceClaim, change: Callable[[DeviceRequestAllocationResult], DeviceRequestAllocationResult]
) -> ResourceClaim:
    allocation = claim.status.allocation
    if allocation is None:
        return claim
    devices = replace(allocation.devices, results=tuple(map(change, allocation.devices.results)))
    return replace(claim, status=replace(claim.status, allocation=replace(allocation, devices=devices)))


def drop_class_spec(spec: DeviceClassSpec, old: DeviceClassSpec | None, gates: FeatureGates) -> DeviceClassSpec:
    if "DRAExtendedResource" in gates or (old is not None and old.extended_resource_name is not None):
        return spec
    return replace(spec, extended_resource_name=None)
