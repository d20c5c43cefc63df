"""The plan of an evaluation: the checked tree, prepared once.

Names are resolved to slots, constants are folded, functions are bound, and chains of `.x` and `[y]` are one
`Attribute` with qualifiers, as in cel-go: costs are counted on this form. The interpreter and the code generator both
work on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dray.cel.dispatch import Apply
from dray.cel.run_time_costs import Rule
from dray.cel.types import Type
from dray.cel.values import Value


@dataclass(frozen=True, slots=True)
class Variable:
    """Where a name's value is found: an input of the expression, or the slot of a comprehension's variable."""

    name: str
    slot: int | None = None
    lazy: bool = False
    """An accumulator, which is computed when it is first used."""


@dataclass(frozen=True, slots=True)
class Constant:
    id: int
    value: Value


@dataclass(frozen=True, slots=True)
class Qualifier:
    """`.x`, `[x]`, `.?x` or `[?x]`. A computed key is resolved like an attribute."""

    id: int
    key: Value | Resolved
    constant: bool
    optional: bool = False
    tests: bool = False
    """Only asks whether it is there: the last qualifier in `has()`."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A variable or the value of another node, followed by qualifiers."""

    id: int
    base: Variable | Node
    qualifiers: tuple[Qualifier, ...] = ()


@dataclass(frozen=True, slots=True)
class Ternary:
    """`condition ? then : otherwise`. A qualifier after it belongs to both branches."""

    id: int
    condition: Node
    then: Resolved
    otherwise: Resolved


Resolved: TypeAlias = Attribute | Ternary


@dataclass(frozen=True, slots=True)
class Has:
    id: int
    attribute: Resolved


@dataclass(frozen=True, slots=True)
class Logic:
    """`&&` (stops at false) or `||` (stops at true)."""

    id: int
    stops_at: bool
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Equality:
    id: int
    negated: bool
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call:
    id: int
    function: str
    overload_id: str
    """Empty if the checker left more than one."""
    arguments: tuple[Node, ...]
    apply: Apply
    cost: Rule | None
    """None: 1."""
    stops: bool
    """Whether arguments after a failing one are left out, and the call is then free."""


@dataclass(frozen=True, slots=True)
class NotStrictlyFalse:
    """`@not_strictly_false(x)`: an error counts as true."""

    id: int
    argument: Node


@dataclass(frozen=True, slots=True)
class IsOneOf:
    """`x in [constants]`, free of cost."""

    id: int
    argument: Node
    keys: frozenset[object]


@dataclass(frozen=True, slots=True)
class OptionalOr:
    """`left.or(right)`, or `left.orValue(right)` if `unwraps`."""

    id: int
    left: Node
    right: Node
    unwraps: bool


@dataclass(frozen=True, slots=True)
class NewList:
    id: int
    elements: tuple[Node, ...]
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class NewEntry:
    key: Node
    value: Node
    optional: bool


@dataclass(frozen=True, slots=True)
class NewMap:
    id: int
    entries: tuple[NewEntry, ...]


@dataclass(frozen=True, slots=True)
class NewField:
    name: str
    value: Node
    optional: bool


@dataclass(frozen=True, slots=True)
class NewMessage:
    id: int
    type_name: str
    fields: tuple[NewField, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """A comprehension. `second` is the slot of the second variable, if there is one."""

    id: int
    range: Node
    first: int
    second: int | None
    accumulator: int
    mark: int
    """The slot that says whether the accumulator was made mutable."""
    init: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = (
    Constant
    | Attribute
    | Ternary
    | Has
    | Logic
    | Equality
    | Call
    | NotStrictlyFalse
    | IsOneOf
    | OptionalOr
    | NewList
    | NewMap
    | NewMessage
    | Fold
)


@dataclass(frozen=True, slots=True)
class Plan:
    root: Node
    slots: int
    """How many slots its comprehensions need."""
    types: dict[int, Type]
    """Static types by node id. An attribute has the id of its base; its own type is that of its last qualifier."""
