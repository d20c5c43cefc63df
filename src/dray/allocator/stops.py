"""From what stopped a search on some node of a shape to an error that names the claim and the device at hand."""

from __future__ import annotations

from collections.abc import Sequence

from dray.allocator.capacity import CapacityProblem
from dray.allocator.errors import (
    AllocationError,
    CapacityUnusable,
    ConstraintFailed,
    ConstraintRejectsAll,
    DerivedAttributeFailed,
    NodeSelectionFailed,
    PoolUnusable,
    SelectorFailed,
    TooManyDevices,
)
from dray.allocator.inventory import Reach
from dray.allocator.tables import Stop
from dray.api.claims import MAX_ALLOCATION_RESULTS, ResourceClaim
from dray.api.devices import DeviceID
from dray.cel.errors import CompileError


def make_error(stop: Stop, reach: Reach, claims: Sequence[ResourceClaim]) -> AllocationError:
    claim = claims[stop.claim]
    key = claim.metadata.key
    if stop.problem is not None:
        return stop.problem(key)
    if stop.wanted:
        return TooManyDevices(key, stop.wanted, MAX_ALLOCATION_RESULTS)
    if stop.devices:
        assert stop.failure is not None
        devices = tuple(find_device(reach, position) for position in stop.devices)
        return ConstraintFailed(key, stop.constraint, devices, stop.failure.cause)
    assert stop.alternative is not None
    request = stop.alternative.name
    if stop.pool >= 0:
        pool = reach.pools[stop.pool].pool
        return PoolUnusable(key, request, pool.id, pool.reason)
    device = find_device(reach, stop.position)
    if stop.derived:
        assert stop.failure is not None
        attribute = claim.spec.devices.constraints[stop.constraint]
        name = attribute.match_attribute or attribute.distinct_attribute or ""
        compiled = not isinstance(stop.failure.cause, CompileError)
        return DerivedAttributeFailed(key, request, name, device if compiled else None, stop.failure.cause)
    if stop.constraint >= 0:
        return ConstraintRejectsAll(key, request, device, stop.constraint)
    if stop.failure is None:
        return NodeSelectionFailed(f"device {device}", "its node selector is invalid")
    if isinstance(stop.failure.cause, CapacityProblem):
        return CapacityUnusable(key, request, device, stop.failure.cause.capacity, stop.failure.cause.problem)
    compiled = not isinstance(stop.failure.cause, CompileError)
    return SelectorFailed(
        key, request, stop.failure.class_name, stop.failure.selector, device if compiled else None, stop.failure.cause
    )


def find_device(reach: Reach, position: int) -> DeviceID:
    """The device at a position of the row in which all devices of the node stand."""
    for each in reach.pools:
        if position < len(each.pool.devices):
            return each.pool.device_id(position)
        position -= len(each.pool.devices)
    raise IndexError(position)
