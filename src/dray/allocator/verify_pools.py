"""For the checker: which devices a node can use, straight from the definition of a pool.

Written without regard to speed, and without a line in common with the inventory: the two must not share a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from dray.allocator.nodes import NodeFacts
from dray.api.devices import Counter, Device, DeviceID, PoolID
from dray.api.features import FeatureGates
from dray.api.labels import InvalidSelector
from dray.api.node_matching import NodeMatcher, compile_node_selector
from dray.api.nodeselectors import NodeSelector
from dray.api.slices import ResourceSlice

PoolStatus = Literal["usable", "incomplete", "invalid", "replaced", "absent"]
CounterSets = Mapping[str, Mapping[str, Counter]]


@dataclass(frozen=True, slots=True)
class Published:
    """A device and the slice in which it stands."""

    id: DeviceID
    device: Device
    slice: ResourceSlice

    @property
    def selection(self) -> tuple[str | None, bool | None, NodeSelector | None]:
        """The fields that say which nodes reach it: its own, or those of its slice."""
        holder = self.device if self.slice.spec.per_device_node_selection else self.slice.spec
        return holder.node_name, holder.all_nodes, holder.node_selector


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool as one node sees it."""

    status: PoolStatus
    problem: str = ""
    """Why it isn't usable."""
    devices: Mapping[str, Published] = field(default_factory=dict)
    """What the node can reach, by name."""
    everywhere: Mapping[str, Device] = field(default_factory=dict)
    """All devices of the pool, also those of other nodes: they draw on the same counters."""
    counters: CounterSets = field(default_factory=dict)


ABSENT: Final = PoolView("absent", "no slice of the pool is for this node")


def reaches(selection: tuple[str | None, bool | None, NodeSelector | None], node: NodeFacts) -> bool:
    """Whether a node is selected. A selector that can't be read selects none."""
    node_name, all_nodes, selector = selection
    if node_name:
        return node_name == node.name
    if all_nodes:
        return True
    return selector is not None and selects(selector, node)


def selects(selector: NodeSelector, node: NodeFacts) -> bool:
    matcher = _compiled(selector)
    return matcher is not None and matcher.matches(node.labels, node.name)


@lru_cache(maxsize=1024)
def _compiled(selector: NodeSelector) -> NodeMatcher | None:
    try:
        return compile_node_selector(selector)
    except InvalidSelector:
        return None


class Catalog:
    """All slices of a cluster, asked pool by pool and node by node."""

    def __init__(self, slices: Iterable[ResourceSlice], gates: FeatureGates) -> None:
        self._partitions: Final = "DRAPartitionableDevices" in gates
        self._pools: Final[dict[PoolID, list[ResourceSlice]]] = {}
        self._views: Final[dict[tuple[str, PoolID], PoolView]] = {}
        groups = "DRADeviceCompatibilityGroups" in gates
        for slice_ in slices:
            if groups or not _uses_groups(slice_):
                self._pools.setdefault(slice_.spec.pool_id, []).append(slice_)

    def view(self, node: NodeFacts, id: PoolID) -> PoolView:
        key = (node.name, id)
        if key not in self._views:
            self._views[key] = self._find_view(node, id)
        return self._views[key]

    def views(self, node: NodeFacts) -> Iterator[tuple[PoolID, PoolView]]:
        """All pools that have something for the node."""
        for id in self._pools:
            view = self.view(node, id)
            if view.status != "absent":
                yield id, view

    def _find_view(self, node: NodeFacts, id: PoolID) -> PoolView:
        everything = self._pools.get(id, [])
        relevant = [each for each in everything if self._is_relevant(each, node)]
        if not relevant:
            return ABSENT
        generation = max(each.spec.pool.generation for each in relevant)
        relevant = [each for each in relevant if each.spec.pool.generation == generation]
        # Slices of the node itself are looked at first, and the first one says how many there are.
        wanted = min(relevant, key=lambda each: not each.spec.node_name).spec.pool.resource_slice_count
        whole = relevant
        if len(relevant) != wanted:
            if any(each.spec.pool.generation > generation for each in everything):
                return PoolView("replaced", "a newer generation of the pool is being published")
            whole = [each for each in everything if each.spec.pool.generation == generation]
            if len(whole) != wanted:
                return PoolView("incomplete", f"{len(whole)} of {wanted} slices of generation {generation} are there")
        return self._build(id, relevant, whole)

    def _is_relevant(self, slice_: ResourceSlice, node: NodeFacts) -> bool:
        spec = slice_.spec
        if not self._partitions and (spec.per_device_node_selection is not None or spec.shared_counters):
            return False
        if spec.per_device_node_selection and not (spec.node_name or spec.all_nodes or spec.node_selector):
            return any(reaches((each.node_name, each.all_nodes, each.node_selector), node) for each in spec.devices)
        return reaches((spec.node_name, spec.all_nodes, spec.node_selector), node)

    def _build(self, id: PoolID, relevant: list[ResourceSlice], whole: list[ResourceSlice]) -> PoolView:
        devices: dict[str, Published] = {}
        counters: dict[str, Mapping[str, Counter]] = {}
        for slice_ in relevant:
            for device in slice_.spec.devices:
                if device.name in devices:
                    return PoolView("invalid", f"two devices are called {device.name}")
                devices[device.name] = Published(DeviceID(*id, device.name), device, slice_)
        # Counters belong to the whole pool, whichever node their slice is for.
        for slice_ in whole:
            for counter_set in slice_.spec.shared_counters:
                if counter_set.name in counters:
                    return PoolView("invalid", f"two counter sets are called {counter_set.name}")
                counters[counter_set.name] = counter_set.counters
        everywhere = {device.name: device for slice_ in whole for device in slice_.spec.devices}
        if self._partitions:
            for slice_ in whole:
                for device in slice_.spec.devices:
                    if (problem := _unknown_counter(device, counters)) is not None:
                        return PoolView("invalid", problem)
        return PoolView("usable", "", devices, everywhere, counters)


def _unknown_counter(device: Device, counters: CounterSets) -> str | None:
    for use in device.consumes_counters:
        if use.counter_set not in counters:
            return f"device {device.name} consumes the counter set {use.counter_set}, which doesn't exist"
        for name in use.counters:
            if name not in counters[use.counter_set]:
                return f"device {device.name} consumes {use.counter_set}/{name}, which doesn't exist"
    return None


def _uses_groups(slice_: ResourceSlice) -> bool:
    return any(use.compatibility_groups for device in slice_.spec.devices for use in device.consumes_counters)
