"""Small random clusters and claims that are hard on the allocator: few devices, many features at once."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from dray.api.claims import DeviceConstraint, DeviceRequest, DeviceToleration, ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.devices import Device, DeviceID, DeviceTaint
from dray.api.quantities import Quantity
from dray.api.slices import ResourceSlice
from tests.unit.allocator.world import (
    DRIVER,
    make_capacity,
    make_choice,
    make_claim,
    make_class,
    make_constraint,
    make_device,
    make_request,
    make_slice,
)

NUMA = f"{DRIVER}/numa"
SELECTORS = (
    'device.attributes["gpu.example.com"].?model.orValue("") == "A"',
    'device.attributes["gpu.example.com"].?numa.orValue(0) != 1',
    'has(device.attributes["gpu.example.com"].numa)',
    "device.allowMultipleAllocations",
    "!device.allowMultipleAllocations",
)
FAILING = 'device.attributes["gpu.example.com"].model == "A"'
"""Fails on a device without a model."""

SETS = (
    "size(devices) == 2",
    'devices.map(d, d.attributes["gpu.example.com"].?index.orValue(0)).sum() % 3 == 0',
    'devices.map(d, d.attributes["gpu.example.com"].?index.orValue(0)).isSorted()',
    'devices.all(d, d.attributes["gpu.example.com"].?model.orValue("") == "A")',
    'devices[0].attributes["gpu.example.com"].?index.orValue(0) > 1',
    'devices.map(d, d.attributes["gpu.example.com"].?index.orValue(0)).max() - '
    'devices.map(d, d.attributes["gpu.example.com"].?index.orValue(0)).min() == size(devices) - 1',
    "false",
)


class World(NamedTuple):
    slices: tuple[ResourceSlice, ...]
    classes: tuple[DeviceClass, ...]
    used: frozenset[DeviceID]
    consumed: dict[DeviceID, dict[str, Quantity]]
    claims: tuple[ResourceClaim, ...]


@st.composite
def devices(draw: st.DrawFn, name: str, index: int, counters: int) -> Device:
    attributes: dict[str, object] = {"index": index}
    if draw(st.integers(0, 5)):
        attributes["model"] = draw(st.sampled_from("AB"))
    if draw(st.integers(0, 7)):
        numa = st.integers(0, 2)
        attributes["numa"] = draw(st.one_of(numa, numa, st.lists(numa, min_size=1, max_size=2)))
    shareable = draw(st.integers(0, 3)) == 0
    capacity = {"memory": draw(st.sampled_from(("1Gi", "2Gi", "4Gi")))} if draw(st.booleans()) else {}
    drawn = {f"set-{draw(st.integers(0, counters - 1))}": {"slots": draw(st.integers(1, 3))}} if counters else {}
    taints = (DeviceTaint(key="busy", value="yes", effect="NoSchedule"),) if draw(st.integers(0, 9)) == 0 else ()
    return make_device(
        name,
        attributes,
        capacity=capacity,
        counters=drawn if draw(st.booleans()) else {},
        taints=taints,
        allow_multiple_allocations=True if shareable else None,
    )


@st.composite
def slices(draw: st.DrawFn) -> tuple[ResourceSlice, ...]:
    made: list[ResourceSlice] = []
    index = 0
    for pool in range(draw(st.integers(1, 2))):
        counters = draw(st.integers(0, 2))
        members: list[Device] = []
        for number in range(draw(st.integers(2, 5))):
            members.append(draw(devices(f"dev-{number}", index, counters)))
            index += 1
        count = 2 if counters else 1
        made.append(make_slice(members, name=f"slice-{pool}", pool=f"pool-{pool}", count=count))
        if counters:
            amounts = {f"set-{each}": {"slots": draw(st.integers(2, 5))} for each in range(counters)}
            made.append(make_slice(name=f"slice-{pool}-c", pool=f"pool-{pool}", count=2, shared_counters=amounts))
    return tuple(made)


@st.composite
def requests(draw: st.DrawFn, name: str, failing: bool) -> DeviceRequest:
    pool = (*SELECTORS, FAILING) if failing else SELECTORS
    selectors = draw(st.lists(st.sampled_from(pool), max_size=1))
    tolerations = (DeviceToleration(key="busy", operator="Exists"),) if draw(st.booleans()) else ()
    kind = draw(st.integers(0, 9))
    if kind < 2:
        alternatives = [
            (f"sub-{number}", draw(st.integers(1, 3)), draw(st.sampled_from(("", *pool))))
            for number in range(draw(st.integers(1, 3)))
        ]
        return make_choice(name, *alternatives)
    if kind == 2:
        return make_request(name, 0, *selectors, everything=True, tolerations=tolerations)
    capacity = {"memory": draw(st.sampled_from(("1Gi", "2Gi")))} if draw(st.integers(0, 3)) == 0 else None
    admin = True if draw(st.integers(0, 7)) == 0 else None
    count = draw(st.sampled_from((1, 1, 1, 2, 2, 3)))
    return make_request(name, count, *selectors, capacity=capacity, tolerations=tolerations, admin_access=admin)


@st.composite
def constraints(draw: st.DrawFn, names: list[str], sets: bool) -> DeviceConstraint:
    covered = draw(st.lists(st.sampled_from(names), unique=True))
    kind = draw(st.integers(0, 2 if sets else 1))
    if kind == 0:
        return make_constraint(*covered, match=NUMA)
    if kind == 1:
        return make_constraint(*covered, distinct=draw(st.sampled_from((NUMA, f"{DRIVER}/model"))))
    return make_constraint(*covered, cel=draw(st.sampled_from(SETS)))


@st.composite
def claims(draw: st.DrawFn, number: int, *, failing: bool, sets: bool) -> ResourceClaim:
    names = [f"req-{each}" for each in range(draw(st.sampled_from((1, 1, 2, 2, 3))))]
    made = [draw(requests(name, failing)) for name in names]
    limits = draw(st.lists(constraints(names, sets), max_size=draw(st.sampled_from((0, 1, 1, 2)))))
    return make_claim(*made, constraints=limits, name=f"claim-{number}")


@st.composite
def worlds(draw: st.DrawFn, *, failing: bool = False, sets: bool = False) -> World:
    published = draw(slices())
    used: set[DeviceID] = set()
    consumed: dict[DeviceID, dict[str, Quantity]] = {}
    for slice_ in published:
        for device in slice_.spec.devices:
            if draw(st.integers(0, 6)):
                continue
            id = DeviceID(DRIVER, slice_.spec.pool.name, device.name)
            if device.allow_multiple_allocations:
                requests_ = make_capacity(dict.fromkeys(device.capacity, "1Gi"))
                consumed[id] = dict(requests_.requests) if requests_ else {}
            else:
                used.add(id)
    asked = tuple(draw(claims(number, failing=failing, sets=sets)) for number in range(draw(st.integers(1, 2))))
    return World(published, (make_class("gpu"),), frozenset(used), consumed, asked)
