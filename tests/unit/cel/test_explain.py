from __future__ import annotations

import pytest

from dray.cel.errors import EvaluationError
from dray.cel.explain import MAX_TEXT, NOT_EVALUATED, find_reason, format_value
from dray.cel.parser import parse
from dray.cel.program import compile_constraint, compile_selector
from dray.cel.unparse import unparse
from tests.unit.cel.builders import make_device, value_of

DEVICE = make_device("gpu.example.com", {"memory": "80Gi"}, model="A100", roots=["a", "b"])
MODEL = 'device.attributes["gpu.example.com"].model'


def test_each_sub_expression_has_its_value() -> None:
    told = compile_selector(f'device.driver == "gpu.example.com" && {MODEL} == "H100"').explain(DEVICE)
    assert [(part.depth, part.text, part.value) for part in told] == [
        (0, f'device.driver == "gpu.example.com" && {MODEL} == "H100"', False),
        (1, 'device.driver == "gpu.example.com"', True),
        (2, "device.driver", "gpu.example.com"),
        (1, f'{MODEL} == "H100"', False),
        (2, MODEL, "A100"),
    ]


def test_what_was_not_needed_was_not_evaluated() -> None:
    told = compile_selector(f'device.driver == "x" && {MODEL} == "H100"').explain(DEVICE)
    assert told[-1].value is NOT_EVALUATED
    assert "not evaluated" in str(told[-1])


def test_errors_are_values() -> None:
    told = compile_selector('device.attributes["d"].missing == 1 || true').explain(DEVICE)
    assert told[0].value is True
    assert isinstance(told[1].value, EvaluationError)


def test_a_comprehension_is_told_with_what_it_ranges_over() -> None:
    told = compile_selector('device.attributes["gpu.example.com"].roots.exists(r, r == "b")').explain(DEVICE)
    assert [part.text for part in told] == [
        'device.attributes["gpu.example.com"].roots.exists(r, r == "b")',
        'device.attributes["gpu.example.com"].roots',
    ]
    assert told[1].value == ["a", "b"]


def test_constraints_are_told_too() -> None:
    told = compile_constraint("devices.map(d, d.driver).size() == 2").explain([DEVICE, DEVICE])
    assert (told[0].value, told[-1].text) == (True, "devices.map(d, d.driver)")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'device.driver == "gpu.example.com" && {MODEL} == "H100"', f'{MODEL} == "H100" (model is "A100")'),
        (
            'device.capacity["gpu.example.com"].memory.isLessThan(quantity("40Gi"))',
            'device.capacity["gpu.example.com"].memory.isLessThan(quantity("40Gi")) (memory is quantity("80Gi"))',
        ),
        ('device.attributes["d"].missing == 1', 'no such key: missing in device.attributes["d"].missing == 1'),
        ("false", "false"),
    ],
)
def test_the_reason_is_the_part_that_decided(text: str, reason: str) -> None:
    assert find_reason(compile_selector(text).explain(DEVICE)) == reason


@pytest.mark.parametrize(
    "text",
    [
        "1 + 2 * 3 - (4 - 5)",
        "(1 + 2) * -3 % 4",
        "!(true || false) && (true ? false : true)",
        '{"a": [1, ?optional.of(2u)], ?"b": optional.none()}[?"a"].?c[0]',
        'has(device.attributes["d"].x) && [1].all(x, x in [1.5, 2.0])',
        "cel.bind(a, 1, a == a)",
        r'b"\x00a" == bytes("\"\\\n")',
        "google.protobuf.Duration{seconds: 5}",
        "device.`a-b`",
        "(-1).x(2)",
    ],
)
def test_a_tree_is_written_as_it_was_read(text: str) -> None:
    parsed = parse(text)
    assert unparse(parsed.expr, parsed.macro_calls) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("quantity('1Ki').add(1)", 'quantity("1025")'),
        ("optional.of([1u])[0]", "optional.of(1u)"),
        ("duration('1m')", 'duration("60s")'),
        ("ip('::1')", 'ip("::1")'),
        ("{'a': null}", '{"a": null}'),
        ("type(1)", "int"),
    ],
)
def test_values_are_shown_close_to_how_cel_writes_them(text: str, shown: str) -> None:
    assert format_value(value_of(text)) == shown


def test_long_values_are_cut() -> None:
    assert len(format_value(value_of("lists.range(100)"))) == MAX_TEXT
