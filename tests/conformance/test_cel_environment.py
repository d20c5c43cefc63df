"""The functions, overloads and types of our environment against those of Kubernetes' own."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dray.cel.environment import device_environment
from tests.conformance.runner import DATA, data_is_required, load_json

PATH = DATA / "cel" / "env.json"


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    if not PATH.exists():
        if data_is_required():
            pytest.fail(f"CI needs the conformance data, and it is not at {PATH}")
        pytest.skip(f"the conformance data is not at {PATH}; it isn't part of the repository")
    found: dict[str, Any] = load_json(PATH)["functions"]
    return found


def test_every_function_has_kubernetes_overloads_in_their_order(recorded: dict[str, Any]) -> None:
    ours = {
        name: [
            (overload.id, overload.member, [str(parameter) for parameter in overload.parameters], str(overload.result))
            for overload in function.overloads
        ]
        for name, function in device_environment().functions.items()
        if name == function.name
    }
    theirs = {
        function["name"]: [
            (
                overload["id"],
                overload["member"],
                [_plain(arg) for arg in overload["args"] or ()],
                _plain(overload["result"]),
            )
            for overload in function["overloads"]
        ]
        for function in recorded["functions"]
    }
    assert ours == theirs


def test_the_variable_has_kubernetes_type(recorded: dict[str, Any]) -> None:
    assert {name: str(type_) for name, type_ in device_environment().variables.items()} == recorded["variables"]


def _plain(type_: str) -> str:
    """Type parameters without their angle brackets."""
    return re.sub(r"<(\w+)>", r"\1", type_)
