"""The slices and nodes of a cluster, and which pools each node can reach.

Everything is computed when it is asked for and then kept until a change touches it. A change to a slice of one node
touches that node (and the nodes that share a pool with it); a change to a slice that several nodes can reach
touches all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from dray.allocator.errors import NodeSelectionFailed
from dray.allocator.layers import Layered
from dray.allocator.nodes import NodeFacts, can_reach, can_reach_device, keys_read
from dray.allocator.pools import Pool, build_pool, is_readable, newest_generation
from dray.api.devices import PoolID
from dray.api.features import FeatureGates
from dray.api.slices import ResourceSlice

K = TypeVar("K")

EVERY_DEVICE: Final = -1
"""The mask of a pool whose devices aren't tied to nodes one by one."""

Touched = frozenset[str] | None
"""The nodes that a change touches; None: all of them."""

NO_NODE: Final[frozenset[str]] = frozenset()


class ReachedPool(NamedTuple):
    pool: Pool
    mask: int = EVERY_DEVICE
    """Which devices of the pool this node can use."""
    broken: int = 0
    """Devices whose node selector can't be evaluated."""


class Reach(NamedTuple):
    """The pools that a node can reach, in the order in which they are tried."""

    node: NodeFacts
    pools: tuple[ReachedPool, ...]
    error: NodeSelectionFailed | None = None

    @property
    def invalid_pools(self) -> tuple[tuple[PoolID, str], ...]:
        return tuple((pool.id, pool.reason) for pool, _, _ in self.pools if pool.status == "invalid")


class _Entry(NamedTuple):
    arrival: int
    slice: ResourceSlice
    pool: PoolID


class Inventory:
    def __init__(self, gates: FeatureGates) -> None:
        self._gates: Final = gates
        self._arrivals = 0
        self._slices: Layered[Hashable, _Entry] = Layered()
        self._local: Layered[str, tuple[_Entry, ...]] = Layered()
        self._shared: Layered[Hashable, _Entry] = Layered()
        self._pools: Layered[PoolID, tuple[_Entry, ...]] = Layered()
        self._nodes: Layered[str, NodeFacts] = Layered()
        self._reach: Layered[str, Reach] = Layered()
        self._selection: _Selection | None = None
        self._built: dict[PoolID, dict[tuple[int, ...], tuple[tuple[_Entry, ...], Pool | None]]] = {}
        """Shared by all forks: an entry holds only for the very tuple of slices that it was made from."""

    def fork(self) -> Inventory:
        other = Inventory(self._gates)
        other._arrivals = self._arrivals
        other._slices = self._slices.fork()
        other._local = self._local.fork()
        other._shared = self._shared.fork()
        other._pools = self._pools.fork()
        other._nodes = self._nodes.fork()
        other._reach = self._reach.fork()
        other._selection = self._selection
        other._built = self._built
        return other

    # Nodes

    def apply_node(self, node: NodeFacts) -> None:
        self._nodes[node.name] = node
        self._reach.discard(node.name)

    def remove_node(self, name: str) -> None:
        self._nodes.discard(name)
        self._reach.discard(name)

    def node(self, name: str) -> NodeFacts | None:
        return self._nodes.get(name)

    def node_names(self) -> Iterator[str]:
        return iter(self._nodes)

    # Slices

    def apply_slice(self, slice_: ResourceSlice, key: Hashable = None) -> Touched:
        """Add or replace a slice. `key` tells slices apart; it is the object's name unless given."""
        key = slice_.metadata.name if key is None else key
        old = self._slices.get(key)
        if old is None:
            self._arrivals += 1
            return self._link(key, _Entry(self._arrivals, slice_, slice_.spec.pool_id))
        if old.slice.spec == slice_.spec:
            return NO_NODE
        return _union(self._unlink(key, old), self._link(key, _Entry(old.arrival, slice_, slice_.spec.pool_id)))

    def remove_slice(self, key: Hashable) -> Touched:
        old = self._slices.get(key)
        if old is None:
            return NO_NODE
        return self._unlink(key, old)

    def slices(self) -> Iterator[ResourceSlice]:
        return (entry.slice for _, entry in self._slices.items())

    def pool_slices(self, id: PoolID) -> tuple[ResourceSlice, ...]:
        return tuple(entry.slice for entry in self._pools.get(id) or ())

    def _link(self, key: Hashable, entry: _Entry) -> Touched:
        spec = entry.slice.spec
        self._slices[key] = entry
        self._pools[entry.pool] = _inserted(self._pools.get(entry.pool) or (), entry)
        if spec.node_name:
            self._local[spec.node_name] = _inserted(self._local.get(spec.node_name) or (), entry)
        else:
            self._shared[key] = entry
        return self._touch(entry)

    def _unlink(self, key: Hashable, entry: _Entry) -> Touched:
        spec = entry.slice.spec
        touched = self._touch(entry)
        self._slices.discard(key)
        _shrink(self._pools, entry.pool, entry)
        if entry.pool not in self._pools:
            self._built.pop(entry.pool, None)
        if spec.node_name:
            _shrink(self._local, spec.node_name, entry)
        else:
            self._shared.discard(key)
        return touched

    def _touch(self, entry: _Entry) -> Touched:
        """The nodes that may see this slice or one of the same pool."""
        names: set[str] = set()
        for other in self._pools.get(entry.pool) or ():
            if not other.slice.spec.node_name:
                self._selection = None
                self._reach.clear()
                return None
            names.add(other.slice.spec.node_name)
        for name in names:
            self._reach.discard(name)
        return frozenset(names)

    # Reach

    def reach(self, name: str) -> Reach:
        """What the node can reach. A node that isn't known is taken as one without labels."""
        found = self._reach.get(name)
        if found is None:
            found = self._gather(self._nodes.get(name) or NodeFacts(name))
            self._reach[name] = found
        return found

    def _gather(self, node: NodeFacts) -> Reach:
        if self._selection is None:
            self._selection = _Selection(
                [entry for _, entry in self._shared.items() if is_readable(entry.slice, self._gates)], self._gates
            )
        by_pool: dict[PoolID, list[_Entry]] = {}
        try:
            for entry in self._local.get(node.name) or ():
                if is_relevant(entry.slice, node, self._gates) and is_readable(entry.slice, self._gates):
                    by_pool.setdefault(entry.pool, []).append(entry)
            for entry in self._selection.for_node(node):
                by_pool.setdefault(entry.pool, []).append(entry)
        except NodeSelectionFailed as error:
            return Reach(node, (), error)
        found = (self._pool(id, entries) for id, entries in by_pool.items())
        pools = sorted((pool for pool in found if pool is not None), key=_order)
        return Reach(node, tuple(_reached(pool, node) for pool in pools))

    def _pool(self, id: PoolID, relevant: list[_Entry]) -> Pool | None:
        key = tuple([entry.arrival for entry in relevant])
        entries = self._pools[id]
        built = self._built.setdefault(id, {})
        known = built.get(key)
        if known is not None and known[0] is entries:
            return known[1]
        newest = newest_generation([entry.slice for entry in relevant])
        everywhere = [entry.slice for entry in entries if is_readable(entry.slice, self._gates)]
        pool = build_pool(id, newest, everywhere, self._gates)
        built[key] = (entries, pool)
        return pool


