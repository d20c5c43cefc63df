"""One device of a ResourceSlice, and what its allocation copies from it. Handwritten rules.

There are many more devices than anything else, and nearly all are fine: checks come before paths, and paths are made
when something is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dray.api.devices import Device, DeviceCapacity, NodeAllocatableMapping, NodeAllocatableResource
from dray.api.features import FeatureGates
from dray.api.names import qualified_name_problems, truncate_key
from dray.validation.attributes import SHOWN_KEY, check_attributes
from dray.validation.capacity import check_capacity
from dray.validation.counters import check_consumed_counters
from dray.validation.fields import Errors, Path, invalid, mark_covered, not_found, required
from dray.validation.lists import check_unique, is_too_many
from dray.validation.names import check_label, check_label_key, check_node_name, check_qualified, dns_label_problems
from dray.validation.rendering import JsonText
from dray.validation.selectors import check_node_selector
from dray.validation.tolerations import check_taint

MAX_ATTRIBUTES_AND_CAPACITIES: Final = 32
MAX_TAINTS: Final = 16
MAX_BINDING_CONDITIONS: Final = 4

_ONE_NODE_FIELD: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_NO_NODE_FIELD: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)


def check_device(
    device: Device, old: Device | None, path: Path, errors: Errors, gates: FeatureGates, *, selects_nodes: bool
) -> None:
    """`old` is the stored device of that name. Its capacity and taints stay valid if they are unchanged."""
    if dns_label_problems(device.name):
        check_label(device.name, path.child("name"), errors)
    attributes, capacity = device.attributes, device.capacity
    if (count := len(attributes) + len(capacity)) > MAX_ATTRIBUTES_AND_CAPACITIES:
        detail = f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES_AND_CAPACITIES}"
        errors.append(invalid(path, count, detail))
    if attributes:
        check_attributes(attributes, path, errors)
    if capacity and (old is None or old.capacity != capacity):
        _check_capacities(capacity, path, errors, gates, shareable=bool(device.allow_multiple_allocations))
    if device.taints and (old is None or old.taints != device.taints):
        place = path.child("taints")
        if not is_too_many(device.taints, MAX_TAINTS, place, errors):
            for position, taint in enumerate(device.taints):
                check_taint(taint, place.index(position), errors)
    if device.consumes_counters:
        check_consumed_counters(device.consumes_counters, path.child("consumesCounters"), errors)
    if selects_nodes:
        _check_node_selection(device, path, errors)
    elif device.node_name is not None or device.node_selector is not None or device.all_nodes is not None:
        errors.append(invalid(path, None, _NO_NODE_FIELD))
    if device.binding_conditions or device.binding_failure_conditions:
        check_binding_conditions(device.binding_conditions, device.binding_failure_conditions, path, errors)
    if device.node_allocatable_resources:
        place = path.child("nodeAllocatableResources")
        _check_node_allocatable(device.node_allocatable_resources, capacity, place, errors)


def _check_capacities(
    capacities: Mapping[str, DeviceCapacity], path: Path, errors: Errors, gates: FeatureGates, *, shareable: bool
) -> None:
    for name, capacity in capacities.items():
        if qualified_name_problems(name):
            check_qualified(name, path.child("capacity"), errors)
        if capacity.request_policy is not None:
            place = path.child("capacity").key(truncate_key(name, SHOWN_KEY))
            check_capacity(capacity, place, errors, gates, shareable=shareable)


def _check_node_selection(device: Device, path: Path, errors: Errors) -> None:
    chosen = []
    if device.node_name is not None:
        if device.node_name:
            chosen.append("`nodeName`")
            check_node_name(device.node_name, path.child("nodeName"), errors)
        else:
            errors.append(invalid(path.child("nodeName"), device.node_name, "must not be empty"))
    if device.node_selector is not None:
        chosen.append("`nodeSelector`")
        check_node_selector(device.node_selector, path.child("nodeSelector"), errors)
    if device.all_nodes is not None:
        if device.all_nodes:
            chosen.append("`allNodes`")
        else:
            errors.append(invalid(path.child("allNodes"), False, "must be either unset or set to true"))
    if not chosen:
        errors.append(required(path, _ONE_NODE_FIELD))
    elif len(chosen) > 1:
        errors.append(invalid(path, f"{{{', '.join(chosen)}}}", _ONE_NODE_FIELD))


def check_binding_conditions(
    conditions: tuple[str, ...], failures: tuple[str, ...], path: Path, errors: Errors
) -> None:
    for name, names in (("bindingConditions", conditions), ("bindingFailureConditions", failures)):
        place = path.child(name)
        if not is_too_many(names, MAX_BINDING_CONDITIONS, place, errors, covered=True):
            for position, condition in enumerate(names):
                check_label_key(condition, place.index(position), errors)
        check_unique(names, place, errors)
    awaited = frozenset(conditions)
    for position, condition in enumerate(failures):
        if condition in awaited:
            place = path.child("bindingFailureConditions").index(position)
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            errors.append(invalid(place, condition, detail))
    if failures and not conditions:
        detail = "bindingConditions are required to use bindingFailureConditions"
        errors.append(invalid(path.child("bindingConditions"), None, detail))
    if conditions and not failures:
        detail = "bindingFailureConditions are required to use bindingConditions"
        errors.append(invalid(path.child("bindingFailureConditions"), None, detail))


def check_skipped_operations(operations: tuple[str, ...], path: Path, errors: Errors) -> None:
    if "NodePrepareResources" in operations and not {"NodeUnprepareResources", "*"} & set(operations):
        detail = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
        errors.append(invalid(path, operations, detail))


def _check_node_allocatable(
    resources: Mapping[str, NodeAllocatableResource], capacity: Mapping[str, DeviceCapacity], path: Path, errors: Errors
) -> None:
    for name, resource in resources.items():
        place = path.key(name)
        if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
            errors.append(invalid(place, JsonText(name), "must be a node allocatable resource name"))
        if resource.mapping is None and resource.overhead is None:
            errors.append(required(place, "at least one of mapping or overhead must be set"))
        if resource.mapping is not None:
            _check_mapping(resource.mapping, capacity, place.child("mapping"), errors)
        if (overhead := resource.overhead) is not None:
            place = place.child("overhead")
            if overhead.per_pod is None and overhead.per_container is None:
                errors.append(invalid(place, "", "at least one of perPod or perContainer must be set"))
            for written, amount in (("perPod", overhead.per_pod), ("perContainer", overhead.per_container)):
                if amount is not None and amount.sign < 0:
                    errors.append(invalid(place.child(written), str(amount), "must be non-negative"))


def _check_mapping(
    mapping: NodeAllocatableMapping, capacity: Mapping[str, DeviceCapacity], path: Path, errors: Errors
) -> None:
    key, multiplier = mapping.capacity_key, mapping.capacity_multiplier
    if key is not None:
        if not key:
            errors.append(invalid(path.child("capacityKey"), "", "capacityKey must not be an empty string"))
        elif key not in capacity:
            errors.append(not_found(path.child("capacityKey"), JsonText(key)))
        if multiplier is None:
            detail = "capacityMultiplier is required when capacityKey is set"
            missing = required(path.child("capacityMultiplier"), detail, origin="dependentRequired")
            errors += mark_covered([missing])
        elif multiplier.sign <= 0:
            errors.append(invalid(path.child("capacityMultiplier"), str(multiplier), "must be positive"))
    if mapping.device_multiplier is not None and mapping.device_multiplier.sign <= 0:
        errors.append(invalid(path.child("deviceMultiplier"), str(mapping.device_multiplier), "must be positive"))
    if multiplier is not None and key is None:
        detail = "capacityKey is required when capacityMultiplier is set"
        errors += mark_covered([required(path.child("capacityKey"), detail, origin="dependentRequired")])
