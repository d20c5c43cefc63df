from __future__ import annotations

import pickle

import pytest

from dray.api.devices import Device, DeviceAttribute
from dray.api.quantities import Quantity
from dray.api.versions import Semver
from dray.cel.devices import MAX_ITEMS, bind_device, to_attribute
from dray.cel.errors import EvaluationError
from dray.cel.program import compile_selector
from dray.cel.values import Value
from tests.unit.cel.builders import make_api_device, make_device


def test_names_without_a_domain_belong_to_the_driver() -> None:
    device = make_device("gpu.example.com", {"memory": "1Gi", "x.com/bw": "2"}, model="A100", **{"x.com/family": "f"})
    assert device.attributes == {"gpu.example.com": {"model": "A100"}, "x.com": {"family": "f"}}
    assert device.capacity["gpu.example.com"] == {"memory": Quantity.parse("1Gi")}
    assert device.capacity["x.com"] == {"bw": Quantity.parse("2")}


def test_a_qualified_name_may_name_the_driver_too() -> None:
    device = make_device("d", model="A100", **{"d/family": "f"})
    assert device.attributes == {"d": {"family": "f", "model": "A100"}}


def test_values_have_the_types_of_cel() -> None:
    device = make_device(v="v1.2.3", n=1, b=True, s="x", l=["a"])
    assert device.attributes["d"] == {"v": Semver(1, 2, 3), "n": 1, "b": True, "s": "x", "l": ["a"]}


def test_devices_are_equal_if_an_expression_cannot_tell_them_apart() -> None:
    one = make_device("d", {"m": "1Ki"}, x=1)
    assert one == make_device("d", {"m": "1024"}, x=1)
    assert hash(one) == hash(make_device("d", {"m": "1024"}, **{"d/x": 1}))
    assert one != make_device("d", {"m": "1Ki"}, x=True)
    assert one != make_device("e", {"m": "1Ki"}, x=1)


def test_no_expression_has_a_value_for_a_device_with_an_unreadable_version() -> None:
    device = make_device(version="v99999999999999999999.0.0")
    assert device.error is not None
    for text in ("device.attributes['d'].x == 1 || device.driver == 'd'", "has(device.attributes['d'].version)"):
        with pytest.raises(EvaluationError, match="parse semantic version"):
            compile_selector(text).matches(device)


def test_an_attribute_without_a_value_leaves_the_device_without_one() -> None:
    device = bind_device("d", Device(attributes={"x": DeviceAttribute()}))
    assert "unsupported attribute value" in str(device.error)


@pytest.mark.parametrize(
    ("api_device", "oversize"),
    [
        (make_api_device(x="a" * 64), False),
        (make_api_device(x="a" * 65), True),
        (make_api_device(x=list(range(8))), False),
        (make_api_device(x=list(range(MAX_ITEMS + 1))), True),
        (make_api_device(x=["a" * 65]), True),
        (make_api_device(**{f"a{index}": index for index in range(33)}), True),
    ],
)
def test_devices_that_are_too_large_are_marked(api_device: Device, oversize: bool) -> None:
    assert bind_device("d", api_device).oversize is oversize


def test_devices_can_be_pickled() -> None:
    device = make_device("d", {"m": "1"}, x=1, v="v1.0.0")
    assert pickle.loads(pickle.dumps(device)) == device


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        (True, DeviceAttribute(bool_value=True)),
        (1, DeviceAttribute(int_value=1)),
        ("x", DeviceAttribute(string_value="x")),
        (Semver(1, 2, 3), DeviceAttribute(version_value="1.2.3")),
        ([True], DeviceAttribute(bool_values=(True,))),
        ([1, 2], DeviceAttribute(int_values=(1, 2))),
        (["x"], DeviceAttribute(string_values=("x",))),
        ([Semver(1, 2, 3)], DeviceAttribute(version_values=("1.2.3",))),
    ],
)
def test_results_become_attributes(value: Value, attribute: DeviceAttribute) -> None:
    assert to_attribute(value) == attribute


@pytest.mark.parametrize("value", [None, 1.5, [], [1, "a"], [True, 1], [1.5], {}, Quantity.parse("1")])
def test_other_results_are_no_attributes(value: Value) -> None:
    with pytest.raises(EvaluationError):
        to_attribute(value)
