"""Allocations compared with those of Kubernetes' allocator: one scenario a line (README of the data, section 1)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dray.allocator.errors import AllocationError
from dray.allocator.index import Index
from dray.allocator.nodes import NodeFacts
from dray.allocator.state import AllocatedState
from dray.api.claims import AllocationResult, ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.codec import decode_as, to_json
from dray.api.devices import DeviceID, SharedDeviceID
from dray.api.features import FeatureGates
from dray.api.meta import Json
from dray.api.quantities import Quantity
from dray.api.slices import ResourceSlice
from tests.conformance.runner import Case, has_keys, iter_data

SHARE_ID = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"

GO_FIELDS = {
    "AdminAccess": ("DRAAdminAccess",),
    "CompatibilityGroups": ("DRADeviceCompatibilityGroups",),
    "ConsumableCapacity": ("DRAConsumableCapacity",),
    "DerivedAttributes": ("DRADerivedAttributes",),
    "DeviceBindingAndStatus": ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    "DeviceTaints": ("DRADeviceTaints",),
    "FractionalCapacityRange": ("DRAFractionalCapacityRange",),
    "ListTypeAttributes": ("DRAListTypeAttributes",),
    "OptionalNodeOperations": ("DRAOptionalNodeOperations",),
    "PartitionableDevices": ("DRAPartitionableDevices",),
    "PrioritizedList": ("DRAPrioritizedList",),
}


is_mine = has_keys("claimsToAllocate expected -repeat")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for _, data in iter_data(paths, is_mine):
        for scenario in data if isinstance(data, list) else [data]:
            name = scenario.get("slug") or scenario["name"]
            yield Case(name, lambda scenario=scenario: find_difference(scenario))  # type: ignore[misc]


def find_difference(scenario: Json) -> str | None:
    expected = scenario["expected"]
    index = fill_index(read_parts(scenario))
    claims = read_claims(scenario)
    if "nodes" in scenario:
        for node, answer in zip(scenario["nodes"], expected["perNode"], strict=True):
            difference = compare(answer, ask(index, node["metadata"]["name"], claims))
            if difference is not None:
                return f"node {node['metadata']['name']}: {difference}"
        return None
    return compare(expected, ask(index, scenario["node"]["metadata"]["name"], claims))


class Parts(NamedTuple):
    """A scenario's cluster, decoded."""

    gates: FeatureGates
    slices: list[ResourceSlice]
    classes: list[DeviceClass]
    nodes: list[NodeFacts]
    state: AllocatedState


def read_parts(scenario: Json) -> Parts:
    return Parts(
        read_gates(scenario["features"]),
        [decode_as(ResourceSlice, slice_) for slice_ in scenario["resourceSlices"] or ()],
        [decode_as(DeviceClass, device_class) for device_class in scenario["deviceClasses"] or ()],
        [NodeFacts.of_json(node) for node in scenario.get("nodes") or [scenario["node"]]],
        read_state(scenario),
    )


def fill_index(parts: Parts) -> Index:
    index = Index(parts.gates, make_id=lambda: SHARE_ID)
    for number, slice_ in enumerate(parts.slices):
        # Kubernetes' own cases have slices of equal names.
        index.inventory.apply_slice(slice_, key=number)
    for device_class in parts.classes:
        index.apply_class(device_class)
    for node in parts.nodes:
        index.apply_node(node)
    index.usage.load(parts.state)
    return index


def read_claims(scenario: Json) -> list[ResourceClaim]:
    return [decode_as(ResourceClaim, claim) for claim in scenario["claimsToAllocate"] or ()]


def read_gates(features: list[str] | dict[str, bool]) -> FeatureGates:
    if isinstance(features, dict):
        return FeatureGates(itertools.chain.from_iterable(GO_FIELDS[name] for name, on in features.items() if on))
    return FeatureGates(gate for entry in features for gate in entry.split("+"))


def read_state(scenario: Json) -> AllocatedState:
    devices = (DeviceID(each["driver"], each["pool"], each["device"]) for each in scenario["allocatedDevices"] or ())
    shares = (
        SharedDeviceID(each["driver"], each["pool"], each["device"], each.get("shareID", ""))
        for each in scenario["allocatedSharedDeviceIDs"] or ()
    )
    capacity = {
        DeviceID(each["driver"], each["pool"], each["device"]): {
            name: Quantity.parse(text) for name, text in each["capacity"].items()
        }
        for each in scenario["allocatedCapacity"] or ()
    }
    return AllocatedState(frozenset(devices), frozenset(shares), capacity)


Answer = tuple[AllocationResult, ...] | AllocationError | None


def ask(index: Index, node: str, claims: list[ResourceClaim]) -> Answer:
    try:
        return index.allocate(node, claims)
    except AllocationError as error:
        return error


def compare(expected: Json, answer: Answer) -> str | None:
    if "error" in expected:
        if not isinstance(answer, AllocationError):
            return f"expected error: {expected['error']}\n     got:      {show(answer)}"
        if bool(expected.get("errorOnNode")) != answer.on_node:
            return f"expected errorOnNode={expected.get('errorOnNode')}, got {answer.on_node}: {answer}"
        return None
    if isinstance(answer, AllocationError):
        return f"expected: {expected['results']}\n     got error: {answer}"
    wanted = expected["results"]
    if wanted is None or answer is None:
        return None if wanted == answer else f"expected: {wanted}\n     got:      {show(answer)}"
    if normalised(wanted) == normalised([plain(result) for result in answer]):
        return None
    return f"expected: {wanted}\n     got:      {show(answer)}"


def plain(result: AllocationResult) -> Json:
    """As JSON, but with quantities as they are: Kubernetes can't write all of them."""
    written = to_json(result)
    for ours, device in zip(written["devices"].get("results", ()), result.devices.results, strict=True):
        if device.consumed_capacity:
            ours["consumedCapacity"] = dict(device.consumed_capacity)
    return written


def show(answer: Answer) -> object:
    return [to_json(result) for result in answer] if isinstance(answer, tuple) else answer


def normalised(value: Any, key: str = "") -> Any:
    """Quantities by value, absent as empty."""
    if isinstance(value, dict):
        if key == "consumedCapacity":
            return {name: Quantity.parse(text) if isinstance(text, str) else text for name, text in value.items()}
        return {name: normalised(each, name) for name, each in value.items() if each not in (None, [], {})}
    if isinstance(value, list):
        return [normalised(each) for each in value]
    return value
