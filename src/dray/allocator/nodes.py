"""Nodes, as far as allocation cares for them, and which slices and devices they can reach."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from dray.api.devices import Device
from dray.api.meta import Json
from dray.api.node_matching import NodeMatcher, compile_node_selector
from dray.api.nodeselectors import NodeSelector
from dray.api.slices import ResourceSlice

OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"


class NodeFacts(NamedTuple):
    """What allocation reads of a node."""

    name: str
    labels: Mapping[str, str] = {}
    declared_features: tuple[str, ...] = ()

    @classmethod
    def of_json(cls, node: Json) -> NodeFacts:
        metadata = node.get("metadata") or {}
        declared = (node.get("status") or {}).get("declaredFeatures") or ()
        return cls(metadata.get("name", ""), metadata.get("labels") or {}, tuple(declared))


def can_reach(
    node: NodeFacts, node_name: str | None, all_nodes: bool | None, node_selector: NodeSelector | None
) -> bool:
    """Whether these three fields of a slice or device admit the node; raises ValueError for a broken selector."""
    if node_name:
        return node.name == node_name
    if all_nodes:
        return True
    if node_selector is not None:
        return _compiled(node_selector).matches(node.labels, node.name)
    return False


@lru_cache(maxsize=4096)
def _compiled(selector: NodeSelector) -> NodeMatcher:
    return compile_node_selector(selector)


def can_reach_device(node: NodeFacts, device: Device) -> bool:
    return can_reach(node, device.node_name, device.all_nodes, device.node_selector)


def keys_read(slice_: ResourceSlice) -> frozenset[str] | None:
    """The labels that decide whether a node reaches this slice; None if its name decides."""
    selectors = [slice_.spec.node_selector]
    if slice_.spec.per_device_node_selection:
        if any(device.node_name for device in slice_.spec.devices):
            return None
        selectors += [device.node_selector for device in slice_.spec.devices]
    keys: set[str] = set()
    for selector in selectors:
        for term in selector.node_selector_terms if selector else ():
            if term.match_fields:
                return None
            keys.update(requirement.key for requirement in term.match_expressions)
    return frozenset(keys)
