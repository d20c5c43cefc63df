"""Describing devices with plain values."""

from __future__ import annotations

import pytest

from dray.api.devices import DeviceAttribute
from dray.driver.base import DeviceConfig, make_attribute, make_counters, make_device, shared_capacity, version


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, DeviceAttribute(bool_value=True)),
        (7, DeviceAttribute(int_value=7)),
        ("x", DeviceAttribute(string_value="x")),
        (["a", "b"], DeviceAttribute(string_values=("a", "b"))),
        ((1, 2), DeviceAttribute(int_values=(1, 2))),
        ([True, False], DeviceAttribute(bool_values=(True, False))),
        (version("1.2.3"), DeviceAttribute(version_value="1.2.3")),
    ],
)
def test_the_type_of_a_value_is_the_type_of_the_attribute(value: object, expected: DeviceAttribute) -> None:
    assert make_attribute(value) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [[1, "a"], [], [True, 1]])
def test_a_list_of_mixed_types_or_none_is_refused(value: list[object]) -> None:
    with pytest.raises(TypeError, match="items of one type"):
        make_attribute(value)  # type: ignore[arg-type]


def test_capacities_are_quantities() -> None:
    device = make_device("a", capacity={"memory": "40Gi", "cores": 8})
    assert {name: str(item.value) for name, item in device.capacity.items()} == {"memory": "40Gi", "cores": "8"}


def test_a_partition_draws_on_counters_of_its_name() -> None:
    counters = make_counters("gpu-0", {"memory": "40Gi", "engines": 7})
    partition = make_device("half", consumes={"gpu-0": {"memory": "20Gi", "engines": 3}})
    (taken,) = partition.consumes_counters
    assert taken.counter_set == counters.name
    assert {name: str(item.value) for name, item in taken.counters.items()} == {"memory": "20Gi", "engines": "3"}


def test_a_shared_capacity_is_given_out_in_steps() -> None:
    policy = shared_capacity("80Gi", default="10Gi", step="1Gi").request_policy
    assert policy is not None
    assert policy.valid_range is not None
    assert (str(policy.default), str(policy.valid_range.min), str(policy.valid_range.step)) == ("10Gi", "1Gi", "1Gi")


@pytest.mark.parametrize(
    ("requests", "request_name", "applies"),
    [
        ((), "gpu", True),
        (("gpu",), "gpu", True),
        (("gpu",), "gpu/big", True),
        (("gpu/big",), "gpu/big", True),
        (("nic",), "gpu", False),
    ],
)
def test_parameters_apply_to_the_requests_that_they_name(
    requests: tuple[str, ...], request_name: str, applies: bool
) -> None:
    assert DeviceConfig("FromClaim", requests, {}).applies_to(request_name) is applies
