"""Kubernetes' DRA CEL: compile errors, types, estimates, results and costs of recorded expressions.

Where Kubernetes itself breaks there is nothing to be equal to: `BREAKS` names these cases by what it says, and any
clear answer is right there. How many there were is printed at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from dray.api.devices import Device, DeviceAttribute
from dray.api.quantities import Quantity
from dray.cel.devices import DeviceValue, bind_device
from dray.cel.environment import Environment, device_environment
from dray.cel.errors import CompileError
from dray.cel.evaluation import Outcome
from dray.cel.program import Program, compile_expression
from tests.conformance.cel_values import encode, encode_attribute, normalize
from tests.conformance.runner import Case, has_keys, iter_data

BREAKS: Final = {
    "PANIC": "the compiler panics",
    "internal error: interface conversion": "a cost tracker panics on an argument of another type",
}
KINDS: Final = {"invalid": "RuleInvalid", "internal": "InternalError"}
Mode = Literal["selector", "derived", "generic"]


is_mine = has_keys("expression expected")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    broken: Counter[str] = Counter()
    for path, records in iter_data(paths, is_mine):
        for number, record in enumerate(records):
            name = f"{path.name} {record.get('id', number)} {record['expression']!r}"
            yield Case(name, lambda record=record: _compare(record, broken))  # type: ignore[misc]
    for reason, count in broken.items():
        print(f"{count} cases where {reason} in Kubernetes: any clear answer is right")


def _compare(record: dict[str, Any], broken: Counter[str]) -> str | None:
    expected = record["expected"]
    differences = _differences(record, record.get("mode", "selector"), expected)
    if not differences and "as_selector" in record:
        found = _differences(record, "selector", record["as_selector"])
        differences = [f"as selector: {difference}" for difference in found]
    if not differences:
        return None
    said = f"{expected.get('compile_error', '')} {expected.get('eval_error', '')}"
    for sign, reason in BREAKS.items():
        if sign in said:
            broken[reason] += 1
            return None
    return "; ".join(differences)


def _differences(record: dict[str, Any], mode: Mode, expected: dict[str, Any]) -> list[str]:
    environment = _environment(record)
    try:
        program = compile_expression(record["expression"], environment, mode)
    except CompileError as error:
        if "compile_error" not in expected:
            return [f"compile error of ours: {error}"]
        kind = expected.get("compile_error_type", KINDS[error.kind])
        return [] if KINDS[error.kind] == kind else [f"kind of compile error: {KINDS[error.kind]}, expected {kind}"]
    if "compile_error" in expected:
        return [f"compiles, expected {expected['compile_error']}"]
    outcome = program.run_exact(_device(record), record.get("cost_limit", 1_000_000))
    wanted = dict(expected)
    if mode == "generic" and "result" in wanted:
        wanted["result"] = normalize(wanted["result"])
    return unequal(wanted, _facts(program, outcome, mode))


def _facts(program: Program, outcome: Outcome, mode: Mode) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "output_type": str(program.output_type),
        "max_cost_estimate": program.max_cost_estimate,
        "min_cost_estimate": program.min_cost_estimate,
        "actual_cost": outcome.cost,
    }
    if outcome.error is not None:
        return facts | {"eval_error": str(outcome.error)}
    match mode, outcome.value:
        case "selector", value:
            return facts | {"result": value}
        case "derived", DeviceAttribute() as attribute:
            return facts | {"result": encode_attribute(attribute)}
        case _, value:
            return facts | {"result": encode(value)}


def unequal(expected: dict[str, Any], facts: dict[str, Any]) -> list[str]:
    """What is expected and isn't so, for people. Of errors, only that there is one is compared."""
    differences = []
    for key, wanted in expected.items():
        if key == "eval_error":
            if key not in facts:
                differences.append(f"result {facts['result']}, expected the error {wanted!r}")
        elif key not in facts:
            differences.append(f"{facts.get('eval_error')!r} instead of {key} {wanted}")
        elif facts[key] != wanted:
            differences.append(f"{key} {facts[key]}, expected {wanted}")
    return differences


def _environment(record: dict[str, Any]) -> Environment:
    features = record.get("features") or {}
    return device_environment(
        stored=record.get("env", "stored") == "stored",
        consumable_capacity=features.get("consumableCapacity", True),
        list_type_attributes=features.get("listTypeAttributes", True),
    )


def _device(record: dict[str, Any]) -> DeviceValue:
    described = dict(record.get("device") or {})
    driver = described.pop("driver", "")
    return bind_device(driver, msgspec.convert(described, Device, dec_hook=lambda _, text: Quantity.parse(text)))
