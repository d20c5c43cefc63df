"""What runs as generated code, and that it gives up where it can't be sure."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from dray.cel.bounds import find_bound
from dray.cel.checker import check
from dray.cel.codegen import generate
from dray.cel.codegen_context import Unsupported
from dray.cel.environment import device_environment
from dray.cel.evaluation import DEFAULT_COST_LIMIT
from dray.cel.fast_path import make_fast
from dray.cel.parser import parse
from dray.cel.plan import Plan
from dray.cel.planner import make_plan
from dray.cel.values import Value
from tests.unit.cel.builders import AttributeValue, make_device


def plan_of(text: str) -> Plan:
    environment = device_environment()
    return make_plan(check(parse(text), environment), environment.functions)


def source_of(text: str) -> str:
    return generate(plan_of(text), argument="device", wrap="", guard="").source


def run_fast(text: str, **attributes: AttributeValue) -> tuple[Value, bool]:
    """The value, and whether the exact path had to be asked."""
    exact = Mock(return_value="exact")
    fast = make_fast(plan_of(text), "device", "generic", exact)
    assert fast.function is not None, text
    value = fast.function(make_device("d", {"mem": "80Gi"}, **attributes))
    return value, exact.called


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("device.driver == 'd'", "(device.driver == 'd')"),
        ("has(device.attributes['d'].x)", "('x' in device.attributes.get('d', EMPTY_MAP))"),
        ("device.capacity['d'].mem.compareTo(quantity('1')) >= 0", "(device.capacity['d']['mem'].nano >= 1000000000)"),
        ("device.driver.startsWith('d') || device.allowMultipleAllocations", "device.driver.startswith('d')"),
        ("!(size(device.driver) > 3)", "(not (len(device.driver) > 3))"),
    ],
)
def test_the_code_is_what_a_person_would_write(text: str, code: str) -> None:
    assert code in source_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("device.attributes['d'].model == 'A100'", True),
        ("device.attributes['d'].index + 1 == 4", True),
        ("device.attributes['d'].nums.map(n, n * 2).filter(n, n > 2)", [4, 6]),
        ("device.attributes['d'].nums.exists_one(n, n == 2)", True),
        ("device.attributes['d'].nums.all(i, n, n == i + 1)", True),
        ("device.attributes['d'].?nope.orValue(7)", 7),
        ("device.attributes['d'].?model.hasValue()", True),
        ("cel.bind(a, device.attributes['d'], has(a.model) && a.index in [1, 3])", True),
        ("[3, 1, 2].sortBy(x, -x).transformMap(i, x, x)[0]", 3),
        ("device.attributes['d'].version.isGreaterThan(semver('1.0.0'))", True),
        ("device.attributes['d'].model.matches('^A[0-9]+$')", True),
        ("device.attributes['none'] == {} && !('none' in device.attributes)", True),
    ],
)
def test_ordinary_expressions_need_no_exact_path(text: str, expected: Value) -> None:
    assert run_fast(text, model="A100", index=3, nums=[1, 2, 3], version="v1.2.3") == (expected, False)


@pytest.mark.parametrize(
    "text",
    [
        "device.attributes['d'].missing == 1",
        "device.attributes['d'].missing == 1 || true",
        "device.attributes['d'].version == '1.2.3'",
        "device.attributes['d'].index + 9223372036854775807 > 0",
        "device.attributes['d'].model && true",
        "device.attributes['d'].nums[5] == 1",
        "cel.bind(x, [], size(x + [1])) == 1",
        "1 / (device.attributes['d'].index - 3) == 1",
        "device.attributes['d'].flag > 0",
    ],
)
def test_where_python_and_cel_differ_the_exact_path_is_asked(text: str) -> None:
    attributes: dict[str, AttributeValue] = {"model": "A100", "index": 3, "nums": [1], "version": "v1.2.3"}
    assert run_fast(text, flag=True, **attributes) == ("exact", True)


def test_a_device_of_unusual_size_is_evaluated_exactly_if_that_can_matter() -> None:
    text = "device.attributes['d'].nums.exists(n, n == 1)"
    assert run_fast(text, nums=[1]) == (True, False)
    assert run_fast(text, nums=list(range(1000))) == ("exact", True)
    assert run_fast("device.driver == 'd'", nums=list(range(1000))) == (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(device.attributes['d'].n).all(i, lists.range(1000).all(j, i != j))",
        "'%s'.format([device.driver]) == ''",
        "lists.range(1000).map(i, lists.range(1000).map(j, i * j)).size() > 0",
        "device.driver.replace('', device.driver).replace('', device.driver).replace('', device.driver).size() > 1000",
    ],
)
def test_what_cannot_be_bounded_has_no_fast_path(text: str) -> None:
    assert make_fast(plan_of(text), "device", "selector", Mock()).function is None


def test_messages_and_deep_trees_have_no_fast_path() -> None:
    for text in ("google.protobuf.Int64Value{value: 1} == 1", "[" * 100 + "device.driver" + "]" * 100 + " == []"):
        with pytest.raises(Unsupported):
            source_of(text)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("device.driver == 'd'", 3),
        # Kubernetes' own estimate leaves out selections from dynamic values.
        ("device.attributes['d'].a.b.c.d == 1", 8),
        ("device.attributes['d'].nums.all(n, n > 0)", 5),
    ],
)
def test_the_bound_is_never_below_the_cost(text: str, least: int) -> None:
    assert find_bound(plan_of(text), DEFAULT_COST_LIMIT).cost >= least
