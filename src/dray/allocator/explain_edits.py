"""Claims with one thing changed, to ask whether they would fit then."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from dray.api.claims import (
    CapacityRequirements,
    CELDeviceSelector,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from dray.api.devices import DeviceTaint
from dray.api.quantities import Quantity

Spec = ExactDeviceRequest | DeviceSubRequest
Edit = Callable[[Spec], Spec]


def edit_request(claim: ResourceClaim, name: str, edit: Edit) -> ResourceClaim:
    """The claim with one request, or one subrequest (`request/sub`), changed."""
    parent, _, sub = name.partition("/")

    def changed(request: DeviceRequest) -> DeviceRequest:
        if request.name != parent:
            return request
        if request.exactly is not None and not sub:
            return replace(request, exactly=edit(request.exactly))
        alternatives = tuple(edit(each) if each.name == sub else each for each in request.first_available)
        return replace(request, first_available=alternatives)

    return _with_devices(claim, requests=tuple(changed(request) for request in claim.spec.devices.requests))


def without_selector(number: int) -> Edit:
    return lambda spec: replace(spec, selectors=(*spec.selectors[:number], *spec.selectors[number + 1 :]))


def with_selector(number: int, text: str) -> Edit:
    selector = DeviceSelector(cel=CELDeviceSelector(expression=text))
    return lambda spec: replace(spec, selectors=(*spec.selectors[:number], selector, *spec.selectors[number + 1 :]))


def with_class(name: str) -> Edit:
    return lambda spec: replace(spec, device_class_name=name)


def with_count(count: int) -> Edit:
    return lambda spec: replace(spec, count=count)


def with_capacity(name: str, value: Quantity) -> Edit:
    def edit(spec: Spec) -> Spec:
        requests = spec.capacity.requests if spec.capacity is not None else {}
        return replace(spec, capacity=CapacityRequirements(requests={**requests, name: value}))

    return edit


def with_toleration(taint: DeviceTaint) -> Edit:
    toleration = DeviceToleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    return lambda spec: replace(spec, tolerations=(*spec.tolerations, toleration))


def with_constraints(claim: ResourceClaim, constraints: Sequence[DeviceConstraint]) -> ResourceClaim:
    return _with_devices(claim, constraints=tuple(constraints))


def with_attribute(claim: ResourceClaim, number: int, attribute: str) -> ResourceClaim:
    """With another attribute in a constraint that is about one."""
    constraints = list(claim.spec.devices.constraints)
    if constraints[number].match_attribute is not None:
        constraints[number] = replace(constraints[number], match_attribute=attribute)
    else:
        constraints[number] = replace(constraints[number], distinct_attribute=attribute)
    return with_constraints(claim, constraints)


def without_constraint(claim: ResourceClaim, number: int) -> ResourceClaim:
    constraints = claim.spec.devices.constraints
    return with_constraints(claim, (*constraints[:number], *constraints[number + 1 :]))


def _with_devices(claim: ResourceClaim, **fields: object) -> ResourceClaim:
    return replace(claim, spec=replace(claim.spec, devices=replace(claim.spec.devices, **fields)))
