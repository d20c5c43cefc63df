"""For the checker: what else an allocation must say, given its devices: node selector and configuration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dray.allocator.verify_constraints import is_covered
from dray.allocator.verify_pools import Published
from dray.api.claims import DeviceAllocationConfiguration, DeviceClaim
from dray.api.classes import DeviceClass
from dray.api.node_matching import NAME_FIELD
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

Requirements = dict[tuple[str, str, frozenset[str]], NodeSelectorRequirement]


def expected_node_selector(node: str, devices: Iterable[Published]) -> NodeSelector | None:
    """The node itself if a device is tied to it, else everything that the devices ask of a node."""
    labels: Requirements = {}
    fields: Requirements = {}
    for each in devices:
        node_name, _, selector = each.selection
        if node_name or each.device.binds_to_node:
            return pin_to(node)
        for term in selector.node_selector_terms if selector else ():
            _collect(labels, term.match_expressions)
            _collect(fields, term.match_fields)
    if not labels and not fields:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(labels.values()), match_fields=tuple(fields.values()))
    return NodeSelector(node_selector_terms=(term,))


def pin_to(node: str) -> NodeSelector:
    name = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))


def _collect(into: Requirements, requirements: Iterable[NodeSelectorRequirement]) -> None:
    for each in requirements:
        into.setdefault((each.key, each.operator, frozenset(each.values)), each)


def expected_config(
    claim: DeviceClaim, chosen: Sequence[tuple[str, DeviceClass]]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """From the classes first, then from the claim. `chosen`: the requests that won, and their classes."""
    names = [name for name, _ in chosen]
    configs: list[DeviceAllocationConfiguration] = []
    for device_class in {each.metadata.name: each for _, each in chosen}.values():
        users = tuple(name for name, each in chosen if each.metadata.name == device_class.metadata.name)
        configs += (
            DeviceAllocationConfiguration(source="FromClass", requests=users, opaque=config.opaque)
            for config in device_class.spec.config
        )
    configs += (
        DeviceAllocationConfiguration(source="FromClaim", requests=config.requests, opaque=config.opaque)
        for config in claim.config
        if any(is_covered(config.requests, name) for name in names)
    )
    return tuple(_for_all(config, names) for config in configs)


def _for_all(config: DeviceAllocationConfiguration, names: list[str]) -> DeviceAllocationConfiguration:
    """Without names if it is for all requests anyway."""
    if config.requests and all(is_covered(config.requests, name) for name in names):
        return DeviceAllocationConfiguration(source=config.source, opaque=config.opaque)
    return config
