"""Defaults: what a version fills in when an object is read. Each takes the object in its own version's shape.

They run before conversion, because the versions differ: v1beta1 leaves a request alone that names no class.
An object that needs nothing comes back as it is, not as a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from dray.api import v1beta1
from dray.api.claims import (
    ALLOCATION_MODE_EXACT_COUNT,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from dray.api.devices import Device, DeviceTaint
from dray.api.lists import ObjectList
from dray.api.meta import Time
from dray.api.poolstatus import ResourcePoolStatusRequest
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule

DEFAULT_POOL_LIMIT: Final = 100

T = TypeVar("T")
StructT = TypeVar("StructT", bound=msgspec.Struct)
RequestT = TypeVar("RequestT", ExactDeviceRequest, DeviceSubRequest, v1beta1.DeviceRequest)


def apply_defaults(obj: StructT, now: Time | None) -> StructT:
    """`obj` with the defaults of its version. `now` is for taints that don't say when they were added."""
    match obj:
        case ResourceClaim():
            spec = _default_claim_spec(obj.spec, _default_request)
            return _change(obj, spec=spec, status=default_status(obj.status))
        case v1beta1.ResourceClaim():
            flat = _default_claim_spec(obj.spec, _default_flat_request)
            return _change(obj, spec=flat, status=default_status(obj.status))
        case ResourceClaimTemplate():
            return _change(obj, spec=_change(obj.spec, spec=_default_claim_spec(obj.spec.spec, _default_request)))
        case v1beta1.ResourceClaimTemplate():
            return _change(obj, spec=_change(obj.spec, spec=_default_claim_spec(obj.spec.spec, _default_flat_request)))
        case ResourceSlice() | v1beta1.ResourceSlice() if now is not None:
            return _change(obj, spec=_change(obj.spec, devices=_map(obj.spec.devices, partial(_stamp_device, now))))
        case DeviceTaintRule() if now is not None:
            return _change(obj, spec=_change(obj.spec, taint=_stamp_taint(now, obj.spec.taint)))
        case ResourcePoolStatusRequest() if obj.spec.limit is None:
            return replace(obj, spec=replace(obj.spec, limit=DEFAULT_POOL_LIMIT))
        case ObjectList():
            return _change(obj, items=_map(obj.items, lambda item: apply_defaults(item, now)))
        case _:
            return obj


def _change(value: StructT, **fields: Any) -> StructT:
    for name, new in fields.items():
        if getattr(value, name) is not new:
            return replace(value, **fields)
    return value


def _map(items: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    changed = tuple([change(item) for item in items])
    for new, old in zip(changed, items, strict=True):
        if new is not old:
            return changed
    return items


def _default_claim_spec(spec: StructT, default_request: Callable[[Any], Any]) -> StructT:
    devices: Any = getattr(spec, "devices")  # noqa: B009 - the spec is of one of two versions
    return _change(spec, devices=_change(devices, requests=_map(devices.requests, default_request)))


def _default_request(request: DeviceRequest) -> DeviceRequest:
    exactly = None if request.exactly is None else _default_mode(request.exactly)
    return _change(request, exactly=exactly, first_available=_map(request.first_available, _default_mode))


def _default_flat_request(request: v1beta1.DeviceRequest) -> v1beta1.DeviceRequest:
    request = _default_mode(request) if request.device_class_name else _default_tolerations(request)
    return _change(request, first_available=_map(request.first_available, _default_mode))


def _default_mode(request: RequestT) -> RequestT:
    mode = request.allocation_mode or ALLOCATION_MODE_EXACT_COUNT
    count = request.count or (1 if mode == ALLOCATION_MODE_EXACT_COUNT else 0)
    return _change(_default_tolerations(request), allocation_mode=mode, count=count)


def _default_tolerations(tolerant: StructT) -> StructT:
    tolerations: tuple[DeviceToleration, ...] | None = getattr(tolerant, "tolerations", None)
    if not tolerations or all(toleration.operator for toleration in tolerations):
        return tolerant
    return replace(tolerant, tolerations=_map(tolerations, _default_operator))


def _default_operator(toleration: DeviceToleration) -> DeviceToleration:
    return toleration if toleration.operator else replace(toleration, operator="Equal")


def default_status(status: StructT) -> StructT:
    """The status of any kind; only that of claims has defaults."""
    if not isinstance(status, ResourceClaimStatus) or status.allocation is None:
        return status
    devices = status.allocation.devices
    results = _map(devices.results, _default_tolerations)
    return _change(status, allocation=_change(status.allocation, devices=_change(devices, results=results)))


def _stamp_device(now: Time, device: StructT) -> StructT:
    match device:
        case v1beta1.Device(basic=v1beta1.BasicDevice(taints=taints) as basic) if taints:
            return replace(device, basic=replace(basic, taints=_map(taints, partial(_stamp_taint, now))))
        case Device(taints=taints) if taints:
            return _change(device, taints=_map(taints, partial(_stamp_taint, now)))
        case _:
            return device


def _stamp_taint(now: Time, taint: DeviceTaint) -> DeviceTaint:
    return taint if taint.time_added is not None else replace(taint, time_added=now)
