"""Labels and what selects them: requirements, selectors, and the LabelSelector of API objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, assert_never

from dray.api.meta import ApiStruct
from dray.api.names import check_label_value, check_qualified_name
from dray.api.quoting import quote, quote_json

Labels = Mapping[str, str]


class LabelSelectorRequirement(ApiStruct, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(ApiStruct, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class InvalidSelector(ValueError):
    """A selector that can't be understood; the message is Kubernetes'."""


class Operator(StrEnum):
    """How a key and values relate, spelled as in the messages for the text form of selectors."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


BINARY_OPERATORS: Final = tuple(Operator)[:-2]


class Requirement(NamedTuple):
    """One condition on the label with this key."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN | Operator.EQUALS | Operator.DOUBLE_EQUALS:
                return value is not None and value in self.values
            case Operator.NOT_IN | Operator.NOT_EQUALS:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GREATER_THAN | Operator.LESS_THAN:
                number = parse_int64(value) if value is not None else None
                bound = parse_int64(self.values[0]) if len(self.values) == 1 else None
                if number is None or bound is None:
                    return False
                return number > bound if self.operator is Operator.GREATER_THAN else number < bound
            case _:
                assert_never(self.operator)

    def __str__(self) -> str:
        joined = ",".join(sorted(self.values))
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator} ({joined})"
            case Operator.GREATER_THAN:
                return f"{self.key}>{joined}"
            case Operator.LESS_THAN:
                return f"{self.key}<{joined}"
            case Operator.EQUALS | Operator.DOUBLE_EQUALS | Operator.NOT_EQUALS:
                return f"{self.key}{self.operator}{joined}"
            case _:
                assert_never(self.operator)

    def problems(self, path: str = "") -> list[str]:
        """What is wrong with it, each with the place below `path`."""
        prefix = f"{path}." if path else ""
        problems = []
        if messages := check_qualified_name(self.key):
            problems.append(f"{prefix}key: Invalid value: {quote(self.key)}: {'; '.join(messages)}")
        if (detail := self._count_problem()) is not None:
            problems.append(f"{prefix}values: Invalid value: {_quote_values(self.values)}: {detail}")
        if self.operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            problems += [
                f"{prefix}values[{position}]: Invalid value: {quote(value)}: {detail}"
                for position, value in enumerate(self.values)
                if parse_int64(value) is None
            ]
        for position, value in enumerate(self.values):
            if messages := check_label_value(value):
                place = f"{prefix}values[{position}][{self.key}]"
                problems.append(f"{place}: Invalid value: {quote(value)}: {'; '.join(messages)}")
        return problems

    def _count_problem(self) -> str | None:
        match self.operator:
            case Operator.IN | Operator.NOT_IN:
                return None if self.values else "for 'in', 'notin' operators, values set can't be empty"
            case Operator.EQUALS | Operator.DOUBLE_EQUALS | Operator.NOT_EQUALS:
                return None if len(self.values) == 1 else "exact-match compatibility requires one single value"
            case Operator.EXISTS | Operator.DOES_NOT_EXIST:
                return "values set must be empty for exists and does not exist" if self.values else None
            case Operator.GREATER_THAN | Operator.LESS_THAN:
                return None if len(self.values) == 1 else "for 'Gt', 'Lt' operators, exactly one value is required"
            case _:
                assert_never(self.operator)


class Selector:
    """Requirements that must all hold, in the order of their keys."""

    __slots__ = ("requirements", "selects_nothing")

    def __init__(self, requirements: Iterable[Requirement] = (), *, selects_nothing: bool = False) -> None:
        self.requirements: Final = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self.selects_nothing: Final = selects_nothing

    def matches(self, labels: Labels) -> bool:
        if self.selects_nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return "Selector(nothing)" if self.selects_nothing else f"Selector({str(self)!r})"


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(selects_nothing=True)

_LABEL_SELECTOR_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """Ready to match; None selects nothing, an empty one everything. Raises InvalidSelector."""
    if selector is None:
        return NOTHING
    requirements = [
        _checked(Requirement(key, Operator.EQUALS, (value,))) for key, value in selector.match_labels.items()
    ]
    for expression in selector.match_expressions:
        operator = _LABEL_SELECTOR_OPERATORS.get(expression.operator)
        if operator is None:
            raise InvalidSelector(f"{quote(expression.operator)} is not a valid label selector operator")
        requirements.append(_checked(Requirement(expression.key, operator, expression.values)))
    return Selector(requirements)


def selector_from_labels(labels: Labels) -> Selector:
    """Matches what has at least these labels. Their spelling isn't checked."""
    return Selector(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items())


def _checked(requirement: Requirement) -> Requirement:
    if problems := requirement.problems():
        raise InvalidSelector(join_problems(problems))
    return requirement


def join_problems(problems: Iterable[str]) -> str:
    """Several problems as one message, each said once."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


_INTEGER: Final = re.compile("[+-]?[0-9]+")


def parse_int64(text: str) -> int | None:
    """A decimal integer of 64 bits, or None."""
    if not _INTEGER.fullmatch(text) or len(text) > 4000:
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def _quote_values(values: tuple[str, ...]) -> str:
    return f"[{','.join(map(quote_json, values))}]" if values else "null"
