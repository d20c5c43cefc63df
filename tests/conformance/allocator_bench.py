"""The scenarios of the benchmark as cases: the answers must be right before they may be fast."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dray.api.meta import Json
from tests.conformance.allocator import find_difference
from tests.conformance.runner import Case, iter_files, load_json

TIMED_OUT = {"results": None}
"""Where Kubernetes ran out of time, nothing fits."""


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for path in iter_files(paths):
        scenario = load_json(path)
        yield Case(scenario["name"], lambda scenario=scenario: find_difference(completed(scenario)))  # type: ignore[misc]


def completed(scenario: Json) -> Json:
    timed_out = scenario["expected"].get("error") == "timeout"
    return {**scenario, "expected": TIMED_OUT} if timed_out else scenario
