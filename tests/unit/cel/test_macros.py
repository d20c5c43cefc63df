from __future__ import annotations

import pytest

from dray.cel.ast import children_of
from dray.cel.errors import CompileError
from dray.cel.parser import parse
from tests.unit.cel.trees import parsed


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("has(a.b)", "has(a.b)"),
        (
            "a.all(x, p)",
            "fold(x in a; @result = True; while @not_strictly_false(@result); _&&_(@result, p); @result)",
        ),
        (
            "a.exists(x, p)",
            "fold(x in a; @result = False; while @not_strictly_false(!_(@result)); _||_(@result, p); @result)",
        ),
        (
            "a.exists_one(x, p)",
            "fold(x in a; @result = 0; while True; _?_:_(p, _+_(@result, 1), @result); _==_(@result, 1))",
        ),
        ("a.map(x, f)", "fold(x in a; @result = []; while True; _+_(@result, [f]); @result)"),
        (
            "a.map(x, p, f)",
            "fold(x in a; @result = []; while True; _?_:_(p, _+_(@result, [f]), @result); @result)",
        ),
        (
            "a.filter(x, p)",
            "fold(x in a; @result = []; while True; _?_:_(p, _+_(@result, [x]), @result); @result)",
        ),
        (
            "a.existsOne(k, v, p)",
            "fold(k, v in a; @result = 0; while True; _?_:_(p, _+_(@result, 1), @result); _==_(@result, 1))",
        ),
        (
            "a.transformList(k, v, p, f)",
            "fold(k, v in a; @result = []; while True; _?_:_(p, _+_(@result, [f]), @result); @result)",
        ),
        (
            "a.transformMap(k, v, f)",
            "fold(k, v in a; @result = {}; while True; cel.@mapInsert(@result, k, f); @result)",
        ),
        (
            "a.transformMapEntry(k, v, p, f)",
            "fold(k, v in a; @result = {}; while True; _?_:_(p, cel.@mapInsert(@result, f), @result); @result)",
        ),
        ("cel.bind(x, a, b)", "fold(#unused in []; x = a; while False; x; b)"),
        (
            "a.optMap(x, b)",
            "_?_:_(a->hasValue(), optional.of(fold(#unused in []; x = a->value(); while False; x; b)), "
            "optional.none())",
        ),
        (
            "a.optFlatMap(x, b)",
            "_?_:_(a->hasValue(), fold(#unused in []; x = a->value(); while False; x; b), optional.none())",
        ),
        (
            "a.sortBy(x, k)",
            "fold(#unused in []; @__sortBy_input__ = a; while False; @__sortBy_input__; "
            "@__sortBy_input__->@sortByAssociatedKeys("
            "fold(x in @__sortBy_input__; @result = []; while True; _+_(@result, [k]); @result)))",
        ),
    ],
)
def test_expansions(text: str, tree: str) -> None:
    assert parsed(text) == tree


@pytest.mark.parametrize("text", ["all(x, p)", "a.all(p)", "x.has(a.b)", "other.bind(x, a, b)", "a.existsOne(x, p)"])
def test_other_calls_stay_calls(text: str) -> None:
    assert "fold" not in parsed(text)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("has(a)", 5),
        ("a.all(1, p)", 7),
        ("a.all(x.y, p)", 8),
        ("a.map(.x, p)", 8),
        ("a.all(x, x > 0, true)", 12),
        ("a.all(x, x, true)", 10),
        ("cel.bind(1, 2, 3)", 10),
        ("a.optMap(b.c, d)", 11),
        ("'a'.sortBy(x, x)", 1),
        ("a.map(__result__, 1)", 7),
    ],
)
def test_arguments_of_the_wrong_form_are_errors_at_their_place(text: str, column: int) -> None:
    with pytest.raises(CompileError) as caught:
        parse(text)
    assert caught.value.column == column


def test_a_copied_target_gets_new_ids() -> None:
    result = parse("{'a': [1, b.c]}.optMap(x, x)")
    assert result.expr.id in result.positions
    seen: set[int] = set()

    stack = [result.expr]
    while stack:
        node = stack.pop()
        assert node.id not in seen
        seen.add(node.id)
        stack.extend(children_of(node))


def test_chained_copies_can_not_blow_up() -> None:
    with pytest.raises(CompileError, match="nodes after macro expansion"):
        parse("a" + ".optMap(x, x)" * 100)
