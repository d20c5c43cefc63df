from __future__ import annotations

import math

import pytest

from dray.cel.numbers import format_double, parse_double, parse_int, parse_uint


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.5, "1.5"),
        (123456.0, "123456"),
        (1234567.0, "1.234567e+06"),
        (1e21, "1e+21"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-4.5e-3, "-0.0045"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_doubles_are_written_as_go_does(number: float, text: str) -> None:
    assert format_double(number) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1.0), ("-1.5e3", -1500.0), (".5", 0.5), ("1.", 1.0), ("1_000", 1000.0), ("0x1p-2", 0.25), ("inf", math.inf)],
)
def test_doubles_are_read_as_go_does(text: str, number: float) -> None:
    assert parse_double(text) == number


@pytest.mark.parametrize("text", ["", " 1", "1e400", "_1", "1__0", "0x1", "abc", "1e", "\u0661", "+-1", "0x1p9999"])
def test_other_texts_are_no_doubles(text: str) -> None:
    assert parse_double(text) is None


def test_integers_have_64_bits() -> None:
    assert parse_int("-9223372036854775808") == -(2**63)
    assert parse_int("9223372036854775808") is None
    assert parse_int("9" * 100_000) is None
    assert parse_int("+7") == 7
    assert parse_int("1_0") is None
    assert parse_uint("18446744073709551615") == 2**64 - 1
    assert parse_uint("18446744073709551616") is None
    assert parse_uint("-1") is None
