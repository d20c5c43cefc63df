"""The recorded situations, on one process and on separate ones over HTTPS: the same pods, claims and events."""

from __future__ import annotations

import io

import pytest

from tests.conformance.lifecycle import iter_cases
from tests.conformance.runner import DATA, data_is_required, run_cases

SITUATIONS = DATA / "lifecycle" / "lifecycle.json"


@pytest.mark.parametrize("plane", ["process", "processes"])
def test_situations_end_as_on_a_real_control_plane(plane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not SITUATIONS.exists():
        if data_is_required():
            pytest.fail(f"CI needs the conformance data, and it is not at {SITUATIONS}")
        pytest.skip(f"the conformance data is not at {SITUATIONS}; it isn't part of the repository")
    monkeypatch.setenv("DRAY_LIFECYCLE", plane)
    report = io.StringIO()
    tally = run_cases(iter_cases([SITUATIONS]), report)
    assert tally.passed + tally.failed > 0, "the file holds no situation"
    assert tally.failed == 0, f"{tally}\n{report.getvalue()}"
