from __future__ import annotations

import pytest

from tests.unit.cel.builders import error_of, value_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2, 2, 1].distinct()", [1, 2]),
        ("[dyn(1), dyn(1.0), dyn('1')].distinct()", [1, "1"]),
        ("[[[1], [2]], [[3]]].flatten()", [[1], [2], [3]]),
        ("[[[[1]]], [[[2]]]].flatten(2)", [[1], [2]]),
        ("lists.range(3)", [0, 1, 2]),
        ("[1, 2, 3].reverse()", [3, 2, 1]),
        ("[1, 2, 3].slice(1, 3)", [2, 3]),
        ("['b', 'a'].sort()", ["a", "b"]),
        ("['aaa', 'b', 'cc'].sortBy(s, size(s))", ["b", "cc", "aaa"]),
        ("[1, 3, 2].max() + [1, 3, 2].min()", 4),
        ("[1, 2].sum() + [].sum()", 3),
        ("[0.5, 1.5].sum()", 2.0),
        ("[1, 2, 2].isSorted() && ![2, 1].isSorted()", True),
        ("[1, 2, 1].indexOf(1) * 10 + [1, 2, 1].lastIndexOf(1)", 2),
        ("[1].indexOf(5)", -1),
        ("sets.contains([1, 2], [2, 2]) && !sets.contains([1], [2])", True),
        ("sets.equivalent([1, 2, 2], [2, 1]) && sets.intersects([1], [1, 2]) && !sets.intersects([1], [])", True),
        ("dyn([1, 2]).includes(2) && dyn('a').includes('a') && !dyn(1).includes(2)", True),
        ("[1, 2].transformMap(i, v, v * 2)[1]", 4),
        ("{'a': 1}.transformMapEntry(k, v, {v: k})[1]", "a"),
        ("[1, 2].first().value() + [1, 2].last().value()", 3),
        ("[optional.of(1), optional.none()].unwrapOpt()", [1]),
        # The first element decides which overload runs; what it can't be compared with doesn't count.
        ("[dyn(1), dyn('a'), dyn(3)].max()", 3),
    ],
)
def test_functions(text: str, expected: object) -> None:
    assert value_of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[].max()",
        "[1].slice(0, 2)",
        "[1].slice(1, 0)",
        "[1].slice(-1, 0)",
        "[[1]].flatten(-1)",
        "lists.range(-1)",
        "lists.range(1000001)",
        "[dyn(1), dyn('a')].sort()",
        "[dyn([1]), dyn([2])].sort()",
        "[1, 1].transformMapEntry(i, v, {v: i})",
        "[dyn(1)].unwrapOpt()",
        "optional.none().value()",
        "dyn(['a', 'b']).sum()",
    ],
)
def test_errors(text: str) -> None:
    error_of(text)


def test_zero_values_are_no_values() -> None:
    zeros = ("0", "0u", "0.0", "''", "b''", "[]", "{}", "null", "false", "duration('0s')")
    for zero in zeros:
        assert value_of(f"optional.ofNonZeroValue({zero}).hasValue()") is False
    assert value_of("optional.ofNonZeroValue([0]).hasValue()") is True
