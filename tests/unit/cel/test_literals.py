from __future__ import annotations

import pytest

from dray.cel.ast import Uint
from dray.cel.literals import InvalidLiteral, literal_value, parse_bytes, parse_string


@pytest.mark.parametrize(
    ("token", "value"),
    [
        (r'"\u00e9\x41\101\a"', "éAA\a"),
        (r'"\U0001F600"', "😀"),
        ("'a\\'b'", "a'b"),
        (r'r"\n"', r"\n"),
        ('"""a\r\nb\rc"""', "a\nb\nc"),
        ("'''a'b\"c'''", "a'b\"c"),
        (r'"\x80"', "\x80"),
        ('""', ""),
    ],
)
def test_strings_are_decoded(token: str, value: str) -> None:
    assert parse_string(token) == value


@pytest.mark.parametrize(
    ("token", "value"),
    [
        (r"b'\xff\000\n'", b"\xff\x00\n"),
        ("b'é'", "é".encode()),
        (r"b'é\303'", "é".encode() + b"\xc3"),
        (r"br'\n'", rb"\n"),
    ],
)
def test_escapes_in_bytes_are_bytes(token: str, value: bytes) -> None:
    assert parse_bytes(token) == value


@pytest.mark.parametrize("token", [r'"\ud800"', r'"\U00110000"', r"b'\u00e9'"])
def test_escapes_that_stand_for_nothing_are_refused(token: str) -> None:
    with pytest.raises(InvalidLiteral):
        literal_value("bytes" if token.startswith("b") else "string", token, negative=False)


@pytest.mark.parametrize(
    ("kind", "token", "negative", "value"),
    [
        ("int", "9223372036854775808", True, -(2**63)),
        ("int", "0xFF", True, -255),
        ("int", "00000000000000000000000001", False, 1),
        ("uint", "0xFFFFFFFFFFFFFFFFu", False, Uint(2**64 - 1)),
        ("double", "1e-400", False, 0.0),
        ("double", ".5", True, -0.5),
    ],
)
def test_numbers_up_to_their_bounds(kind: str, token: str, negative: bool, value: float) -> None:
    found = literal_value(kind, token, negative=negative)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "token"),
    [
        ("int", "9223372036854775808"),
        ("int", "9" * 5000),
        ("uint", "18446744073709551616u"),
        ("double", "1e400"),
    ],
)
def test_numbers_beyond_their_bounds_are_refused(kind: str, token: str) -> None:
    with pytest.raises(InvalidLiteral):
        literal_value(kind, token, negative=False)
