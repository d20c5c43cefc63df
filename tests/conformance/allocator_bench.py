"""The scenarios of the benchmark as cases: the answers must be right before they may be fast."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dray.api.meta import Json
from tests.conformance.allocator import find_difference
from tests.conformance.runner import Case, has_keys, iter_data

TIMED_OUT = {"results": None}
"""Where Kubernetes ran out of time, nothing fits."""


is_mine = has_keys("claimsToAllocate expected repeat")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for _, scenario in iter_data(paths, is_mine):
        yield Case(scenario["name"], lambda scenario=scenario: find_difference(completed(scenario)))  # type: ignore[misc]


def completed(scenario: Json) -> Json:
    timed_out = scenario["expected"].get("error") == "timeout"
    return {**scenario, "expected": TIMED_OUT} if timed_out else scenario
