"""Devices and evaluations for tests."""

from __future__ import annotations

from dray.api.devices import Device, DeviceAttribute, DeviceCapacity
from dray.api.quantities import Quantity
from dray.cel.devices import DeviceValue, bind_device
from dray.cel.environment import generic_environment
from dray.cel.errors import EvaluationError
from dray.cel.evaluation import Outcome
from dray.cel.program import compile_expression
from dray.cel.values import Value

AttributeValue = str | int | bool | list[str] | list[int]


def make_attribute(value: AttributeValue) -> DeviceAttribute:
    match value:
        case bool():
            return DeviceAttribute(bool_value=value)
        case int():
            return DeviceAttribute(int_value=value)
        case str() if value.startswith("v"):
            return DeviceAttribute(version_value=value[1:])
        case str():
            return DeviceAttribute(string_value=value)
        case list():
            if all(isinstance(item, int) for item in value):
                return DeviceAttribute(int_values=tuple(int(item) for item in value))
            return DeviceAttribute(string_values=tuple(str(item) for item in value))


def make_api_device(capacity: dict[str, str] | None = None, **attributes: AttributeValue) -> Device:
    """Strings that start with `v` are versions."""
    return Device(
        name="device",
        attributes={name: make_attribute(value) for name, value in attributes.items()},
        capacity={name: DeviceCapacity(value=Quantity.parse(quantity)) for name, quantity in (capacity or {}).items()},
    )


def make_device(driver: str = "d", capacity: dict[str, str] | None = None, **attributes: AttributeValue) -> DeviceValue:
    return bind_device(driver, make_api_device(capacity, **attributes))


def run(text: str, **variables: Value) -> Outcome:
    """Evaluates an expression of any type, exactly."""
    environment = generic_environment({})
    return compile_expression(text, environment).run_exact(variables)


def value_of(text: str) -> Value:
    outcome = run(text)
    assert outcome.error is None, outcome.error
    return outcome.value


def error_of(text: str) -> EvaluationError:
    outcome = run(text)
    assert outcome.error is not None, outcome.value
    return outcome.error
