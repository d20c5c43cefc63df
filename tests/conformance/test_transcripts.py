"""The recorded exchanges with a kube-apiserver, against a server of ours."""

from __future__ import annotations

import io

import pytest

from tests.conformance.runner import DATA, data_is_required, run_cases
from tests.conformance.transcripts import iter_cases


def test_our_server_answers_as_the_recorded_one_did() -> None:
    path = DATA / "apiserver" / "transcripts.json"
    if not path.exists():
        if data_is_required():
            pytest.fail(f"CI needs the conformance data, and it is not at {path}")
        pytest.skip(f"the conformance data is not at {path}; it isn't part of the repository")
    report = io.StringIO()
    tally = run_cases(iter_cases([path]), report)
    assert tally.passed + tally.failed == 78
    assert tally.failed == 0, f"{tally}\n{report.getvalue()}"
