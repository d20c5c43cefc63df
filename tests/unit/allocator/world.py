"""Builders for small clusters: slices, classes and claims in one line each, and a question to the allocator."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dray.allocator.index import Allocation, Index
from dray.allocator.nodes import NodeFacts
from dray.api.claims import (
    AllocationResult,
    CapacityRequirements,
    CELDeviceConstraint,
    CELDeviceSelector,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from dray.api.classes import DeviceClass, DeviceClassSpec
from dray.api.devices import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
)
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import ObjectMeta
from dray.api.quantities import Quantity
from dray.api.slices import ResourcePool, ResourceSlice, ResourceSliceSpec

DRIVER = "gpu.example.com"
NODE = "node-1"


def make_attribute(value: Any) -> DeviceAttribute:
    match value:
        case bool():
            return DeviceAttribute(bool_value=value)
        case int():
            return DeviceAttribute(int_value=value)
        case str():
            return DeviceAttribute(string_value=value)
        case [int(), *_]:
            return DeviceAttribute(int_values=tuple(value))
        case [str(), *_]:
            return DeviceAttribute(string_values=tuple(value))
    raise TypeError(value)


def make_device(
    name: str,
    attributes: dict[str, Any] | None = None,
    *,
    capacity: dict[str, str] | None = None,
    counters: dict[str, dict[str, int]] | None = None,
    **fields: Any,
) -> Device:
    return Device(
        name=name,
        attributes={key: make_attribute(value) for key, value in (attributes or {}).items()},
        capacity={key: DeviceCapacity(value=Quantity.parse(text)) for key, text in (capacity or {}).items()},
        consumes_counters=tuple(
            DeviceCounterConsumption(
                counter_set=name,
                counters={each: Counter(value=Quantity.of(amount)) for each, amount in amounts.items()},
            )
            for name, amounts in (counters or {}).items()
        ),
        **fields,
    )


def make_counters(amounts: dict[str, int]) -> dict[str, Counter]:
    return {name: Counter(value=Quantity.of(amount)) for name, amount in amounts.items()}


def make_devices(count: int, **attributes: Callable[[int], object]) -> tuple[Device, ...]:
    """`dev-0`, `dev-1`, …; attributes are functions of the number."""
    return tuple(
        make_device(f"dev-{number}", {name: value(number) for name, value in attributes.items()})
        for number in range(count)
    )


def make_slice(
    devices: Iterable[Device] = (),
    *,
    name: str = "",
    node: str | None = NODE,
    pool: str = "",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    shared_counters: dict[str, dict[str, int]] | None = None,
    **fields: Any,
) -> ResourceSlice:
    pool = pool or node or "pool"
    return ResourceSlice(
        metadata=ObjectMeta(name=name or f"{pool}-{driver}"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool, generation=generation, resource_slice_count=count),
            node_name=None if fields.get("all_nodes") or fields.get("node_selector") else node,
            devices=tuple(devices),
            shared_counters=tuple(
                CounterSet(
                    name=name, counters={each: Counter(value=Quantity.of(value)) for each, value in sets.items()}
                )
                for name, sets in (shared_counters or {}).items()
            ),
            **fields,
        ),
    )


def make_selectors(texts: Sequence[str]) -> tuple[DeviceSelector, ...]:
    return tuple(DeviceSelector(cel=CELDeviceSelector(expression=text)) for text in texts)


def make_class(name: str = "gpu", *selectors: str) -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name),
        spec=DeviceClassSpec(selectors=make_selectors(selectors or (f'device.driver == "{name}.example.com"',))),
    )


def make_request(
    name: str = "req",
    count: int = 1,
    *selectors: str,
    device_class: str = "gpu",
    capacity: dict[str, str] | None = None,
    everything: bool = False,
    **fields: Any,
) -> DeviceRequest:
    return DeviceRequest(
        name=name,
        exactly=ExactDeviceRequest(
            device_class_name=device_class,
            selectors=make_selectors(selectors),
            allocation_mode="All" if everything else "ExactCount",
            count=0 if everything else count,
            capacity=make_capacity(capacity),
            **fields,
        ),
    )


def make_capacity(capacity: dict[str, str] | None) -> CapacityRequirements | None:
    if capacity is None:
        return None
    return CapacityRequirements(requests={name: Quantity.parse(text) for name, text in capacity.items()})


def make_choice(name: str, *alternatives: tuple[str, int, str]) -> DeviceRequest:
    """A prioritized list: (name, count, selector) each."""
    return DeviceRequest(
        name=name,
        first_available=tuple(
            DeviceSubRequest(
                name=sub,
                device_class_name="gpu",
                selectors=make_selectors([selector] if selector else []),
                allocation_mode="ExactCount",
                count=count,
            )
            for sub, count, selector in alternatives
        ),
    )


def make_constraint(
    *requests: str, match: str | None = None, distinct: str | None = None, cel: str | None = None
) -> DeviceConstraint:
    return DeviceConstraint(
        requests=requests,
        match_attribute=match,
        distinct_attribute=distinct,
        cel=None if cel is None else CELDeviceConstraint(expression=cel),
    )


def make_claim(
    *requests: DeviceRequest, constraints: Sequence[DeviceConstraint] = (), name: str = "claim"
) -> ResourceClaim:
    return ResourceClaim(
        metadata=ObjectMeta(namespace="default", name=name),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests, constraints=tuple(constraints))),
    )


def make_allocation(*devices: str, pool: str = NODE, driver: str = DRIVER) -> AllocationResult:
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(
                DeviceRequestAllocationResult(request="req", driver=driver, pool=pool, device=device)
                for device in devices
            )
        )
    )


def make_holder(name: str, *devices: str, pool: str = NODE, driver: str = DRIVER) -> ResourceClaim:
    """A claim that has these devices."""
    return ResourceClaim(
        metadata=ObjectMeta(namespace="default", name=name),
        status=ResourceClaimStatus(allocation=make_allocation(*devices, pool=pool, driver=driver)),
    )


def make_index(
    *slices: ResourceSlice,
    classes: Sequence[DeviceClass] = (),
    nodes: Sequence[NodeFacts | str] = (NODE,),
    used: Sequence[str] = (),
    gates: FeatureGates = ALL_GATES,
) -> Index:
    numbers = itertools.count(1)
    index = Index(gates, make_id=lambda: f"00000000-0000-0000-0000-{next(numbers):012}")
    for slice_ in slices:
        index.apply_slice(slice_)
    for device_class in classes or (make_class("gpu"), make_class("nic")):
        index.apply_class(device_class)
    for node in nodes:
        index.apply_node(node if isinstance(node, NodeFacts) else NodeFacts(node))
    if used:
        index.apply_claim(make_holder("holder", *used))
    return index


def names(allocation: Allocation | None) -> list[list[str]] | None:
    """The devices of each claim."""
    if allocation is None:
        return None
    return [[result.device for result in claim.devices.results] for claim in allocation]


def ask(index: Index, *claims: ResourceClaim, node: str = NODE) -> list[list[str]] | None:
    return names(index.allocate(node, claims))
