"""Errors are not only the right ones: they also say what Kubernetes says."""

from __future__ import annotations

import pytest

from tests.conformance.runner import DATA, data_is_required
from tests.conformance.validation import find_wording_differences


def test_errors_are_worded_as_recorded() -> None:
    path = DATA / "api" / "validation"
    if not path.exists():
        if data_is_required():
            pytest.fail(f"CI needs the conformance data, and it is not at {path}")
        pytest.skip(f"the conformance data is not at {path}; it isn't part of the repository")
    differences = list(find_wording_differences([path]))
    assert differences == []
