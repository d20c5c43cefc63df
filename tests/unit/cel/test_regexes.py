from __future__ import annotations

import pytest

from dray.cel.regexes import InvalidRegex, Regex


def test_a_regex_matches_anywhere_unless_it_is_anchored() -> None:
    assert Regex("b").is_in("abc")
    assert not Regex("^b").is_in("abc")
    assert not Regex("a.b").is_in("a\nb")
    assert Regex("(?s)a.b").is_in("a\nb")
    assert not Regex("a$").is_in("a\n")


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("[0-9]+", "x1y22", ["1", "22"]),
        ("x*", "", [""]),
        ("", "abc", ["", "", "", ""]),
        ("a*", "baac", ["", "aa", ""]),
        ("", "é", ["", ""]),
        ("é", "caféé", ["é", "é"]),
    ],
)
def test_all_matches_as_go_finds_them(pattern: str, text: str, found: list[str]) -> None:
    assert Regex(pattern).find_all(text) == found


def test_the_number_of_matches_can_be_limited() -> None:
    assert Regex(".").find_all("abc", 2) == ["a", "b"]
    assert Regex(".").find_all("abc", 0) == []


def test_no_match_is_an_empty_string() -> None:
    assert Regex("x").find("abc") == ""
    assert Regex("a*?").find("aaa") == ""


@pytest.mark.parametrize("pattern", ["(", "[", "a**", "(?=x)", r"\1", r"\C", "a{1001}", r"\8", "(?P<n>a)(?P<n>b)"])
def test_what_go_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRegex):
        Regex(pattern)


def test_a_quoted_c_is_no_escape() -> None:
    assert Regex(r"\\C").is_in(r"\C")
    assert Regex(r"\Q\C\E").is_in(r"\C")
