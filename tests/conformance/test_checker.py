"""The independent checker against Kubernetes' recorded answers: it is neither too strict nor too lenient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, count, islice, product
from math import prod
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from dray.allocator.verify import verify
from dray.allocator.verify_capacity import find_consumption
from dray.allocator.verify_outcome import expected_config, expected_node_selector
from dray.allocator.verify_pools import Catalog, Published
from dray.api.claims import (
    ALLOCATION_MODE_ALL,
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dray.api.codec import decode_as
from dray.api.meta import Json
from dray.api.quantities import Quantity
from tests.conformance.allocator import Parts, read_claims, read_parts
from tests.conformance.runner import DATA, data_is_required, load_lines

FOLDER = DATA / "allocator"
MOST_ASSIGNMENTS = 60
"""Scenarios with more ways to assign devices are left out."""


class Scenario(NamedTuple):
    expected: Json
    parts: Parts
    claims: list[ResourceClaim]


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    if not FOLDER.exists():
        if data_is_required():
            pytest.fail(f"CI needs the conformance data, and it is not at {FOLDER}")
        pytest.skip(f"the conformance data is not at {FOLDER}; it isn't part of the repository")
    lines = (line for name in ("kubernetes-cases", "fuzz") for line in load_lines(FOLDER / f"{name}.jsonl.gz"))
    # Errors are decided before any search, and leave nothing to check.
    return [
        Scenario(line["expected"], read_parts(line), read_claims(line))
        for line in lines
        if "error" not in line["expected"]
    ]


def test_no_recorded_allocation_breaks_a_rule(scenarios: list[Scenario]) -> None:
    checked = 0
    for expected, parts, claims in scenarios:
        for node, answer in zip(parts.nodes, expected.get("perNode") or [expected], strict=True):
            if answer.get("results"):
                results = _read_results(answer["results"])
                assert verify(parts.slices, parts.classes, node, parts.state, claims, results, parts.gates) == []
                checked += 1
    assert checked > 1000


def test_the_first_assignment_without_a_violation_is_kubernetes_answer(scenarios: list[Scenario]) -> None:
    """Where all assignments can be tried. `All` is decided before any search, so it is left out."""
    tried = 0
    for expected, parts, claims in scenarios:
        choices = find_choices(parts, claims) if "results" in expected else None
        if choices is None:
            continue
        tried += 1
        answer = expected["results"]
        wanted = None if answer is None else [devices_of(result) for result in _read_results(answer)]
        found = next(
            (results for results in iter_assignments(parts, claims, choices) if is_allowed(parts, claims, results)),
            None,
        )
        assert (None if found is None else [devices_of(result) for result in found]) == wanted
    assert tried > 500


def is_allowed(parts: Parts, claims: Sequence[ResourceClaim], results: Sequence[AllocationResult]) -> bool:
    return not verify(parts.slices, parts.classes, parts.nodes[0], parts.state, claims, results, parts.gates)


def devices_of(result: AllocationResult) -> list[tuple[str, str, str, str]]:
    return [(each.request, each.driver, each.pool, each.device) for each in result.devices.results]


def _read_results(results: list[Json]) -> list[AllocationResult]:
    """In the recorded answers all shares have the same ID."""
    numbers = count()
    read: list[AllocationResult] = []
    for result in results:
        allocation = decode_as(ResourceClaim, {"metadata": {}, "status": {"allocation": result}}).status.allocation
        assert allocation is not None
        devices = tuple(
            replace(each, share_id=f"share-{next(numbers)}") if each.share_id else each
            for each in allocation.devices.results
        )
        read.append(replace(allocation, devices=replace(allocation.devices, results=devices)))
    return read


class Choice(NamedTuple):
    """Devices for one request."""

    name: str
    spec: ExactDeviceRequest | DeviceSubRequest
    devices: tuple[Published, ...]


def find_choices(
    parts: Parts, claims: Sequence[ResourceClaim], most: int = MOST_ASSIGNMENTS
) -> list[list[list[Choice]]] | None:
    """Per claim and request all choices in Kubernetes' order; None if there are too many, or it isn't a search."""
    if not claims:
        return None
    devices = _in_order(parts)
    choices: list[list[list[Choice]]] = []
    for claim in claims:
        choices.append([])
        for request in claim.spec.devices.requests:
            specs: list[tuple[str, ExactDeviceRequest | DeviceSubRequest]] = [
                (f"{request.name}/{sub.name}", sub) for sub in request.first_available
            ]
            if request.exactly is not None:
                specs.append((request.name, request.exactly))
            # Admin access depends on the order of claims: what a monitor looks at is refused to a later claim.
            if any(spec.allocation_mode == ALLOCATION_MODE_ALL for _, spec in specs) or (
                request.exactly is not None and request.exactly.admin_access
            ):
                return None
            found = (Choice(name, spec, chosen) for name, spec in specs for chosen in combinations(devices, spec.count))
            choices[-1].append(list(islice(found, most + 1)))
    return choices if prod(len(each) for claim in choices for each in claim) <= most else None


def _in_order(parts: Parts) -> list[Published]:
    """Pools with binding conditions come last; slices by name; devices as they are listed."""
    views = sorted(Catalog(parts.slices, parts.gates).views(parts.nodes[0]))
    views.sort(key=lambda each: any(published.device.binding_conditions for published in each[1].devices.values()))
    return [
        published
        for _, view in views
        for published in sorted(view.devices.values(), key=lambda each: each.slice.metadata.name)
    ]


def iter_assignments(
    parts: Parts, claims: Sequence[ResourceClaim], choices: list[list[list[Choice]]]
) -> Iterator[list[AllocationResult]]:
    numbers = count()
    for picked in product(*(each for claim in choices for each in claim)):
        rest = list(picked)
        results: list[AllocationResult] = []
        for claim, requests in zip(claims, choices, strict=True):
            mine, rest = rest[: len(requests)], rest[len(requests) :]
            result = _make_result(parts, claim, mine, numbers)
            if result is None:
                break
            results.append(result)
        else:
            yield results


def _make_result(
    parts: Parts, claim: ResourceClaim, choices: list[Choice], numbers: Iterator[int]
) -> AllocationResult | None:
    """The allocation with these devices, everything else as it must be; None if a device hasn't the capacity."""
    gates = parts.gates
    shares = "DRAConsumableCapacity" in gates
    binds = "DRADeviceBindingConditions" in gates
    results: list[DeviceRequestAllocationResult] = []
    for name, spec, devices in choices:
        for id, device, slice_ in ((each.id, each.device, each.slice) for each in devices):
            consumed: dict[str, int] | str = {}
            if shares:
                requested = spec.capacity.requests if spec.capacity is not None else {}
                consumed = find_consumption(requested, device, fractional="DRAFractionalCapacityRange" in gates)
            if isinstance(consumed, str):
                return None
            shared = shares and bool(device.allow_multiple_allocations)
            results.append(
                DeviceRequestAllocationResult(
                    request=name,
                    driver=id.driver,
                    pool=id.pool,
                    device=id.device,
                    tolerations=spec.tolerations,
                    binding_conditions=device.binding_conditions if binds else (),
                    binding_failure_conditions=device.binding_failure_conditions if binds else (),
                    share_id=f"share-{next(numbers)}" if shared else None,
                    consumed_capacity={key: Quantity.of(nano, scale=-9) for key, nano in consumed.items()}
                    if shared
                    else {},
                    skip_node_operations=slice_.spec.skip_node_operations,
                )
            )
    classes = {each.metadata.name: each for each in parts.classes}
    won = [(choice.name, classes[choice.spec.device_class_name]) for choice in choices]
    return AllocationResult(
        devices=DeviceAllocationResult(results=tuple(results), config=expected_config(claim.spec.devices, won)),
        node_selector=expected_node_selector(
            parts.nodes[0].name, [device for choice in choices for device in choice.devices]
        ),
    )