def is_relevant(slice_: ResourceSlice, node: NodeFacts, gates: FeatureGates) -> bool:
    """Whether the node has a use for the slice; raises NodeSelectionFailed for a broken selector."""
    spec = slice_.spec
    if "DRAPartitionableDevices" not in gates and (spec.per_device_node_selection is not None or spec.shared_counters):
        return False
    where = f"slice {slice_.metadata.name}"
    try:
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return can_reach(node, spec.node_name, spec.all_nodes, spec.node_selector)
        if spec.per_device_node_selection:
            for device in spec.devices:
                where = f"device {device.name} in slice {slice_.metadata.name}"
                if can_reach_device(node, device):
                    return True
    except ValueError as error:
        raise NodeSelectionFailed(where, str(error)) from error
    # Nothing that we know is set: some future extension, not for us.
    return False


class _Selection:
    """Finds the shared slices for a node. Nodes with the same values of the labels that matter share the answer."""

    def __init__(self, entries: list[_Entry], gates: FeatureGates) -> None:
        self._gates = gates
        self._by_labels: list[_Entry] = []
        self._by_name: list[_Entry] = []
        keys: set[str] = set()
        for entry in sorted(entries, key=_arrival):
            read = keys_read(entry.slice)
            if read is None:
                self._by_name.append(entry)
            else:
                self._by_labels.append(entry)
                keys.update(read)
        self._keys = tuple(sorted(keys))
        self._answers: dict[tuple[str | None, ...], tuple[_Entry, ...]] = {}

    def for_node(self, node: NodeFacts) -> Sequence[_Entry]:
        key = tuple([node.labels.get(label) for label in self._keys])
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = self._relevant(self._by_labels, node)
        if not self._by_name:
            return found
        return sorted(found + self._relevant(self._by_name, node), key=_arrival)

    def _relevant(self, entries: list[_Entry], node: NodeFacts) -> tuple[_Entry, ...]:
        return tuple(entry for entry in entries if is_relevant(entry.slice, node, self._gates))


def _reached(pool: Pool, node: NodeFacts) -> ReachedPool:
    if not any(slice_.spec.per_device_node_selection for slice_ in pool.slices):
        return ReachedPool(pool)
    mask = broken = 0
    for position, device in enumerate(pool.devices):
        try:
            if not pool.slice_of(position).spec.per_device_node_selection or can_reach_device(node, device):
                mask |= 1 << position
        except ValueError:
            broken |= 1 << position
    return ReachedPool(pool, mask, broken)


def _order(pool: Pool) -> tuple[bool, PoolID]:
    return (pool.has_binding_conditions, pool.id)


def _arrival(entry: _Entry) -> int:
    return entry.arrival


def _inserted(entries: tuple[_Entry, ...], entry: _Entry) -> tuple[_Entry, ...]:
    if not entries or entries[-1].arrival < entry.arrival:
        return (*entries, entry)
    return tuple(sorted((*entries, entry), key=_arrival))


def _shrink(table: Layered[K, tuple[_Entry, ...]], key: K, entry: _Entry) -> None:
    rest = tuple(other for other in table[key] if other is not entry)
    if rest:
        table[key] = rest
    else:
        table.discard(key)


def _union(one: Touched, other: Touched) -> Touched:
    return None if one is None or other is None else one | other
