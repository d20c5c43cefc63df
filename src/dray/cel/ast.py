"""The tree that the parser makes: macros expanded, operators as calls (`_+_`), a unique id per node.

Ids link a node to its place in the text (`Parsed.positions`) and to what the checker found (`Checked`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dray.cel.types import Type


class Uint(int):
    """An unsigned CEL integer. A type of its own because `1u` and `1` differ in type, not in value."""

    __slots__ = ()


LiteralValue: TypeAlias = bool | int | Uint | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class Literal:
    id: int
    value: LiteralValue


@dataclass(frozen=True, slots=True)
class Ident:
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, or `has(operand.field)` if `test_only`."""

    id: int
    operand: Expr
    field: str
    test_only: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`function(args)` or `target.function(args)`. Operators are named as in cel-go: `_&&_`, `_[_]`, `@in`."""

    id: int
    function: str
    args: tuple[Expr, ...]
    target: Expr | None = None


@dataclass(frozen=True, slots=True)
class ListExpr:
    id: int
    elements: tuple[Expr, ...]
    optional_indices: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MapEntry:
    id: int
    key: Expr
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class MapExpr:
    id: int
    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True)
class FieldEntry:
    id: int
    field: str
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class StructExpr:
    id: int
    type_name: str
    fields: tuple[FieldEntry, ...]


@dataclass(frozen=True, slots=True)
class Comprehension:
    """What all comprehension macros and `cel.bind` become, as in cel-go. `iter_var2` is empty for one variable."""

    id: int
    iter_var: str
    iter_var2: str
    iter_range: Expr
    accu_var: str
    accu_init: Expr
    loop_condition: Expr
    loop_step: Expr
    result: Expr


Expr: TypeAlias = Literal | Ident | Select | Call | ListExpr | MapExpr | StructExpr | Comprehension


@dataclass(frozen=True, slots=True)
class MacroCall:
    """What stood in the text before a macro was expanded, for people: explanations and errors."""

    function: str
    target: Expr | None
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Parsed:
    text: str
    expr: Expr
    positions: dict[int, int]
    """Node id -> code point offset in the text."""
    macro_calls: dict[int, MacroCall]
    """Id of the expansion -> the call as written."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a name stands for: a variable (its full name), a type constant, or the overloads of a call."""

    name: str = ""
    overload_ids: tuple[str, ...] = ()
    is_type: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """A type-checked expression.

    `expr` is the tree of `parsed` with names resolved, node ids kept: a qualified name is one `Ident` with its full
    name, a namespaced function (`optional.of`) a `Call` without target, a `StructExpr` names its type in full.
    A name with a leading dot is global even where a local variable has that name.
    """

    parsed: Parsed
    expr: Expr
    types: dict[int, Type]
    references: dict[int, Reference]

    @property
    def output_type(self) -> Type:
        return self.types[self.expr.id]
