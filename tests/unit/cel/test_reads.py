from __future__ import annotations

import pytest

from dray.cel.program import compile_constraint, compile_selector
from dray.cel.reads import Reads


def reads(*attributes: str, capacities: tuple[str, ...] = (), driver: bool = False, sharing: bool = False) -> Reads:
    return Reads(frozenset(attributes), frozenset(capacities), driver, sharing)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", reads()),
        ('device.driver == "x"', reads(driver=True)),
        ("device.allowMultipleAllocations", reads(sharing=True)),
        ('device.attributes["a"].x == device.attributes.b["y"]', reads("a/x", "b/y")),
        ('has(device.attributes["a"].x) && "y" in device.attributes["a"]', reads("a/x", "a/y")),
        ('device.capacity["a"].m.isGreaterThan(quantity("1"))', reads(capacities=("a/m",))),
        ('cel.bind(a, device.attributes["a"], a.x && a.?y.orValue(true))', reads("a/x", "a/y")),
        (
            '(device.driver == "x" ? device.attributes["a"] : device.attributes["b"]).x',
            reads("a/x", "b/x", driver=True),
        ),
        ('device.attributes["a"].list.exists(e, e == 1)', reads("a/list")),
        ("has(device.attributes.nope)", reads()),
        ('device.attributes["a"].all(k, k != "")', None),
        ("device.attributes[device.driver].x", None),
        ('"a" in device.attributes', None),
        ("device == device", None),
        ("size(device.attributes) > 1", None),
        ('device.attributes["a"] == {}', None),
    ],
)
def test_selectors(text: str, expected: Reads | None) -> None:
    assert compile_selector(text).reads == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("size(devices) == 4", reads()),
        ("devices.map(d, d.attributes['a'].x).max() == 1", reads("a/x")),
        ("devices.filter(d, d.attributes['a'].x == 1).all(e, e.attributes['a'].y == 2)", reads("a/x", "a/y")),
        ("devices[0].attributes['a'].x == 1", reads("a/x")),
        ("devices.all(i, d, d.attributes['a'].x == i)", reads("a/x")),
        ("devices.all(d, devices.exists(e, d != e))", None),
        ("devices.map(d, d.attributes).size() == 1", None),
    ],
)
def test_constraints(text: str, expected: Reads | None) -> None:
    assert compile_constraint(text).reads == expected
