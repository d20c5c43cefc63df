"""The spec of a ResourceSlice. Handwritten rules."""

from __future__ import annotations

from typing import Final

from dray.api.devices import Device
from dray.api.features import FeatureGates
from dray.api.meta import NIL
from dray.api.slices import ResourceSliceSpec
from dray.validation.attributes import has_list
from dray.validation.counters import check_counter_sets
from dray.validation.devices import check_device, check_skipped_operations
from dray.validation.fields import Errors, Path, invalid, required
from dray.validation.lists import check_unique, is_too_many
from dray.validation.metadata import IMMUTABLE
from dray.validation.names import check_driver, check_node_name, check_pool, is_fully_qualified
from dray.validation.rendering import internal_form
from dray.validation.selectors import check_node_selector

MAX_DEVICES: Final = 128
MAX_ADVANCED_DEVICES: Final = 64
"""If any of them has taints, consumes counters or has a list as attribute."""

_ONE_NODE_FIELD: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


def check_slice(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, path: Path, errors: Errors, gates: FeatureGates
) -> None:
    check_driver(spec.driver, path.child("driver"), errors)
    place = path.child("pool")
    check_pool(spec.pool.name, place.child("name"), errors)
    if spec.pool.resource_slice_count <= 0:
        count = spec.pool.resource_slice_count
        errors.append(invalid(place.child("resourceSliceCount"), count, "must be greater than zero"))
    if spec.pool.generation < 0:
        generation = spec.pool.generation
        errors.append(invalid(place.child("generation"), generation, "must be greater than or equal to zero"))
    if old is not None:
        if spec.pool.name != old.pool.name:
            errors.append(invalid(place.child("name"), spec.pool.name, IMMUTABLE))
        if spec.driver != old.driver:
            errors.append(invalid(path.child("driver"), spec.driver, IMMUTABLE))
        if spec.node_name != old.node_name:
            errors.append(invalid(path.child("nodeName"), spec.node_name, IMMUTABLE))
    _check_node_selection(spec, path, errors)
    if spec.shared_counters is not NIL and spec.devices is not NIL:
        errors.append(invalid(path, "", "only one of `sharedCounters` or `devices` is allowed"))
    if spec.devices:
        _check_devices(spec, old, path.child("devices"), errors, gates)
    if spec.shared_counters:
        check_counter_sets(spec.shared_counters, path.child("sharedCounters"), errors)
    if spec.partition_type_attribute is not None:
        _check_partition_type(spec, spec.partition_type_attribute, path, errors)
    if spec.skip_node_operations:
        check_skipped_operations(spec.skip_node_operations, path.child("skipNodeOperations"), errors)


def _check_node_selection(spec: ResourceSliceSpec, path: Path, errors: Errors) -> None:
    chosen = []
    if spec.node_name is not None:
        if spec.node_name:
            chosen.append("`nodeName`")
            check_node_name(spec.node_name, path.child("nodeName"), errors)
        else:
            detail = "must be either unset or set to a non-empty string"
            errors.append(invalid(path.child("nodeName"), spec.node_name, detail))
    if spec.node_selector is not None:
        chosen.append("`nodeSelector`")
        place = path.child("nodeSelector")
        check_node_selector(spec.node_selector, place, errors)
        terms = spec.node_selector.node_selector_terms
        if len(terms) != 1:
            # Selectors of several slices are merged in an allocation; with one term each that stays simple.
            detail = "must have exactly one node selector term"
            errors.append(invalid(place.child("nodeSelectorTerms"), internal_form(tuple(terms)), detail))
    for name, value in (("allNodes", spec.all_nodes), ("perDeviceNodeSelection", spec.per_device_node_selection)):
        if value:
            chosen.append(f"`{name}`")
        elif value is not None:
            errors.append(invalid(path.child(name), False, "must be either unset or set to true"))
    if not chosen:
        errors.append(required(path, _ONE_NODE_FIELD))
    elif len(chosen) > 1:
        detail = f"{_ONE_NODE_FIELD}, but multiple fields are set"
        errors.append(invalid(path, f"{{{', '.join(chosen)}}}", detail))


def _check_devices(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, path: Path, errors: Errors, gates: FeatureGates
) -> None:
    devices = spec.devices
    limit = MAX_DEVICES
    if len(devices) > MAX_ADVANCED_DEVICES and any(_is_advanced(device) for device in devices):
        limit = MAX_ADVANCED_DEVICES
    if is_too_many(devices, limit, path, errors):
        return
    # The first of that name, should there be several.
    stored = {device.name: device for device in reversed(old.devices)} if old is not None else {}
    selects_nodes = bool(spec.per_device_node_selection)
    for position, device in enumerate(devices):
        check_device(device, stored.get(device.name), path.index(position), errors, gates, selects_nodes=selects_nodes)
    if len({device.name for device in devices}) != len(devices):
        check_unique((device.name for device in devices), path, errors)


def _is_advanced(device: Device) -> bool:
    if device.taints or device.consumes_counters:
        return True
    return any(has_list(attribute) for attribute in device.attributes.values())


def _check_partition_type(spec: ResourceSliceSpec, name: str, path: Path, errors: Errors) -> None:
    if not any(device.consumes_counters for device in spec.devices):
        detail = "may only be set on a slice which declares devices that consume counters"
        errors.append(invalid(path.child("partitionTypeAttribute"), name, detail))
        return
    if not is_fully_qualified(name):
        return  # No device can have it; that the name is malformed is reported by the declarative rule.
    # An attribute of the driver's own domain may be written without it.
    bare = name.removeprefix(spec.driver + "/")
    for position, device in enumerate(spec.devices):
        if not device.consumes_counters:
            continue
        attribute = device.attributes.get(name) or device.attributes.get(bare)
        place = path.child("devices").index(position).child("attributes").key(name)
        if attribute is None:
            detail = "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"
            errors.append(required(place, detail))
        elif attribute.string_value is None:
            detail = "must be a string value because `partitionTypeAttribute` names this attribute"
            errors.append(invalid(place, internal_form(attribute), detail))
