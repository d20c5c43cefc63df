from __future__ import annotations

import pytest

from dray.cel.errors import CompileError
from dray.cel.parser import parse
from tests.unit.cel.trees import parsed


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3 - 4", "_-_(_+_(1, _*_(2, 3)), 4)"),
        ("a * b / c % d", "_%_(_/_(_*_(a, b), c), d)"),
        ("a < b == c", "_==_(_<_(a, b), c)"),
        ("a + b in c - d", "@in(_+_(a, b), _-_(c, d))"),
        ("a || b && c || d", "_||_(_||_(a, _&&_(b, c)), d)"),
        ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
        ("(a ? b : c) ? d : e", "_?_:_(_?_:_(a, b, c), d, e)"),
        ("a || b ? c && d : e", "_?_:_(_||_(a, b), _&&_(c, d), e)"),
        ("-a.b", "-_(a.b)"),
        ("!a.b(c)[d]", "!_(_[_](a->b(c), d))"),
        ("a.b.c(d, e).f", "a.b->c(d, e).f"),
        ("a[b][?c].?d", "_?._(_[?_](_[_](a, b), c), 'd')"),
        ("a.`b-c/d.e f`", "a.b-c/d.e f"),
        ("a.if.namespace()", "a.if->namespace()"),
        (".a.b", ".a.b"),
        (".f(x)", ".f(x)"),
        ("[1, ?a, ]", "[1, ?a]"),
        ("{'a': 1, ?b: c ? d : e,}", "{'a': 1, ?b: _?_:_(c, d, e)}"),
        ("[,]", "[]"),
        ("{,}", "{}"),
        ("a.b.C{x: 1, ?`y-z`: [2],}", "a.b.C{x: 1, ?y-z: [2]}"),
        (".C{}", ".C{}"),
        ("f()", "f()"),
        ("((a))", "a"),
    ],
)
def test_shapes(text: str, tree: str) -> None:
    assert parsed(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("-1", "-1"),
        ("- 1", "-1"),
        ("--1", "1"),
        ("---1", "-_(1)"),
        ("-(-1)", "-_(-1)"),
        ("1 - -1", "_-_(1, -1)"),
        ("-1.5", "float:-1.5"),
        ("--a", "a"),
        ("!!a", "a"),
        ("!!!a", "!_(a)"),
        ("!-1", "!_(-1)"),
        ("-9223372036854775808", "-9223372036854775808"),
    ],
)
def test_pairs_of_prefixes_cancel_and_a_single_minus_belongs_to_the_number(text: str, tree: str) -> None:
    assert parsed(text) == tree


def test_chains_of_logic_are_balanced() -> None:
    assert parsed("a && b && c && d") == "_&&_(_&&_(a, b), _&&_(c, d))"
    assert parsed("a || b || c || d || e") == "_||_(_||_(_||_(a, b), c), _||_(d, e))"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 1),
        ("1 +", 4),
        ("(1", 3),
        ("1)", 2),
        ("a b", 3),
        ("f(1,)", 5),
        ("f(,)", 3),
        ("[1 2]", 4),
        ("{1}", 3),
        ("{1: 2", 6),
        ("a ? b", 6),
        ("a ? b ? c : d : e", 7),
        ("a : b", 3),
        ("a.", 3),
        ("a.1", 2),
        ("a.true", 3),
        ("a.in", 3),
        ("a.?", 4),
        ("a.`b`()", 6),
        ("a.?b()", 5),
        ("a[]", 3),
        ("a[b", 4),
        ("C{a}", 4),
        ("C{1: 2}", 3),
        ("!-a", 2),
        ("-!a", 2),
        ("a == ", 6),
        ("[,,]", 3),
        ("if", 1),
        ("a + while(b)", 5),
    ],
)
def test_syntax_errors_say_where(text: str, column: int) -> None:
    with pytest.raises(CompileError) as caught:
        parse(text)
    assert caught.value.column == column


@pytest.mark.parametrize(
    "accepted",
    [
        "(" * 249 + "1" + ")" * 249,
        "[" * 250 + "]" * 250,
        "a" + ".b" * 250,
        "1" + " + 1" * 250,
        "1 == (" * 124 + "1" + ")" * 124,
        "1 + 2 * (" * 83 + "1" + ")" * 83,
        "a ? b : " * 249 + "c",
        "f(" * 249 + "1" + ")" * 249,
        "!" * 5000 + "a",
        "a" + " && a" * 2000,
        "[1].all(x, " * 120 + "true" + ")" * 120,
    ],
    ids=lambda text: text[:10],
)
def test_nesting_up_to_the_limit(accepted: str) -> None:
    assert parse(accepted)


@pytest.mark.parametrize(
    "refused",
    [
        "(" * 250 + "1" + ")" * 250,
        "[" * 251 + "]" * 251,
        "a" + ".b" * 251,
        "1" + " + 1" * 251,
        "1 == (" * 125 + "1" + ")" * 125,
        "1 + 2 * (" * 84 + "1" + ")" * 84,
        "a ? b : " * 250 + "c",
        "f(" * 250 + "1" + ")" * 250,
        "[" * 10240,
        "{1:" * 3000,
        "a." * 5000 + "b",
        "[1].all(x, " * 251 + "true" + ")" * 251,
    ],
    ids=lambda text: text[:10],
)
def test_nesting_beyond_the_limit_is_an_error(refused: str) -> None:
    with pytest.raises(CompileError, match="recursion"):
        parse(refused)


def test_each_node_has_an_id_and_a_place() -> None:
    result = parse("device.driver == 'é' && f(x)")
    assert [result.positions[node_id] for node_id in sorted(result.positions)] == [0, 6, 14, 17, 21, 25, 26]


def test_macro_calls_are_remembered_as_written() -> None:
    result = parse("[1].exists(x, x > 0)")
    call = result.macro_calls[result.expr.id]
    assert (call.function, len(call.args)) == ("exists", 2)
    assert call.target is not None
