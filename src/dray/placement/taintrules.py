"""DeviceTaintRules laid over slices: the allocator sees devices with all their taints, whoever set them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule


def is_about(rule: DeviceTaintRule, slice_: ResourceSlice) -> bool:
    """Whether the rule may taint a device of the slice. A rule without a selector taints nothing."""
    selector = rule.spec.device_selector
    if selector is None:
        return False
    return selector.driver in (None, slice_.spec.driver) and selector.pool in (None, slice_.spec.pool.name)


def apply_rules(slice_: ResourceSlice, rules: Mapping[str, DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of all rules that match; rules apply in the order of their names."""
    matching = [rules[name] for name in sorted(rules) if is_about(rules[name], slice_)]
    if not matching:
        return slice_
    devices = tuple(
        replace(device, taints=(*device.taints, *(rule.spec.taint for rule in hits)))
        if (hits := list(_hitting(matching, device.name)))
        else device
        for device in slice_.spec.devices
    )
    return replace(slice_, spec=replace(slice_.spec, devices=devices))


def _hitting(rules: Iterable[DeviceTaintRule], device: str) -> Iterable[DeviceTaintRule]:
    for rule in rules:
        selector = rule.spec.device_selector
        if selector is not None and selector.device in (None, device):
            yield rule
