"""The shared conformance data as tests: one per kind and data file."""

from __future__ import annotations

import io

import pytest

from tests.conformance.kinds import KINDS, NotThereYet, load_kind
from tests.conformance.runner import DATA, data_is_required, run_cases

SEPARATE = {"allocator-bench", "lifecycle", "transcripts"}
"""Kinds that start servers or take long; they have tests of their own."""

FILES = [(kind, part) for kind, entry in KINDS.items() if kind not in SEPARATE for part in entry.data]


@pytest.mark.parametrize(("kind", "part"), FILES, ids=[f"{kind}-{part}" for kind, part in FILES])
def test_answers_equal_the_recorded_ones(kind: str, part: str) -> None:
    path = DATA / part
    if not path.exists():
        if data_is_required():
            pytest.fail(f"CI needs the conformance data, and it is not at {path}")
        pytest.skip(f"the conformance data is not at {path}; it isn't part of the repository")
    try:
        iter_cases = load_kind(kind)
    except NotThereYet as reason:
        pytest.skip(str(reason))
    report = io.StringIO()
    tally = run_cases(iter_cases([path]), report)
    assert tally.passed + tally.failed > 0, "the file holds no case"
    assert tally.failed == 0, f"{tally}\n{report.getvalue()}"
