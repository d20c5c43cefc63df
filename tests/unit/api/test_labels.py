from __future__ import annotations

import pytest

from dray.api.label_parser import parse_label_selector
from dray.api.labels import (
    InvalidSelector,
    LabelSelector,
    LabelSelectorRequirement,
    compile_label_selector,
    selector_from_labels,
)


def test_all_requirements_must_hold() -> None:
    selector = parse_label_selector("app=web,tier in (front,back),!legacy,rank>3")
    assert selector.matches({"app": "web", "tier": "back", "rank": "4"})
    assert not selector.matches({"app": "web", "tier": "back", "rank": "3"})
    assert not selector.matches({"app": "web", "tier": "back", "rank": "4", "legacy": ""})


def test_a_missing_label_is_not_in_any_set() -> None:
    assert parse_label_selector("a notin (x)").matches({})
    assert not parse_label_selector("a in (x)").matches({})


def test_a_selector_prints_in_the_order_of_keys() -> None:
    assert str(parse_label_selector(" b , a in (2, 1) ")) == "a in (1,2),b"


def test_keywords_can_be_keys_and_values() -> None:
    assert parse_label_selector("in in (notin)").matches({"in": "notin"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,", "found '', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (x,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
    ],
)
def test_a_bad_selector_says_what_was_expected(text: str, reason: str) -> None:
    with pytest.raises(InvalidSelector) as failure:
        parse_label_selector(text)
    assert str(failure.value) == reason


def test_several_problems_of_one_requirement_are_listed() -> None:
    with pytest.raises(InvalidSelector, match=r"^unable to parse requirement: \[values\[0\]: .*, values\[0\]\[a\]: "):
        parse_label_selector("a>_")


def test_no_label_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not compile_label_selector(None).matches({"a": "b"})
    assert compile_label_selector(LabelSelector()).matches({"a": "b"})


def test_labels_and_expressions_of_a_label_selector_are_combined() -> None:
    expression = LabelSelectorRequirement(key="tier", operator="Exists")
    selector = compile_label_selector(LabelSelector(match_labels={"app": "web"}, match_expressions=(expression,)))
    assert selector.matches({"app": "web", "tier": "x"})
    assert not selector.matches({"app": "web"})


def test_an_unknown_operator_is_named() -> None:
    expression = LabelSelectorRequirement(key="a", operator="Gt", values=("1",))
    with pytest.raises(InvalidSelector, match='"Gt" is not a valid label selector operator'):
        compile_label_selector(LabelSelector(match_expressions=(expression,)))


def test_labels_select_their_supersets() -> None:
    assert selector_from_labels({"a": "1"}).matches({"a": "1", "b": "2"})
