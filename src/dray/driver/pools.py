"""Pools of devices and how they are cut into ResourceSlices.

Pure: takes what the driver wants to publish and what is published, returns what to create, update and delete.

A pool's slices carry a generation and their number. Readers use a pool only if all slices of its newest generation
are there, so while several slices change, the pool is briefly unusable instead of wrong. The generation is raised
only when the set of devices or the number of slices changes; new attributes or taints of a device update just its
slice, and an unchanged pool is left alone, so that schedulers aren't woken for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from dray.api.devices import CounterSet, Device
from dray.api.nodeselectors import NodeSelector
from dray.api.slices import ResourcePool, ResourceSlice, ResourceSliceSpec

MAX_DEVICES = 128
MAX_DEVICES_ADVANCED = 64
"""With taints or counters a device may be large, so fewer fit into a slice."""
MAX_COUNTER_SETS = 8

T = TypeVar("T")


@dataclass(frozen=True)
class Pool:
    """What a driver publishes under one name; node-local unless it says which nodes can reach it."""

    name: str
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    skip_node_operations: tuple[str, ...] = ()

    @property
    def is_node_local(self) -> bool:
        return not (self.node_selector or self.all_nodes or self.per_device_node_selection)


@dataclass(frozen=True)
class Changes:
    """What makes the published slices equal to the wanted ones; apply creates and updates before deletes."""

    create: tuple[ResourceSliceSpec, ...]
    update: tuple[tuple[ResourceSlice, ResourceSliceSpec], ...]
    delete: tuple[ResourceSlice, ...]

    def __bool__(self) -> bool:
        return bool(self.create or self.update or self.delete)


def plan_changes(driver: str, node_name: str, pools: Iterable[Pool], published: Iterable[ResourceSlice]) -> Changes:
    """`published` are the driver's own slices as they are now."""
    by_pool: dict[str, list[ResourceSlice]] = {}
    for existing in published:
        by_pool.setdefault(existing.spec.pool.name, []).append(existing)
    create: list[ResourceSliceSpec] = []
    update: list[tuple[ResourceSlice, ResourceSliceSpec]] = []
    delete: list[ResourceSlice] = []
    for pool in pools:
        changes = _plan_pool(driver, node_name, pool, by_pool.pop(pool.name, []))
        create += changes.create
        update += changes.update
        delete += changes.delete
    for leftover in by_pool.values():
        delete += leftover
    return Changes(tuple(create), tuple(update), tuple(delete))


def _plan_pool(driver: str, node_name: str, pool: Pool, published: list[ResourceSlice]) -> Changes:
    newest = max((item.spec.pool.generation for item in published), default=0)
    current = [item for item in published if item.spec.pool.generation == newest]
    wanted = list(_cut(driver, node_name, pool))
    partners = _pair(wanted, current)
    is_same_layout = len(wanted) == len(current) and all(partner is not None for partner in partners)
    counts_are_right = all(item.spec.pool.resource_slice_count == len(wanted) for item in current)
    generation = newest if is_same_layout and counts_are_right and newest > 0 else newest + 1

    create: list[ResourceSliceSpec] = []
    update: list[tuple[ResourceSlice, ResourceSliceSpec]] = []
    kept: set[str] = set()
    for spec, partner in zip(wanted, partners, strict=True):
        final = msgspec.structs.replace(
            spec, pool=ResourcePool(name=pool.name, generation=generation, resource_slice_count=len(wanted))
        )
        if partner is None:
            create.append(final)
            continue
        kept.add(partner.metadata.name)
        final = _with_known_times(final, partner.spec)
        if partner.spec != final:
            update.append((partner, final))
    return Changes(tuple(create), tuple(update), tuple(item for item in published if item.metadata.name not in kept))


def _with_known_times(wanted: ResourceSliceSpec, published: ResourceSliceSpec) -> ResourceSliceSpec:
    """The server fills in when a taint was added; a driver that doesn't say keeps what is there."""
    known = {
        (device.name, taint.key, taint.value, taint.effect): taint.time_added
        for device in published.devices
        for taint in device.taints
    }
    if not known:
        return wanted
    devices = tuple(
        msgspec.structs.replace(
            device,
            taints=tuple(
                taint
                if taint.time_added
                else msgspec.structs.replace(
                    taint, time_added=known.get((device.name, taint.key, taint.value, taint.effect))
                )
                for taint in device.taints
            ),
        )
        for device in wanted.devices
    )
    return msgspec.structs.replace(wanted, devices=devices)


def _cut(driver: str, node_name: str, pool: Pool) -> Iterator[ResourceSliceSpec]:
    """The pool's slices, without generation and count. Counter sets and devices never share a slice."""
    base = ResourceSliceSpec(
        driver=driver,
        pool=ResourcePool(name=pool.name),
        node_name=node_name if pool.is_node_local else None,
        node_selector=pool.node_selector,
        all_nodes=True if pool.all_nodes else None,
        per_device_node_selection=True if pool.per_device_node_selection else None,
        skip_node_operations=pool.skip_node_operations,
    )
    for counters in _batches(pool.shared_counters, MAX_COUNTER_SETS):
        yield msgspec.structs.replace(base, shared_counters=counters)
    is_advanced = any(device.taints or device.consumes_counters for device in pool.devices)
    limit = MAX_DEVICES_ADVANCED if is_advanced else MAX_DEVICES
    for devices in _batches(pool.devices, limit):
        yield msgspec.structs.replace(base, devices=devices)
    if not pool.devices and not pool.shared_counters:
        yield base  # an empty pool is published too: "there is nothing" is information


def _pair(wanted: Sequence[ResourceSliceSpec], current: Iterable[ResourceSlice]) -> list[ResourceSlice | None]:
    """For each wanted slice the published one that holds the same things by name, and can be changed into it."""
    available = {_identity(item.spec): item for item in current}
    return [available.pop(_identity(spec), None) for spec in wanted]


def _identity(spec: ResourceSliceSpec) -> tuple[object, ...]:
    """Node name, driver and pool of a slice are immutable; the rest of a slice is named by its content."""
    names = tuple(device.name for device in spec.devices)
    return (spec.node_name, names, tuple(counters.name for counters in spec.shared_counters))


def _batches(items: tuple[T, ...], size: int) -> Iterator[tuple[T, ...]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
