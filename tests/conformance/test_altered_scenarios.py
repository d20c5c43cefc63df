"""Recorded scenarios, altered at random: the allocator's answer is the first assignment that the checker allows.

Nobody recorded Kubernetes' answers to these. The checker stands in for it, which knows the rules and no search.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest

from dray.allocator.errors import AllocationError
from dray.api.meta import Json
from tests.conformance.allocator import fill_index, read_claims, read_parts
from tests.conformance.runner import DATA, load_lines
from tests.conformance.test_checker import (
    FOLDER,
    devices_of,
    find_choices,
    is_allowed,
    iter_assignments,
)

Alteration = Callable[[Json, random.Random], None]


def _devices(scenario: Json) -> list[tuple[Json, Json]]:
    return [(slice_, device) for slice_ in scenario["resourceSlices"] for device in slice_["spec"].get("devices") or []]


def _requests(scenario: Json) -> list[Json]:
    return [
        spec
        for claim in scenario["claimsToAllocate"]
        for request in claim["spec"]["devices"]["requests"]
        for spec in ([request["exactly"]] if request.get("exactly") else request.get("firstAvailable", []))
    ]


def _constraints(scenario: Json) -> list[list[Json]]:
    found = (claim["spec"]["devices"].get("constraints") for claim in scenario["claimsToAllocate"])
    return [constraints for constraints in found if constraints]


def ask_for_one_more_or_less(scenario: Json, chance: random.Random) -> None:
    if counted := [spec for spec in _requests(scenario) if spec.get("allocationMode") != "All"]:
        spec = chance.choice(counted)
        spec["count"] = max(1, (spec.get("count") or 1) + chance.choice((-1, 1)))


def drop_a_constraint(scenario: Json, chance: random.Random) -> None:
    if constraints := _constraints(scenario):
        chosen = chance.choice(constraints)
        chosen.pop(chance.randrange(len(chosen)))


def turn_a_constraint_round(scenario: Json, chance: random.Random) -> None:
    if constraints := _constraints(scenario):
        constraint = chance.choice(chance.choice(constraints))
        for this, that in (("matchAttribute", "distinctAttribute"), ("distinctAttribute", "matchAttribute")):
            if this in constraint:
                constraint[that] = constraint.pop(this)
                return


def drop_a_selector(scenario: Json, chance: random.Random) -> None:
    if selective := [spec for spec in _requests(scenario) if spec.get("selectors")]:
        chance.choice(selective)["selectors"].pop()


def free_a_device(scenario: Json, chance: random.Random) -> None:
    if used := scenario.get("allocatedDevices"):
        used.pop(chance.randrange(len(used)))


def withdraw_a_device(scenario: Json, chance: random.Random) -> None:
    if devices := _devices(scenario):
        slice_, device = chance.choice(devices)
        slice_["spec"]["devices"].remove(device)


def shuffle_a_slice(scenario: Json, chance: random.Random) -> None:
    if devices := _devices(scenario):
        chance.shuffle(chance.choice(devices)[0]["spec"]["devices"])


def liken_devices(scenario: Json, chance: random.Random) -> None:
    if len(devices := _devices(scenario)) > 1:
        (_, to), (_, source) = chance.sample(devices, 2)
        for field in chance.sample(("attributes", "capacity", "taints", "consumesCounters"), 2):
            if field in source:
                to[field] = copy.deepcopy(source[field])


def change_counters(scenario: Json, chance: random.Random) -> None:
    for slice_ in scenario["resourceSlices"]:
        for counter_set in slice_["spec"].get("sharedCounters") or []:
            for counter in counter_set["counters"].values():
                if chance.random() < 0.4:
                    counter["value"] = chance.choice(("1", "2", "4", "10", "8Gi", "40Gi"))


def change_requested_capacity(scenario: Json, chance: random.Random) -> None:
    for spec in _requests(scenario):
        amounts: dict[str, Any] = (spec.get("capacity") or {}).get("requests") or {}
        for name in amounts:
            amounts[name] = chance.choice(("1", "2", "3", "500m", "1Gi", "2Gi", "5Gi"))


ALTERATIONS: tuple[Alteration, ...] = (
    ask_for_one_more_or_less,
    drop_a_constraint,
    turn_a_constraint_round,
    drop_a_selector,
    free_a_device,
    withdraw_a_device,
    shuffle_a_slice,
    liken_devices,
    change_counters,
    change_requested_capacity,
)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the conformance data isn't part of the repository")
@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_the_first_assignment_that_breaks_no_rule(seed: int) -> None:
    chance = random.Random(seed)
    lines = (line for name in ("kubernetes-cases", "fuzz") for line in load_lines(FOLDER / f"{name}.jsonl.gz"))
    recorded = [line for line in lines if "node" in line]
    tried = 0
    for _ in range(700):
        scenario = copy.deepcopy(chance.choice(recorded))
        applied = [chance.choice(ALTERATIONS) for _ in range(chance.choice((1, 1, 2, 3)))]
        for alter in applied:
            alter(scenario, chance)
        parts, claims = read_parts(scenario), read_claims(scenario)
        index = fill_index(read_parts(scenario))
        try:
            results = index.allocate(parts.nodes[0].name, claims)
        except AllocationError:
            continue  # decided before any search
        choices = find_choices(parts, claims, most=400)
        if choices is None:
            continue
        tried += 1
        ours = None if results is None else [devices_of(result) for result in results]
        first = next(
            (each for each in iter_assignments(parts, claims, choices) if is_allowed(parts, claims, each)), None
        )
        wanted = None if first is None else [devices_of(result) for result in first]
        assert ours == wanted, (scenario["name"], [alter.__name__ for alter in applied])
    assert tried > 100
