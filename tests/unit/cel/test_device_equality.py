"""Devices compared with each other: generated code gives the exact answer, by fingerprint where that is allowed."""

from __future__ import annotations

import itertools

import pytest

from dray.api.devices import Device, DeviceAttribute, DeviceCapacity
from dray.api.quantities import Quantity
from dray.cel.devices import bind_device
from dray.cel.program import compile_constraint


def device(capacity: str = "1", **attributes: DeviceAttribute) -> Device:
    return Device(
        name="dev", attributes=attributes, capacity={"memory": DeviceCapacity(value=Quantity.parse(capacity))}
    )


DEVICES = [
    device(),
    device("1000m"),
    device("2"),
    device(x=DeviceAttribute(int_value=1)),
    device(x=DeviceAttribute(bool_value=True)),
    device(x=DeviceAttribute(string_value="1")),
    device(y=DeviceAttribute(int_value=1)),
    device(x=DeviceAttribute(version_value="1.0.0")),
    device(x=DeviceAttribute(version_value="1.0.0+build")),
    device(x=DeviceAttribute(int_values=(1,))),
]


@pytest.mark.parametrize("operator", ["==", "!="])
def test_comparing_devices_is_exact(operator: str) -> None:
    program = compile_constraint(f"devices[0] {operator} devices[1]")
    for one, other in itertools.product(DEVICES, repeat=2):
        pair = [bind_device("gpu.example.com", one), bind_device("gpu.example.com", other)]
        exact = program.run_exact(pair)
        if exact.error is None:
            assert program.matches(pair) is exact.value, (one, other)


def test_plain_devices_have_a_fingerprint_and_others_have_none() -> None:
    has = [bind_device("gpu.example.com", each).fingerprint is not None for each in DEVICES]
    assert has == [True] * 7 + [False] * 3
