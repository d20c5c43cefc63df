from __future__ import annotations

import pytest

from dray.cel.ast import Uint
from dray.cel.errors import CompileError
from tests.unit.cel.builders import error_of, value_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bool('T')", True),
        ("int(-1.9)", -1),
        ("int(5u)", 5),
        ("int(timestamp('1969-12-31T23:59:59.5Z'))", -1),
        ("uint('7')", Uint(7)),
        ("double('1e3')", 1000.0),
        ("string(1e6)", "1e+06"),
        ("string(b'\\xc3\\xa9')", "é"),
        ("bytes('é')", b"\xc3\xa9"),
        ("string(timestamp('2023-01-01T00:00:00+02:00'))", "2023-01-01T00:00:00+02:00"),
        ("string(duration('1h30m'))", "5400s"),
        ("string(true)", "true"),
        ("duration('100s').getMinutes()", 1),
        ("duration('1.5s').getMilliseconds()", 1500),
        ("timestamp('2024-02-29T12:00:00Z').getDayOfYear()", 59),
    ],
)
def test_conversions(text: str, expected: object) -> None:
    assert value_of(text) == expected


@pytest.mark.parametrize("text", ["int('x')", "uint(-1)", "int(1e19)", "bool('yes')", "string(b'\\xff')"])
def test_a_constant_that_cannot_be_converted_is_a_compile_error_also_in_dead_code(text: str) -> None:
    with pytest.raises(CompileError) as caught:
        value_of(f"false ? {text} == {text} : true")
    assert caught.value.kind == "internal"


@pytest.mark.parametrize(
    "text", ["int(dyn('x') + '')", "uint(0 - 1)", "int(1e19 * 1.0)", "timestamp(253402300800 + 0)"]
)
def test_a_computed_value_that_cannot_be_converted_is_an_error(text: str) -> None:
    error_of(text)
