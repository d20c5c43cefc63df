"""Pools: the slices of one pool as a node sees them, checked and put in the order in which devices are tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from dray.api.devices import CounterSet, Device, DeviceID, PoolID
from dray.api.features import FeatureGates
from dray.api.slices import ResourceSlice

if TYPE_CHECKING:
    from dray.allocator.shapes import Occupancy, PoolShape
    from dray.allocator.state import PoolUse

PoolStatus = Literal["usable", "incomplete", "invalid"]


class Pool:
    """One pool as seen from some nodes. Compared by identity; never changes, apart from what it remembers.

    `devices` are those that the node might use, in the order in which they are tried. Counters are shared by the whole
    pool, so `elsewhere` keeps the slices that only other nodes can use. `home` names the node that alone can use
    the pool; it is empty if there may be several.
    """

    def __init__(
        self,
        id: PoolID,
        status: PoolStatus,
        slices: tuple[ResourceSlice, ...] = (),
        counter_sets: tuple[CounterSet, ...] = (),
        elsewhere: tuple[ResourceSlice, ...] = (),
        reason: str = "",
        home: str = "",
    ) -> None:
        self.id = id
        self.home = home
        self.status: PoolStatus = status
        self.reason = reason
        self.slices = slices
        self.counter_sets = counter_sets
        self.elsewhere = elsewhere
        self.devices: tuple[Device, ...]
        self.owners: tuple[int, ...]
        """Per device, the position of its slice in `slices`; empty if there is one slice."""
        if len(slices) == 1:
            self.devices, self.owners = slices[0].spec.devices, ()
        else:
            self.devices = tuple(device for slice_ in slices for device in slice_.spec.devices)
            self.owners = tuple(index for index, slice_ in enumerate(slices) for _ in slice_.spec.devices)
        self.shapes: dict[object, PoolShape] = {}
        """What views have made of it, by their tokens."""
        self.occupancy: tuple[PoolUse, Occupancy] | None = None
        """What was last in use, and what that meant."""

    def slice_of(self, position: int) -> ResourceSlice:
        return self.slices[self.owners[position] if self.owners else 0]

    def device_id(self, position: int) -> DeviceID:
        return DeviceID(self.id.driver, self.id.pool, self.devices[position].name)

    @cached_property
    def positions(self) -> dict[str, int]:
        return {device.name: position for position, device in enumerate(self.devices)}

    @cached_property
    def has_binding_conditions(self) -> bool:
        return any(device.binding_conditions for device in self.devices)


def is_readable(slice_: ResourceSlice, gates: FeatureGates) -> bool:
    """Without compatibility groups, a slice that uses them can't be understood: it is as if it weren't there."""
    return "DRADeviceCompatibilityGroups" in gates or not any(
        consumption.compatibility_groups for device in slice_.spec.devices for consumption in device.consumes_counters
    )


def newest_generation(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """The slices of the newest generation among those given, in the given order."""
    newest: list[ResourceSlice] = []
    for slice_ in slices:
        if newest:
            difference = slice_.spec.pool.generation - newest[0].spec.pool.generation
            if difference < 0:
                continue
            if difference > 0:
                newest.clear()
        newest.append(slice_)
    return newest


def build_pool(
    pool_id: PoolID, relevant: list[ResourceSlice], everywhere: Sequence[ResourceSlice], gates: FeatureGates
) -> Pool | None:
    """The pool as a node sees it which can use the `relevant` slices (all of one generation, at least one).

    None if the driver is replacing this generation by a newer one that has nothing for the node. Other slices of the
    pool, `everywhere`, are looked at only if the relevant ones aren't as many as the pool should have.
    """
    wanted = relevant[0].spec.pool.resource_slice_count
    everything: list[ResourceSlice] | None = None
    if len(relevant) != wanted:
        generation = relevant[0].spec.pool.generation
        everything = []
        for slice_ in everywhere:
            if slice_.spec.pool.generation > generation:
                return None
            if slice_.spec.pool.generation == generation:
                everything.append(slice_)
        if len(everything) != wanted:
            return Pool(pool_id, "incomplete", home=_home(everything))
    return _checked(pool_id, relevant, everything or relevant, gates)


def _checked(
    pool_id: PoolID, relevant: list[ResourceSlice], everything: list[ResourceSlice], gates: FeatureGates
) -> Pool:
    home = _home(everything)
    in_order = sorted(relevant, key=_name)
    if "DRAPartitionableDevices" not in gates:
        reason = _duplicate_device(in_order)
        if reason:
            return Pool(pool_id, "invalid", reason=reason, home=home)
        return Pool(pool_id, "usable", tuple(in_order), home=home)
    with_devices = tuple(slice_ for slice_ in in_order if not slice_.spec.shared_counters)
    here = {id(slice_) for slice_ in relevant}
    elsewhere = tuple(slice_ for slice_ in everything if id(slice_) not in here)
    # Counters count for the whole pool, whichever node their slice names.
    counter_sets = tuple(
        counter_set for slice_ in (*in_order, *elsewhere) for counter_set in slice_.spec.shared_counters
    )
    reason = (
        _duplicate_device(with_devices)
        or _duplicate_counter_set(counter_sets)
        or _unknown_counter(counter_sets, (*in_order, *elsewhere))
    )
    if reason:
        return Pool(pool_id, "invalid", reason=reason, home=home)
    return Pool(pool_id, "usable", with_devices, counter_sets, elsewhere, home=home)


def _home(slices: Sequence[ResourceSlice]) -> str:
    first = slices[0].spec.node_name or ""
    return first if all(slice_.spec.node_name == first for slice_ in slices) else ""


def _name(slice_: ResourceSlice) -> str:
    return slice_.metadata.name


def _duplicate_device(slices: Sequence[ResourceSlice]) -> str:
    names = [device.name for slice_ in slices for device in slice_.spec.devices]
    if len(set(names)) == len(names):
        return ""
    return f"duplicate device name {next(name for place, name in enumerate(names) if name in names[:place])}"


def _duplicate_counter_set(counter_sets: Sequence[CounterSet]) -> str:
    seen: set[str] = set()
    for counter_set in counter_sets:
        if counter_set.name in seen:
            return f"duplicate counter set name {counter_set.name}"
        seen.add(counter_set.name)
    return ""


def _unknown_counter(counter_sets: Sequence[CounterSet], slices: Iterable[ResourceSlice]) -> str:
    known = {counter_set.name: counter_set.counters for counter_set in counter_sets}
    for slice_ in slices:
        for consumes in [device.consumes_counters for device in slice_.spec.devices if device.consumes_counters]:
            for consumption in consumes:
                counters = known.get(consumption.counter_set)
                if counters is None:
                    return f"counter set {consumption.counter_set} not found"
                for name in consumption.counters:
                    if name not in counters:
                        return f"counter {name} not found in counter set {consumption.counter_set}"
    return ""
