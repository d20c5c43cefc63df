"""Devices as vendors describe them: attributes, capacity, counters, taints, node selection."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import field

from dray.api.meta import ApiStruct, Int64, Time, written
from dray.api.nodeselectors import NodeSelector
from dray.api.quantities import Quantity


class PoolID(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class SharedDeviceID(NamedTuple):
    """One share of a device that allows multiple allocations; `share_id` is empty for a dedicated one."""

    driver: str
    pool: str
    device: str
    share_id: str


class DeviceAttribute(ApiStruct, frozen=True):
    """Exactly one of these is set in a valid attribute. Field names avoid Python's builtins."""

    int_value: Int64 | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[Int64, ...] | None = field(default=None, name="ints")
    bool_values: tuple[bool, ...] | None = field(default=None, name="bools")
    string_values: tuple[str, ...] | None = field(default=None, name="strings")
    version_values: tuple[str, ...] | None = field(default=None, name="versions")


class CapacityRequestPolicyRange(ApiStruct, frozen=True):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(ApiStruct, frozen=True):
    default: Quantity | None = written(None)
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(ApiStruct, frozen=True):
    value: Quantity = written(Quantity.ZERO)
    request_policy: CapacityRequestPolicy | None = None


class Counter(ApiStruct, frozen=True):
    value: Quantity = written(Quantity.ZERO)


class CounterSet(ApiStruct, frozen=True):
    name: str = written("")
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(ApiStruct, frozen=True):
    counter_set: str = written("")
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(ApiStruct, frozen=True):
    key: str = written("")
    value: str = ""
    effect: str = written("")
    time_added: Time | None = None


class NodeAllocatableMapping(ApiStruct, frozen=True):
    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(ApiStruct, frozen=True):
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(ApiStruct, frozen=True):
    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(ApiStruct, frozen=True):
    name: str = written("")
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] = {}
