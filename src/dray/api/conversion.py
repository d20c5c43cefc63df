"""Conversion between the versions: from v1beta1's shape to the hub, v1, and back. v1beta2 has the shape of v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import asdict, replace

from dray.api import v1beta1
from dray.api.claims import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from dray.api.devices import Device
from dray.api.lists import ObjectList
from dray.api.meta import NIL
from dray.api.slices import ResourceSlice, ResourceSliceSpec


def to_hub(obj: Any) -> Any:
    """The same object in the shape of v1."""
    match obj:
        case v1beta1.ResourceClaim():
            return ResourceClaim(metadata=obj.metadata, spec=_spec_to_hub(obj.spec), status=obj.status)
        case v1beta1.ResourceClaimTemplate():
            spec = ResourceClaimTemplateSpec(metadata=obj.spec.metadata, spec=_spec_to_hub(obj.spec.spec))
            return ResourceClaimTemplate(metadata=obj.metadata, spec=spec)
        case v1beta1.ResourceSlice():
            return ResourceSlice(metadata=obj.metadata, spec=_slice_spec_to_hub(obj.spec))
        case ObjectList():
            return replace(obj, items=_convert_items(obj.items, _item_to_hub))
        case _:
            return obj


def to_v1beta1(obj: Any) -> Any:
    """The same object in the shape of v1beta1. An empty `nodeName` and a false `allNodes` of a slice get lost."""
    match obj:
        case ResourceClaim():
            return v1beta1.ResourceClaim(metadata=obj.metadata, spec=_spec_to_v1beta1(obj.spec), status=obj.status)
        case ResourceClaimTemplate():
            spec = v1beta1.ResourceClaimTemplateSpec(metadata=obj.spec.metadata, spec=_spec_to_v1beta1(obj.spec.spec))
            return v1beta1.ResourceClaimTemplate(metadata=obj.metadata, spec=spec)
        case ResourceSlice():
            return v1beta1.ResourceSlice(metadata=obj.metadata, spec=_slice_spec_to_v1beta1(obj.spec))
        case ObjectList():
            return replace(obj, items=_convert_items(obj.items, to_v1beta1))
        case _:
            return obj


def _item_to_hub(item: Any) -> Any:
    converted = to_hub(item)
    return replace(converted, api_version="", kind="") if converted.kind or converted.api_version else converted


def _convert_items(items: tuple[Any, ...], convert: Callable[[Any], Any]) -> tuple[Any, ...]:
    return NIL if items is NIL else tuple(map(convert, items))


def _spec_to_hub(spec: v1beta1.ResourceClaimSpec) -> ResourceClaimSpec:
    claim = spec.devices
    requests = _convert_items(claim.requests, _request_to_hub)
    return ResourceClaimSpec(devices=DeviceClaim(requests=requests, constraints=claim.constraints, config=claim.config))


def _spec_to_v1beta1(spec: ResourceClaimSpec) -> v1beta1.ResourceClaimSpec:
    claim = spec.devices
    requests = _convert_items(claim.requests, _request_to_v1beta1)
    return v1beta1.ResourceClaimSpec(
        devices=v1beta1.DeviceClaim(requests=requests, constraints=claim.constraints, config=claim.config)
    )


def _request_to_hub(request: v1beta1.DeviceRequest) -> DeviceRequest:
    """Any field that is set, though empty, makes an exact request; validation judges it."""
    exactly = None
    if (
        request.device_class_name
        or request.allocation_mode
        or request.count
        or request.selectors is not None
        or request.admin_access is not None
        or request.tolerations is not None
        or request.capacity is not None
        or request.derived_attributes is not None
    ):
        exactly = ExactDeviceRequest(
            device_class_name=request.device_class_name,
            selectors=request.selectors or (),
            allocation_mode=request.allocation_mode,
            count=request.count,
            admin_access=request.admin_access,
            tolerations=request.tolerations or (),
            capacity=request.capacity,
            derived_attributes=request.derived_attributes or (),
        )
    return DeviceRequest(name=request.name, exactly=exactly, first_available=request.first_available)


def _request_to_v1beta1(request: DeviceRequest) -> v1beta1.DeviceRequest:
    exactly = request.exactly
    if exactly is None:
        return v1beta1.DeviceRequest(name=request.name, first_available=request.first_available)
    return v1beta1.DeviceRequest(
        name=request.name,
        device_class_name=exactly.device_class_name,
        selectors=exactly.selectors or None,
        allocation_mode=exactly.allocation_mode,
        count=exactly.count,
        admin_access=exactly.admin_access,
        first_available=request.first_available,
        tolerations=exactly.tolerations or None,
        capacity=exactly.capacity,
        derived_attributes=exactly.derived_attributes or None,
    )


def _slice_spec_to_hub(spec: v1beta1.ResourceSliceSpec) -> ResourceSliceSpec:
    fields = asdict(spec)
    fields["node_name"] = spec.node_name or None
    fields["all_nodes"] = spec.all_nodes or None
    fields["devices"] = _convert_items(spec.devices, _device_to_hub)
    return ResourceSliceSpec(**fields)


def _slice_spec_to_v1beta1(spec: ResourceSliceSpec) -> v1beta1.ResourceSliceSpec:
    fields = asdict(spec)
    fields["node_name"] = spec.node_name or ""
    fields["all_nodes"] = spec.all_nodes or False
    fields["devices"] = _convert_items(spec.devices, _device_to_v1beta1)
    return v1beta1.ResourceSliceSpec(**fields)


def _device_to_hub(device: v1beta1.Device) -> Device:
    return Device(name=device.name) if device.basic is None else Device(name=device.name, **asdict(device.basic))


def _device_to_v1beta1(device: Device) -> v1beta1.Device:
    fields = asdict(device)
    return v1beta1.Device(name=fields.pop("name"), basic=v1beta1.BasicDevice(**fields))
