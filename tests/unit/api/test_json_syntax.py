"""Syntax errors in Go's words."""

from __future__ import annotations

import pytest

from dray.api.json_syntax import JsonSyntaxError, check_syntax


@pytest.mark.parametrize("text", ["{}", "[1, -2.5e3, true, null]", ' "a\\u00e4" ', '{"a": {"b": []}}', "0"])
def test_json_is_fine(text: str) -> None:
    check_syntax(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "unexpected end of JSON input"),
        ('{"a": ', "unexpected end of JSON input"),
        ('{"a": "b', "unexpected end of JSON input"),
        ("[1, 2", "unexpected end of JSON input"),
        ("tru", "unexpected end of JSON input"),
        ("nope", "invalid character 'o' in literal null (expecting 'u')"),
        ("{'a': 1}", "invalid character '\\'' looking for beginning of object key string"),
        ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a": 1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a": 1 "b": 2}', "invalid character '\"' after object key:value pair"),
        ('{"a": ["}", 1 2]}', "invalid character '2' after array element"),
        ('{"a": 01}', "invalid character '1' after object key:value pair"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ('"a\\qb"', "invalid character 'q' in string escape code"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("<html>", "invalid character '<' looking for beginning of value"),
        ('{"a": NaN}', "invalid character 'N' looking for beginning of value"),
        ("[-Infinity]", "invalid character 'I' in numeric literal"),
        ("[" * 100_000, "exceeded max depth"),
    ],
)
def test_what_is_wrong_is_said_as_go_says_it(text: str, reason: str) -> None:
    with pytest.raises(JsonSyntaxError) as caught:
        check_syntax(text)
    assert caught.value.reason == reason


def test_errors_have_a_place() -> None:
    with pytest.raises(JsonSyntaxError) as caught:
        check_syntax('{"a": 1,\n "b": ?}')
    assert (caught.value.line, caught.value.column) == (2, 7)
