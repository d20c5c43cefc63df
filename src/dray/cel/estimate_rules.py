"""The form of the rules that estimate calls, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from dray.cel.ast import Expr
from dray.cel.environment import Environment
from dray.cel.ranges import UNKNOWN, Range
from dray.cel.sizes import Path
from dray.cel.types import Type

TRAVERSAL: Final = 0.1
"""Cost per character of going through a string."""
REGEX_LENGTH: Final = 0.25
"""Cost per character of a pattern: about four of them make one state."""


class Entries(NamedTuple):
    """Sizes of what is in a list or map: its keys (or indexes) and values."""

    kind: str
    keys: Range
    values: Range


class Operand(NamedTuple):
    """An argument or receiver as the rules see it."""

    node: Expr
    cost: Range
    path: Path
    type: Type | None
    size: Range | None
    entries: Entries | None

    @property
    def size_or_unknown(self) -> Range:
        return self.size or UNKNOWN


class Rule(NamedTuple):
    """What a rule says: the cost of the call alone, and the size of its result."""

    cost: Range
    size: Range | None = None


class CallCost(NamedTuple):
    """Cost of a call with its arguments, size of its result, and the operands whose entries that holds."""

    cost: Range
    size: Range | None = None
    entries_of: tuple[Operand, Operand] | None = None


RuleFunction: TypeAlias = Callable[[str, "Operand | None", Sequence[Operand], Environment], "Rule | None"]
"""Overload id, receiver, arguments, environment. None: the rule has nothing to say."""
