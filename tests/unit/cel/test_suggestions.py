"""Names that an expression probably meant."""

from __future__ import annotations

import pytest

from dray.api.devices import Device, DeviceAttribute, DeviceCapacity
from dray.api.quantities import Quantity
from dray.cel.devices import DeviceValue, bind_device
from dray.cel.program import compile_selector
from dray.cel.suggestions import Suggestion, correct, suggest_fields, suggest_name

GPU = bind_device(
    "gpu.example.com",
    Device(
        name="gpu",
        attributes={
            "model": DeviceAttribute(string_value="A100"),
            "resource.kubernetes.io/pcieRoot": DeviceAttribute(string_value="pci0000:00"),
        },
        capacity={"memory": DeviceCapacity(value=Quantity.parse("40Gi"))},
    ),
)


def suggest(text: str, *devices: DeviceValue) -> list[Suggestion]:
    return list(suggest_fields(compile_selector(text).reads, devices or (GPU,)))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (
            'device.attributes["gpu.example.com"].modle == "A100"',
            'device.attributes["gpu.example.com"].model == "A100"',
        ),
        ('device.attributes["gpu.exmaple.com"].model == "x"', 'device.attributes["gpu.example.com"].model == "x"'),
        (
            "device.attributes['gpu.example.com'].?Model.orValue('') == ''",
            "device.attributes['gpu.example.com'].?model.orValue('') == ''",
        ),
        (
            'device.attributes["gpu.example.com"]["models"] == "x"',
            'device.attributes["gpu.example.com"]["model"] == "x"',
        ),
        (
            'has(device.attributes["k8s.io"].pcieRoot)',
            'has(device.attributes["resource.kubernetes.io"].pcieRoot)',
        ),
        (
            'device.attributes["gpu.example.com"].memory.isGreaterThan(quantity("2Gi"))',
            'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("2Gi"))',
        ),
    ],
)
def test_a_similar_name_is_suggested_and_put_in_place(written: str, meant: str) -> None:
    (suggestion,) = suggest(written)
    assert correct(written, suggestion) == meant
    assert suggest(meant) == []


def test_a_name_unlike_all_others_has_no_suggestion() -> None:
    text = 'has(device.attributes["gpu.example.com"].speed)'
    (suggestion,) = suggest(text)
    assert str(suggestion.written) == "attribute gpu.example.com/speed"
    assert suggestion.meant is None
    assert correct(text, suggestion) == text


def test_what_one_device_has_is_no_mistake() -> None:
    other = bind_device("gpu.example.com", Device(name="other", attributes={"speed": DeviceAttribute(int_value=1)}))
    assert suggest('has(device.attributes["gpu.example.com"].speed)', GPU, other) == []


def test_nothing_is_said_about_expressions_that_may_read_anything() -> None:
    assert suggest('device.attributes["gpu.example.com"].exists(name, name == "modle")') == []


def test_the_most_similar_name_is_found() -> None:
    known = ["gpu.example.com", "nic.example.com", "tpu"]
    assert suggest_name("gpu.exmaple.com", known) == "gpu.example.com"
    assert suggest_name("disk", known) is None
    assert suggest_name("x", []) is None
