"""Declarative rules for slices, classes and taint rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dray.api.classes import DeviceClassSpec
from dray.api.devices import Counter, CounterSet, Device, DeviceAttribute, DeviceTaint
from dray.api.features import FeatureGates
from dray.api.slices import ResourceSliceSpec
from dray.validation.attributes import union_fields
from dray.validation.claim_rules import opaque_rules
from dray.validation.claims import MAX_CONFIGS, MAX_SELECTORS
from dray.validation.counters import MAX_CONSUMPTIONS, MAX_COUNTER_SETS
from dray.validation.declarative import beta, first_with_key, limit, one_of, require, unique
from dray.validation.devices import MAX_BINDING_CONDITIONS
from dray.validation.fields import Errors, FieldError, Path, forbidden, invalid
from dray.validation.names import extended_resource_format, fully_qualified_format, short_name_format
from dray.validation.status_rules import skipped_operation_rules
from dray.validation.tolerations import TAINT_EFFECTS

MAX_COMPATIBILITY_GROUPS: Final = 2

_ATTRIBUTE_FIELDS: Final = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_MAPPING_FIELDS: Final = ("capacityKey", "deviceMultiplier")


def slice_beta_rules(spec: ResourceSliceSpec, old: ResourceSliceSpec | None, path: Path, errors: Errors) -> None:
    """Rules with a handwritten counterpart.

    On create they find nothing where their counterparts found nothing, so they need not be asked then.
    """
    if old is None or spec.devices != old.devices:
        place = path.child("devices")
        for position, device in enumerate(spec.devices):
            errors += beta(_device_beta_rules(device, place.index(position)))
    if old is None or spec.shared_counters != old.shared_counters:
        place = path.child("sharedCounters")
        if found := limit(spec.shared_counters, MAX_COUNTER_SETS, place):
            errors += beta(found)
            return
        names = [counter_set.name for counter_set in spec.shared_counters]
        errors += beta(unique(spec.shared_counters, names, place))
        for position, counter_set in enumerate(spec.shared_counters):
            stored = None
            if old is not None:
                stored = first_with_key(old.shared_counters, counter_set.name, lambda item: item.name)
            if counter_set != stored:
                errors += beta(_counter_set_rules(counter_set, stored, place.index(position)))


def slice_standard_rules(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, path: Path, errors: Errors, gates: FeatureGates
) -> None:
    """Rules that stand alone."""
    name = spec.partition_type_attribute
    if name is not None and (old is None or name != old.partition_type_attribute):
        place = path.child("partitionTypeAttribute")
        if "DRAPartitionableDevicesType" in gates:
            errors += fully_qualified_format(name, place)
        else:
            errors.append(forbidden(place, ""))
    if spec.skip_node_operations and (old is None or spec.skip_node_operations != old.skip_node_operations):
        errors += skipped_operation_rules(spec.skip_node_operations, path.child("skipNodeOperations"))
    if old is not None and spec.devices == old.devices:
        return
    for position, device in enumerate(spec.devices):
        if device.consumes_counters or device.node_allocatable_resources:
            place = path.child("devices").index(position)
            errors += _device_standard_rules(device, place)


def _device_beta_rules(device: Device, path: Path) -> list[FieldError]:
    """Devices of a slice have no key for these rules, so they have no stored counterpart."""
    found: list[FieldError] = []
    for name, attribute in device.attributes.items():
        found += _attribute_rules(attribute, path.child("attributes"), name)
    place = path.child("consumesCounters")
    if too_many := limit(device.consumes_counters, MAX_CONSUMPTIONS, place):
        found += too_many
    else:
        names = [consumption.counter_set for consumption in device.consumes_counters]
        found += unique(device.consumes_counters, names, place)
        for position, consumption in enumerate(device.consumes_counters):
            item = place.index(position)
            found += require(consumption.counter_set, item.child("counterSet"), short_name_format)
            found += _counter_rules(consumption.counters, {}, item.child("counters"))
    for position, taint in enumerate(device.taints):
        found += taint_rules(taint, None, path.child("taints").index(position))
    found += limit(device.binding_conditions, MAX_BINDING_CONDITIONS, path.child("bindingConditions"))
    failures = device.binding_failure_conditions
    found += limit(failures, MAX_BINDING_CONDITIONS, path.child("bindingFailureConditions"))
    return found


def _attribute_rules(attribute: DeviceAttribute, path: Path, name: str) -> list[FieldError]:
    fields = union_fields(attribute)
    # An empty list is no member of the union.
    chosen = [member for member, value in zip(_ATTRIBUTE_FIELDS, fields, strict=True) if value not in (None, ())]
    return _union(chosen, _ATTRIBUTE_FIELDS, path.key(name)) if len(chosen) != 1 else []


def _union(chosen: list[str], members: tuple[str, ...], path: Path) -> list[FieldError]:
    listed = ", ".join(f"`{member}`" for member in members)
    if len(chosen) > 1:
        detail = f"must specify exactly one of: {listed}"
        return [invalid(path, f"{{{', '.join(chosen)}}}", detail, origin="union")]
    return [invalid(path, "", f"must specify one of: {listed}", origin="union")]


def _device_standard_rules(device: Device, path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    if len(device.consumes_counters) <= MAX_CONSUMPTIONS:
        for position, consumption in enumerate(device.consumes_counters):
            groups = consumption.compatibility_groups
            place = path.child("consumesCounters").index(position).child("compatibilityGroups")
            if too_many := limit(groups, MAX_COMPATIBILITY_GROUPS, place):
                found += too_many
                continue
            found += unique(groups, groups, place)
            for number, group in enumerate(groups):
                found += short_name_format(group, place.index(number))
    for name, resource in device.node_allocatable_resources.items():
        mapping = resource.mapping
        if mapping is not None:
            members = (mapping.capacity_key, mapping.device_multiplier)
            chosen = [member for member, value in zip(_MAPPING_FIELDS, members, strict=True) if value is not None]
            if len(chosen) != 1:
                place = path.child("nodeAllocatableResources").key(name).child("mapping")
                found += _union(chosen, _MAPPING_FIELDS, place)
    return found


def _counter_set_rules(counter_set: CounterSet, old: CounterSet | None, path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    if old is None:
        # With a stored counterpart it is the same: it is the key.
        found += require(counter_set.name, path.child("name"), short_name_format)
    if old is None or counter_set.counters != old.counters:
        found += _counter_rules(counter_set.counters, old.counters if old is not None else {}, path.child("counters"))
    return found


def _counter_rules(counters: Mapping[str, Counter], old: Mapping[str, Counter], path: Path) -> list[FieldError]:
    if not counters:
        return require("", path)
    return [error for name in counters if name not in old for error in short_name_format(name, path)]


def taint_rules(taint: DeviceTaint, old: DeviceTaint | None, path: Path) -> list[FieldError]:
    if old is not None and taint.effect == old.effect:
        return []
    return require(taint.effect, path.child("effect")) + one_of(taint.effect, TAINT_EFFECTS, path.child("effect"))


def class_rules(spec: DeviceClassSpec, old: DeviceClassSpec | None, path: Path, errors: Errors) -> None:
    if old is None or spec.selectors != old.selectors:
        errors += beta(limit(spec.selectors, MAX_SELECTORS, path.child("selectors")))
    if old is None or spec.config != old.config:
        place = path.child("config")
        found = limit(spec.config, MAX_CONFIGS, place)
        if not found:
            for position, config in enumerate(spec.config):
                found += opaque_rules(config.opaque, place.index(position).child("opaque"))
        errors += beta(found)
    name = spec.extended_resource_name
    if name is not None and (old is None or name != old.extended_resource_name):
        errors += beta(extended_resource_format(name, path.child("extendedResourceName")))
