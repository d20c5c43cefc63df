"""What a driver author writes: a `Driver` that names its devices and makes them usable.

    class MyGpus(Driver):
        name = "gpu.example.com"

        def devices(self):
            for index in range(8):
                yield make_device(f"gpu-{index}", attributes={"index": index}, capacity={"memory": "40Gi"})

        async def prepare(self, claim, devices, config):
            return {device: ContainerEdits(env=(f"GPU={device.name}",)) for device in devices}

        async def unprepare(self, claim):
            ...

`prepare` may be called again for a claim that is prepared already or half-way (after a crash), and `unprepare` for
one that isn't: both must be safe to repeat. The SDK never runs two calls for the same claim at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, cast

from dray.api.cdi import ContainerEdits
from dray.api.devices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
)
from dray.api.meta import Json
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.api.quantities import Quantity
from dray.driver.pools import Pool

AttributeValue: TypeAlias = bool | int | str | Sequence[bool] | Sequence[int] | Sequence[str] | DeviceAttribute
Amount: TypeAlias = str | int | Quantity
HealthState: TypeAlias = Literal["Healthy", "Unhealthy", "Unknown"]


@dataclass(frozen=True, slots=True)
class ClaimRef:
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """One device that the claim was given from this driver. `request` may be `request/subrequest`."""

    request: str
    pool: str
    name: str
    share_id: str | None = None
    admin_access: bool = False
    consumed_capacity: tuple[tuple[str, Quantity], ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """Opaque parameters for this driver. Class configuration comes first, so that the claim's can override it."""

    source: Literal["FromClass", "FromClaim"]
    requests: tuple[str, ...]
    parameters: Json

    def applies_to(self, request: str) -> bool:
        return not self.requests or request in self.requests or request.split("/", 1)[0] in self.requests


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    device: str
    health: HealthState
    message: str = ""
    pool: str = ""
    """Empty: the pool named after the node."""


Prepared: TypeAlias = Mapping[AllocatedDevice, ContainerEdits | Sequence[str]]
"""For each device either the edits (the SDK writes the CDI file) or names of CDI devices that exist already."""


class PrepareError(Exception):
    """Raised by `prepare` or `unprepare` with a message for the pod's events; the node agent retries."""


class Driver(ABC):
    name: ClassVar[str]
    """A DNS name that the vendor owns; the domain of attributes without one."""

    _on_change: Callable[[], None] | None = None

    def devices(self) -> Iterable[Device]:
        """The devices of this node, for the pool named after the node."""
        return ()

    def pools(self, node_name: str) -> Iterable[Pool]:
        """Override for several pools on a node, or for shared counters."""
        return (Pool(name=node_name, devices=tuple(self.devices())),)

    def cluster_pools(self) -> Iterable[Pool]:
        """Network-attached devices. They belong to no node: one `PoolController` publishes them for the cluster."""
        return ()

    @abstractmethod
    async def prepare(
        self, claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]
    ) -> Prepared:
        """Make the devices usable by the claim's containers. Raise `PrepareError` with a reason if it can't be done."""

    @abstractmethod
    async def unprepare(self, claim: ClaimRef) -> None:
        """Undo `prepare`, whatever of it was done."""

    async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        """Override to report health: yield the state of all devices now, and again whenever something changes."""
        return
        yield ()  # makes this an async generator: one that never reports

    @property
    def reports_health(self) -> bool:
        return type(self).health is not Driver.health

    def refresh(self) -> None:
        """Call this when the devices changed (plugged, tainted, new attributes): they are published anew."""
        if self._on_change is not None:
            self._on_change()

    def attach(self, on_change: Callable[[], None] | None) -> None:
        """For the SDK: whom `refresh` tells."""
        self._on_change = on_change


def make_device(
    name: str,
    *,
    attributes: Mapping[str, AttributeValue] | None = None,
    capacity: Mapping[str, Amount | DeviceCapacity] | None = None,
    consumes: Mapping[str, Mapping[str, Amount]] | None = None,
    taints: Sequence[DeviceTaint] = (),
    allow_multiple_allocations: bool = False,
) -> Device:
    """A device from plain Python values; use `dray.api.devices.Device` for everything else it can have.

    `consumes` is what a partition takes of the pool's shared counters, by counter set.
    """
    return Device(
        name=name,
        attributes={key: make_attribute(value) for key, value in (attributes or {}).items()},
        capacity={key: _capacity(value) for key, value in (capacity or {}).items()},
        consumes_counters=tuple(
            DeviceCounterConsumption(counter_set=name, counters=_counters(amounts))
            for name, amounts in (consumes or {}).items()
        ),
        taints=tuple(taints),
        allow_multiple_allocations=True if allow_multiple_allocations else None,
    )


def make_attribute(value: AttributeValue) -> DeviceAttribute:
    """bool, int or str become the attribute of that type, sequences a list; a version needs `version()`."""
    match value:
        case DeviceAttribute():
            return value
        case bool():
            return DeviceAttribute(bool_value=value)
        case int():
            return DeviceAttribute(int_value=value)
        case str():
            return DeviceAttribute(string_value=value)
    types = {type(item) for item in value}
    if types == {bool}:
        return DeviceAttribute(bool_values=tuple(cast(Sequence[bool], value)))
    if types == {int}:
        return DeviceAttribute(int_values=tuple(cast(Sequence[int], value)))
    if types == {str}:
        return DeviceAttribute(string_values=tuple(cast(Sequence[str], value)))
    raise TypeError(f"a list attribute has items of one type (bool, int or str), got {value!r}")


def version(text: str) -> DeviceAttribute:
    """An attribute that compares as a semantic version."""
    return DeviceAttribute(version_value=text)


def make_counters(name: str, amounts: Mapping[str, Amount]) -> CounterSet:
    """What partitions of one piece of hardware have to share, for `Pool(shared_counters=...)`."""
    return CounterSet(name=name, counters=_counters(amounts))


def shared_capacity(total: Amount, *, default: Amount, step: Amount) -> DeviceCapacity:
    """A capacity of which every claim takes a part: multiples of `step`, and `default` if it doesn't say how much."""
    least = _quantity(step)
    return DeviceCapacity(
        value=_quantity(total),
        request_policy=CapacityRequestPolicy(
            default=_quantity(default), valid_range=CapacityRequestPolicyRange(min=least, step=least)
        ),
    )


def select_nodes(labels: Mapping[str, Sequence[str]]) -> NodeSelector:
    """Nodes that have, for each of these labels, one of its values: who can reach a network-attached pool."""
    requirements = tuple(
        NodeSelectorRequirement(key=key, operator="In", values=tuple(values)) for key, values in labels.items()
    )
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=requirements),))


def _counters(amounts: Mapping[str, Amount]) -> dict[str, Counter]:
    return {name: Counter(value=_quantity(amount)) for name, amount in amounts.items()}


def _capacity(value: Amount | DeviceCapacity) -> DeviceCapacity:
    return value if isinstance(value, DeviceCapacity) else DeviceCapacity(value=_quantity(value))


def _quantity(value: Amount) -> Quantity:
    return value if isinstance(value, Quantity) else Quantity.parse(str(value))
