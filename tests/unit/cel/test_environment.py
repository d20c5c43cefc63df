from __future__ import annotations

import pytest

from dray.cel.declarations import read_overload
from dray.cel.environment import Environment, device_environment, devices_environment
from dray.cel.types import ANY, DYN
from tests.unit.cel.trees import error_of, type_of


def test_environments_are_made_once() -> None:
    assert device_environment() is device_environment()
    assert devices_environment(stored=False) is devices_environment(stored=False)


@pytest.mark.parametrize("make", [device_environment, devices_environment])
def test_features_matter_for_new_expressions_only(make: type[Environment]) -> None:
    off = {"consumable_capacity": False, "list_type_attributes": False}
    new = make(stored=False, **off)  # type: ignore[call-arg, arg-type]
    stored = make(stored=True, **off)  # type: ignore[call-arg, arg-type]
    assert (new.attribute_type, stored.attribute_type) == (ANY, DYN)
    assert "includes" not in new.functions
    assert {"includes", "include"} <= stored.functions.keys()
    assert "allowMultipleAllocations" not in new.objects["kubernetes.DRADevice"]
    assert "allowMultipleAllocations" in stored.objects["kubernetes.DRADevice"]


def test_new_expressions_with_all_features_are_like_stored_ones() -> None:
    environment = device_environment(stored=False)
    assert type_of("device.allowMultipleAllocations && device.attributes['d'].x.includes(1)", environment) == "bool"


def test_constraints_see_devices_and_no_device() -> None:
    assert type_of("devices", devices_environment()) == "list(kubernetes.DRADevice)"
    assert "undeclared reference to 'device'" in str(error_of("device.driver == ''", devices_environment()))


@pytest.mark.parametrize("function", ["max", "min", "sum"])
def test_lists_of_attributes_can_be_summed_up(function: str) -> None:
    text = f"devices.map(d, d.attributes['mla.example.com'].index).{function}() - 1"
    assert type_of(text, devices_environment()) == "int"


def test_whole_devices_can_be_compared() -> None:
    assert type_of("devices.all(d, devices.exists(other, d == other))", devices_environment()) == "bool"


def test_every_library_is_there() -> None:
    functions = device_environment().functions
    assert len(functions) == 155 + len(["include"])
    assert sum(len(function.overloads) for function in functions.values()) == 340 + 1


def test_signatures_are_read() -> None:
    overload = read_overload("x", "map(K, list(V)).(K, optional(V)) -> list(string)")
    assert overload.member
    assert [str(parameter) for parameter in overload.parameters] == ["map(K, list(V))", "K", "optional_type(V)"]
    assert str(overload.result) == "list(string)"
    assert [parameter.name for parameter in overload.type_parameters] == ["K", "V"]
