"""Nodes as the scheduler and the controllers read them."""

from __future__ import annotations

from msgspec import field

from dray.api.meta import ApiStruct, Json
from dray.api.taints import Taint
from dray.api.views import ResourceList, ViewCondition, ViewMeta, find_condition, view_as


class NodeSpec(ApiStruct, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = field(default="", name="providerID")


class NodeAddress(ApiStruct, frozen=True):
    type: str = ""
    address: str = ""


class NodeSystemInfo(ApiStruct, frozen=True):
    architecture: str = ""
    operating_system: str = ""
    kubelet_version: str = ""


class NodeStatus(ApiStruct, frozen=True):
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[ViewCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    declared_features: tuple[str, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(ApiStruct, frozen=True):
    metadata: ViewMeta = ViewMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels


def view_node(obj: Json) -> Node:
    """Raises InvalidView."""
    return view_as(obj, Node)


def is_ready(node: Node) -> bool:
    """Whether the node's agent reports that it can run pods."""
    condition = find_condition(node.status.conditions, "Ready")
    return condition is not None and condition.status == "True"
