from __future__ import annotations

from typing import Any

import pytest

from dray.api.features import ALL_GATES, FeatureGates
from dray.validation.outcome import Outcome
from tests.unit.validation.builders import created, expect_accepted, expect_errors, make_device, make_slice, without

WHOLE = without("DRAFractionalCapacityRange")


def judged(policy: dict[str, Any], value: str = "10Gi", *, gates: FeatureGates = ALL_GATES) -> Outcome[Any]:
    capacity = {"memory": {"value": value, "requestPolicy": policy}}
    return created(make_slice(make_device(allowMultipleAllocations=True, capacity=capacity)), gates=gates)


def expect_problems(outcome: Outcome[Any], *problems: str) -> None:
    expect_errors(outcome, *(f"spec.devices[0].capacity[memory].requestPolicy{problem}" for problem in problems))


def test_only_shared_devices_have_a_request_policy() -> None:
    capacity = {"memory": {"value": "1", "requestPolicy": {"default": "1"}}}
    expect_problems(
        created(make_slice(make_device(capacity=capacity))), ": Forbidden: allowMultipleAllocations must be"
    )


def test_values_and_range_exclude_each_other() -> None:
    expect_problems(judged({"validValues": ["1"], "validRange": {"min": "1"}}), ": Forbidden: exactly one policy")


def test_a_policy_needs_a_default() -> None:
    expect_problems(judged({"validValues": ["1"]}), ".default: Required value: required when validValues is defined")
    expect_problems(judged({"validRange": {"min": "1"}}), ".default: Required value: required when validRange")
    expect_accepted(judged({"default": "1"}))


def test_values_are_sorted_unique_within_capacity_and_hold_the_default() -> None:
    expect_accepted(judged({"default": "1Gi", "validValues": ["1Gi", "2Gi"]}))
    expect_problems(
        judged({"default": "3", "validValues": ["2", "1", "1", "20Gi"]}),
        '.validValues[1]: Invalid value: "1": values must be sorted in ascending order',
        '.validValues[2]: Duplicate value: "1"',
        '.validValues[3]: Invalid value: "20Gi": option is larger than capacity value: 10Gi',
        '.validValues: Invalid value: "3": default value is not valid',
    )


def test_too_many_values_hide_the_default() -> None:
    values = [str(number) for number in range(11)]
    expect_problems(
        judged({"default": "1", "validValues": values}),
        ".validValues: Too many: 11: must have at most 10 items",
        '.validValues: Invalid value: "1": default value is not valid',
    )


def test_fractions_are_told_apart_only_with_their_gate() -> None:
    policy = {"default": "100m", "validValues": ["100m", "200m"]}
    expect_accepted(judged(policy))
    expect_problems(judged(policy, gates=WHOLE), '.validValues[1]: Duplicate value: "1"')


@pytest.mark.parametrize(
    ("limits", "default", "problems"),
    [
        ({}, "1", [".min: Required value: required when validRange is defined"]),
        ({"min": "2"}, "1", ['.default: Invalid value: "1": default is less than min: 2']),
        (
            {"min": "20Gi"},
            "30Gi",
            ['.min: Invalid value: "20Gi": min is larger than capacity value: 10Gi'],
        ),
        (
            {"min": "3", "max": "2"},
            "4",
            [
                '.max: Invalid value: "3": min is larger than max: 2',
                '.default: Invalid value: "4": default is more than max: 2',
            ],
        ),
        ({"min": "1", "max": "11Gi"}, "1", ['.max: Invalid value: "11Gi": max is larger than capacity value']),
        ({"min": "1", "step": "0"}, "1", ['.step: Invalid value: "0": must be greater than zero']),
        ({"min": "1", "step": "10Gi"}, "1", ['.step: Invalid value: "10Gi": one step 10737418241 is larger than']),
        ({"min": "1", "step": "2"}, "2", ['.step: Invalid value: "2": value is not a multiple of a given step (2)']),
        ({"min": "1", "max": "4", "step": "2"}, "3", ['.step: Invalid value: "4": value is not a multiple']),
        ({"min": "-1", "step": "1"}, "1", ['.min: Invalid value: "-1": must be greater than or equal to 0']),
    ],
)
def test_a_range_is_consistent(limits: dict[str, str], default: str, problems: list[str]) -> None:
    outcome = judged({"default": default, "validRange": limits})
    expect_problems(outcome, *(f".validRange{problem}" for problem in problems))


def test_a_range_in_thousandths_needs_its_gate() -> None:
    policy = {"default": "300m", "validRange": {"min": "100m", "step": "200m"}}
    expect_accepted(judged(policy))
    expect_accepted(judged(policy, gates=WHOLE))  # all round up to one
    uneven = {"default": "250m", "validRange": {"min": "100m", "step": "200m"}}
    expect_problems(judged(uneven), '.validRange.step: Invalid value: "250m": value is not a multiple')


def test_nothing_is_finer_than_a_thousandth() -> None:
    policy = {"default": "100u", "validRange": {"min": "10u"}}
    expect_problems(
        judged(policy),
        '.validRange.default: Invalid value: "100u": value cannot be represented as a milli value',
        '.validRange.min: Invalid value: "10u": value cannot be represented as a milli value',
    )


def test_steps_stay_within_64_bits() -> None:
    huge = "9223372036854775808"
    policy = {"default": "1", "validRange": {"min": "1", "max": huge, "step": "1"}}
    outcome = judged(policy, value=huge)
    expect_problems(outcome, f'.validRange.max: Invalid value: "{huge}": must not be larger than 9223372036854775807')
