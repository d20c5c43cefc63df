from __future__ import annotations

from dataclasses import replace

from dray.validation.declarative import beta, merge
from dray.validation.fields import SPEC, FieldError, invalid, mark_covered, required, too_many


def merged(handwritten: list[FieldError], declarative: list[FieldError]) -> list[str]:
    return [error.detail for error in merge(handwritten, declarative, "v1")]


HAND = invalid(SPEC, "x", "by hand", origin="format")
TAGS = invalid(SPEC, "x", "by tags", origin="format")


def test_a_beta_rule_takes_over_the_same_problem() -> None:
    assert merged(mark_covered([HAND]), beta([TAGS])) == ["by tags"]


def test_an_error_that_is_not_covered_stays() -> None:
    assert merged([HAND], beta([TAGS])) == ["by hand", "by tags"]


def test_a_standard_rule_takes_over_nothing() -> None:
    assert merged(mark_covered([HAND]), [TAGS]) == ["by hand", "by tags"]


def test_a_covered_error_stays_where_the_beta_rule_found_nothing() -> None:
    assert merged(mark_covered([HAND]), []) == ["by hand"]
    elsewhere = replace(TAGS, field="status")
    assert merged(mark_covered([HAND]), beta([elsewhere])) == ["by hand", "by tags"]


def test_invalid_values_match_by_origin_only() -> None:
    hand, tags = invalid(SPEC, "x", "by hand"), invalid(SPEC, "x", "by tags")
    assert merged(mark_covered([hand]), beta([tags])) == ["by hand", "by tags"]


def test_other_types_match_without_origin() -> None:
    hand, tags = required(SPEC, "by hand"), required(SPEC, "by tags")
    assert merged(mark_covered([hand]), beta([tags])) == ["by tags"]
    many = too_many(SPEC, 3, 2)
    assert len(merged(mark_covered([many]), beta([replace(many, origin="maxItems")]))) == 2


def test_handwritten_errors_are_said_once() -> None:
    assert merged([HAND, HAND], []) == ["by hand"]


def test_declarative_errors_are_said_as_often_as_found() -> None:
    assert merged([], beta([TAGS, TAGS])) == ["by tags", "by tags"]
