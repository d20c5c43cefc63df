from __future__ import annotations

import pytest

from dray.cel.errors import CompileError
from dray.cel.lexer import END, tokenize


def kinds(text: str) -> list[str]:
    return tokenize(text).kinds[:-1]


def test_positions_are_code_points_not_bytes() -> None:
    tokens = tokenize('"é😀" + x')
    assert tokens.positions == [0, 5, 7, 8]
    assert tokens.kinds == ["string", "+", "name", END]


def test_comments_and_white_space_are_skipped() -> None:
    assert kinds("a // the rest, even \" and '\n\t\f+ b") == ["name", "+", "name"]


def test_keywords_are_kinds_of_their_own_and_reserved_words_are_names() -> None:
    assert kinds("in true false null inn if") == ["in", "true", "false", "null", "name", "name"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", ["int"]),
        ("0x1F", ["int"]),
        ("0XFF", ["int", "name"]),
        ("1u 0x1FU", ["uint", "uint"]),
        ("1.5 .5 1e3 1.5E-3", ["double"] * 4),
        ("2.", ["int", "."]),
        ("1.e3", ["int", ".", "name"]),
        ("1..2", ["int", ".", "double"]),
    ],
)
def test_numbers(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "'a\"b'",
        '"a\'b"',
        '"""a"b""c\n"""',
        "'''it's'''",
        r'"\a\b\f\n\r\t\v\\\'\"\`\?\x41\X41\101\u00e9\U0001F600"',
        r'r"\n"',
        r"R'\'",
        'r"""a"b"""',
        '""',
        '""""""',
    ],
)
def test_strings_and_bytes_are_one_token(text: str) -> None:
    assert kinds(text) == ["string"]
    assert kinds("b" + text) == ["bytes"]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('"abc', 1),
        ("'a\nb'", 1),
        (r'a + "\400"', 5),
        (r'"\q"', 1),
        ("a & b", 3),
        ("a = b", 3),
        ("é", 1),
        ("a.``", 3),
        ("1 + #", 5),
    ],
)
def test_what_is_no_token_is_an_error_at_its_column(text: str, column: int) -> None:
    with pytest.raises(CompileError) as caught:
        tokenize(text)
    assert caught.value.column == column
    assert caught.value.kind == "invalid"


def test_half_a_surrogate_pair_is_no_character() -> None:
    with pytest.raises(CompileError, match="invalid unicode code point"):
        tokenize('"\ud800"')


def test_a_missing_second_character_is_suggested() -> None:
    with pytest.raises(CompileError, match="did you mean '&&'"):
        tokenize("a & b")
