from __future__ import annotations

import pytest

from tests.unit.cel.builders import error_of, value_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'abc'.charAt(3)", ""),
        ("'héllo'.charAt(1)", "é"),
        ("'tacocat'.indexOf('co')", 2),
        ("'abc'.indexOf('', 2)", 2),
        ("'abc'.indexOf('c', 9)", -1),
        ("'abcabc'.lastIndexOf('bc')", 4),
        ("'abc'.lastIndexOf('')", 3),
        ("'abcabc'.lastIndexOf('bc', 3)", 1),
        ("''.lastIndexOf('x')", -1),
        ("'ÀBC'.lowerAscii()", "Àbc"),
        ("'àbc'.upperAscii()", "àBC"),
        (r"'\u00a0\tx\u200b'.trim()", "x\u200b"),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("'abc'.split('b', 0)", []),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'ab'.replace('', '-')", "-a-b-"),
        ("'ab'.replace('', '-', 2)", "-a-b"),
        ("['a', 'b'].join('-')", "a-b"),
        ("'tacocat'.substring(4)", "cat"),
        ("'tacocat'.substring(0, 4)", "taco"),
        (r"strings.quote('a\n\"\\')", '"a\\n\\"\\\\"'),
        ("'abc'.contains('') && 'abc'.startsWith('a') && 'abc'.endsWith('bc')", True),
    ],
)
def test_functions(text: str, expected: object) -> None:
    assert value_of(text) == expected


@pytest.mark.parametrize(
    "text",
    ["'abc'.charAt(4)", "'abc'.charAt(-1)", "'abc'.substring(4)", "'abc'.substring(2, 1)", "'abc'.indexOf('a', -1)"],
)
def test_positions_outside_of_the_text_are_errors(text: str) -> None:
    assert "range" in str(error_of(text))


def test_only_strings_can_be_joined() -> None:
    error_of("[dyn('a'), dyn(1)].join()")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'%s %s'.format(['a', 1])", "a 1"),
        ("'%%%d%%'.format([5])", "%5%"),
        ("'%.2f'.format([1234567.891])", "1,234,567.89"),
        ("'%.0f'.format([2.5])", "2"),
        ("'%e'.format([1052.032911275])", "1.052033×10⁰³"),
        ("'%e'.format([0.00001])", "1.000000×10⁻⁰⁵"),
        ("'%e'.format([double('NaN')])", "   NaN"),
        ("'%f'.format([double('-Infinity')])", "-∞"),
        ("'%x %X %o %b'.format([-255, 255, 8, 5])", "-ff FF 10 101"),
        ("'%x'.format(['hi'])", "6869"),
        ("'%b'.format([true])", "1"),
        ("'%s'.format([[1.5, 2.0]])", "[1.500000, 2.000000]"),
        ("'%s'.format([{'b': 1, 'a': 'x'}])", '{"a":"x", "b":1}'),
        ("'%s'.format([[duration('1h'), timestamp(0)]])", '[duration("3600s"), timestamp("1970-01-01T00:00:00Z")]'),
        ("'%s'.format([[b'x', true, null, type(1)]])", '[b"x", true, null, int]'),
    ],
)
def test_format(text: str, expected: str) -> None:
    assert value_of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "dyn('%d').format([1.5])",
        "dyn('%s')  .format([])",
        "dyn('%').format([1])",
        "dyn('%.').format([1.0])",
        "dyn('%q').format(['a'])",
        "dyn('%s').format([quantity('1')])",
        "dyn('%s').format([[quantity('1')]])",
        "dyn('%s').format([b'\\xff'])",
    ],
)
def test_what_cannot_be_formatted_is_an_error(text: str) -> None:
    error_of(text)
