from __future__ import annotations

import math

import pytest

from dray.cel.values import Duration, Timestamp
from tests.unit.cel.builders import error_of, value_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("7u / 2u", 3),
        ("1.0 / 0.0", math.inf),
        ("-1.0 / 0.0", -math.inf),
        ("'a' + 'b'", "ab"),
        ("b'a' + b'b'", b"ab"),
        ("[1] + [2]", [1, 2]),
        ("[] + [2]", [2]),
        ("duration('1h') + duration('30m')", Duration(5400 * 10**9)),
        ("timestamp(0) + duration('1s')", Timestamp(10**9)),
        ("timestamp(10) - timestamp(4)", Duration(6 * 10**9)),
        ("-(-9223372036854775807)", 9223372036854775807),
    ],
)
def test_operators(text: str, expected: object) -> None:
    value = value_of(text)
    assert value == expected
    assert type(value) is type(expected) or isinstance(value, list | int)


@pytest.mark.parametrize(
    "text",
    [
        "9223372036854775807 + 1",
        "-9223372036854775808 - 1",
        "9223372036854775807 * 2",
        "-9223372036854775808 / -1",
        "-(-9223372036854775808)",
        "0u - 1u",
        "18446744073709551615u + 1u",
        "timestamp('9999-12-31T23:59:59Z') + duration('1s')",
        "duration('2562047h') + duration('1h')",
    ],
)
def test_numbers_have_64_bits(text: str) -> None:
    assert "overflow" in str(error_of(text))


@pytest.mark.parametrize("text", ["1 / 0", "1 % 0", "1u / 0u"])
def test_integers_cannot_be_divided_by_zero(text: str) -> None:
    assert "by zero" in str(error_of(text))


@pytest.mark.parametrize("text", ["dyn(1) + 1.0", "dyn('a') + 1", "dyn(true) + dyn(true)", "-dyn('a')", "-dyn(1u)"])
def test_other_operands_are_errors(text: str) -> None:
    assert "no such overload" in str(error_of(text))
