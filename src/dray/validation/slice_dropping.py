"""Fields of slices whose features are turned off; the rule is that of `dray.validation.dropping`."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from dray.api.devices import Device, DeviceAttribute
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import NIL
from dray.api.slices import ResourceSliceSpec
from dray.validation.attributes import has_list


def drop_slice_spec(spec: ResourceSliceSpec, old: ResourceSliceSpec | None, gates: FeatureGates) -> ResourceSliceSpec:
    if gates == ALL_GATES:
        return spec
    stored = old if old is not None else ResourceSliceSpec()
    devices = stored.devices
    if "DRADeviceTaints" not in gates and not any(device.taints for device in devices):
        spec = _with_devices(spec, lambda device: replace(device, taints=()))
    if "DRAPartitionableDevices" not in gates and not _is_partitionable(stored):
        spec = replace(spec, shared_counters=NIL, per_device_node_selection=None)
        spec = _with_devices(
            spec,
            lambda device: replace(device, consumes_counters=(), node_name=None, node_selector=None, all_nodes=None),
        )
    if not ("DRADeviceBindingConditions" in gates and "DRAResourceClaimDeviceStatus" in gates) and not any(
        device.binding_conditions or device.binding_failure_conditions or device.binds_to_node is not None
        for device in devices
    ):
        spec = _with_devices(
            spec,
            lambda device: replace(device, binding_conditions=(), binding_failure_conditions=(), binds_to_node=None),
        )
    if "DRAConsumableCapacity" not in gates and not any(_is_shareable(device) for device in devices):
        spec = _with_devices(spec, _without_sharing)
    if "DRADeviceCompatibilityGroups" not in gates and not any(
        consumption.compatibility_groups for device in devices for consumption in device.consumes_counters
    ):
        spec = _with_devices(spec, _without_groups)
    if "DRANodeAllocatableResources" not in gates and not any(device.node_allocatable_resources for device in devices):
        spec = _with_devices(spec, lambda device: replace(device, node_allocatable_resources={}))
    if "DRAListTypeAttributes" not in gates and not any(_has_list_attribute(device) for device in devices):
        spec = _with_devices(spec, _without_lists)
    if "DRAPartitionableDevicesType" not in gates and stored.partition_type_attribute is None:
        spec = replace(spec, partition_type_attribute=None)
    if "DRAOptionalNodeOperations" not in gates and not stored.skip_node_operations:
        spec = replace(spec, skip_node_operations=())
    return spec


def _with_devices(spec: ResourceSliceSpec, change: Callable[[Device], Device]) -> ResourceSliceSpec:
    return replace(spec, devices=tuple(map(change, spec.devices))) if spec.devices else spec


def _is_partitionable(spec: ResourceSliceSpec) -> bool:
    if spec.shared_counters or spec.per_device_node_selection is not None:
        return True
    return any(
        device.consumes_counters
        or device.node_name is not None
        or device.node_selector is not None
        or device.all_nodes is not None
        for device in spec.devices
    )


def _is_shareable(device: Device) -> bool:
    if device.allow_multiple_allocations is not None:
        return True
    return any(capacity.request_policy is not None for capacity in device.capacity.values())


def _without_sharing(device: Device) -> Device:
    capacity = {name: replace(capacity, request_policy=None) for name, capacity in device.capacity.items()}
    return replace(device, allow_multiple_allocations=None, capacity=capacity)


def _without_groups(device: Device) -> Device:
    consumed = tuple(replace(consumption, compatibility_groups=()) for consumption in device.consumes_counters)
    return replace(device, consumes_counters=consumed)


def _has_list_attribute(device: Device) -> bool:
    return any(has_list(attribute) for attribute in device.attributes.values())


def _without_lists(device: Device) -> Device:
    if not _has_list_attribute(device):
        return device
    return replace(device, attributes={name: _scalar(attribute) for name, attribute in device.attributes.items()})


def _scalar(attribute: DeviceAttribute) -> DeviceAttribute:
    return replace(attribute, int_values=None, bool_values=None, string_values=None, version_values=None)
