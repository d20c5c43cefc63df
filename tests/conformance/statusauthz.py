"""Compares the authorization of claim status updates with recorded answers (statusauthz.json)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dray.api.features import KNOWN_GATES, FeatureGates
from tests.conformance.differences import describe
from tests.conformance.runner import Case, has_keys, iter_data
from tests.conformance.validation import expected_answer, our_answer, run_vector

is_mine = has_keys("allow operation")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for _, vectors in iter_data(paths, is_mine):
        for vector in vectors:
            yield Case(vector["name"], partial(check_vector, vector))


def check_vector(vector: dict[str, Any]) -> str | None:
    vector.setdefault("authorizerCalls", [])
    gates = FeatureGates(name for name in vector["featureGates"] if name in KNOWN_GATES)
    run = run_vector(vector, gates)
    expected, ours = expected_answer(vector), our_answer(vector, run)
    expected["messages"] = sorted(error["message"] for error in vector["errors"])
    ours["messages"] = sorted(error.message for error in run[0].errors) if run[0] is not None else []
    return describe(expected, ours)
