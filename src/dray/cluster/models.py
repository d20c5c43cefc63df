"""What simulated nodes have: devices by driver, and the device classes that go with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dray.api.devices import CounterSet, Device
from dray.api.meta import RESOURCE_GROUP, Json
from dray.driver.pools import Pool

ClusterPools = Mapping[str, tuple[Pool, ...]]
"""Network-attached devices by driver."""


@dataclass(frozen=True)
class DriverModel:
    """The devices of one driver on one node."""

    name: str
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()

    def pool(self, node_name: str) -> Pool:
        return Pool(name=node_name, devices=self.devices, shared_counters=self.shared_counters)


@dataclass(frozen=True)
class NodeModel:
    drivers: tuple[DriverModel, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


def _no_pools(nodes: int) -> ClusterPools:
    return {}


@dataclass(frozen=True)
class Model:
    """`make_node` gets a node's index from 0; `make_cluster_pools` the number of nodes."""

    name: str
    description: str
    make_node: Callable[[int], NodeModel]
    classes: tuple[Json, ...] = ()
    make_cluster_pools: Callable[[int], ClusterPools] = _no_pools
    default_nodes: int = 3


def make_class(name: str, expression: str = "") -> Json:
    """By default: everything of the driver of that name."""
    return {
        "apiVersion": f"{RESOURCE_GROUP}/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression or f'device.driver == "{name}"'}}]},
    }


def alike(*drivers: DriverModel, labels: Mapping[str, str] | None = None) -> Callable[[int], NodeModel]:
    """Every node has the same."""
    node = NodeModel(drivers, labels or {})
    return lambda index: node
