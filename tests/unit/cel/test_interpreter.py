"""Order of evaluation, errors and cost, as far as they are easy to get wrong."""

from __future__ import annotations

import pytest

from dray.cel.environment import device_environment
from dray.cel.errors import CostLimitExceeded
from dray.cel.evaluation import Outcome
from dray.cel.program import compile_expression, compile_selector
from tests.unit.cel.builders import make_device, run, value_of

DEVICE = make_device("d", {"mem": "80Gi"}, model="A100", idx=3, ecc=True, nums=[1, 2, 3])
MISSING = 'device.attributes["d"].missing'


def evaluate(text: str, cost_limit: int = 1_000_000) -> Outcome:
    return compile_expression(text, device_environment()).run_exact(DEVICE, cost_limit)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{MISSING} || true", True),
        (f"true || {MISSING}", True),
        (f"{MISSING} && false", False),
        ('device.attributes["d"].model || true', True),
        (f"[1, 2, 3].exists(x, x == 2 || {MISSING})", True),
        (f"cel.bind(a, {MISSING}, true)", True),
        ("cel.bind(x, [], size(x + [1]) * 10 + size(x))", 11),
        ("cel.bind(x, [], size(cel.bind(y, 1, x + [y]) + [2]) * 10 + size(x))", 22),
        ("has(device.attributes.nope)", True),
        ('device.attributes[?"nope"].hasValue()', True),
        ('"nope" in device.attributes', False),
        ('device.attributes["d"].model.?x.orValue(1)', 1),
        ("{'a': 1}.?b.or({'b': 2}.?b).value()", 2),
        ("dyn(1).orValue(2)", 1),
        ("{'a': {'b': 1}}.?a.b.hasValue()", True),
        ("optional.of({'a': 1}).a.orValue(0)", 1),
        ("{?'a': optional.none(), 'b': 1}.size()", 1),
        ("[1][dyn(0.0)]", 1),
    ],
)
def test_values(text: str, expected: object) -> None:
    outcome = evaluate(text)
    assert outcome.error is None, outcome.error
    assert outcome.value == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{MISSING} && true", "no such key"),
        (f'{MISSING} && device.attributes["d"].missing2', "no such key: missing"),
        (f"[1, 2].all(x, {MISSING})", "no such key"),
        (f"[1, 2].map(x, {MISSING})", "no such key"),
        ("dyn(1) ? 1 : 2", "no such overload"),
        ("[1][5]", "index out of bounds: 5"),
        ("[1][dyn('a')]", "unsupported index type"),
        ("[1][dyn(1.5)]", "unsupported index value"),
        ("dyn(1).all(x, x)", "expected iterable"),
        ("kubernetes.DRADevice{driver: 'a'}", "unknown type"),
        # Kubernetes' own cost tracker crashes on these, which nothing absorbs.
        (f"{MISSING}.distinct().size() > 0 || true", "internal error"),
        ("[[1]].flatten(int(device.driver)).size() > 0 || true", "internal error"),
    ],
)
def test_errors(text: str, message: str) -> None:
    assert message in str(evaluate(text).error)


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("true", 0),
        ("device.driver", 2),
        (MISSING, 4),
        ("device.attributes[device.driver].model", 5),
        ("[1, 2].map(x, x)[0]", 29),
        ("has({'a': 1}.a)", 1),
        ("true ? device.driver : ''", 1),
        ("has((device.driver == 'd' ? {'a': 1} : {'b': 1}).a)", 3),
        ("[1, 2, 3].exists(x, x == 1)", 10),
        (f"{MISSING}.matches('^a')", 4),
        (f"{MISSING}.matches(device.driver)", 7),
        (f"{MISSING}.contains('a')", 5),
        (f"'a'.replace({MISSING}, 'b') == 'a'", 5),
        (f"[1].slice(0, {MISSING}) == [1]", 17),
    ],
)
def test_costs(text: str, cost: int) -> None:
    assert evaluate(text).cost == cost


def test_an_evaluation_ends_as_soon_as_it_costs_more_than_its_limit() -> None:
    outcome = evaluate("[1, 2, 3].all(x, x > 0)", cost_limit=10)
    assert isinstance(outcome.error, CostLimitExceeded)
    assert outcome.cost == 11
    assert evaluate("[1, 2, 3].all(x, x > 0)", cost_limit=16).value is True


def test_a_cost_that_falls_below_zero_is_beyond_every_limit() -> None:
    outcome = run("has((dyn(1) ? {'a': 1} : {'b': 1}).a)")
    assert isinstance(outcome.error, CostLimitExceeded)
    assert outcome.cost == 2**64 - 1


@pytest.mark.parametrize(
    "text",
    [
        "[" * 240 + "]" * 240 + " != []",
        "true && " * 1000 + "true",
        "".join(f"[1].all(a{n}, " for n in range(90)) + "true" + ")" * 90,
    ],
)
def test_deep_expressions_are_evaluated(text: str) -> None:
    assert value_of(text) is True


def test_branches_of_a_ternary_share_their_index() -> None:
    target = "(device.driver == 'd' ? {'a': 'a'} : {'b': 'b'})"
    text = "'a'"
    for _ in range(60):
        text = f"{target}[{text}]"
    assert compile_selector(f"{text} == 'a'").matches(DEVICE) is True
