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


def children_of(node: Expr) -> tuple[Expr, ...]:
    """The sub-expressions of a node, in order of evaluation."""
    match node:
        case Call(_, _, args, target):
            return args if target is None else (target, *args)
        case Select(_, operand):
            return (operand,)
        case ListExpr(_, elements):
            return elements
        case MapExpr(_, entries):
            return tuple(part for entry in entries for part in (entry.key, entry.value))
        case StructExpr(_, _, fields):
            return tuple(field.value for field in fields)
        case Comprehension():
            return (node.iter_range, node.accu_init, node.loop_condition, node.loop_step, node.result)
        case _:
            return ()


def replace_children(node: Expr, children: list[Expr], node_id: int | None = None) -> Expr:
    """The node with other sub-expressions (as `children_of` orders them), and perhaps another id."""
    new_id = node.id if node_id is None else node_id
    match node:
        case Call(_, function, _, target):
            if target is None:
                return Call(new_id, function, tuple(children))
            return Call(new_id, function, tuple(children[1:]), children[0])
        case Select(_, _, field, test_only):
            return Select(new_id, children[0], field, test_only)
        case ListExpr(_, _, optional_indices):
            return ListExpr(new_id, tuple(children), optional_indices)
        case MapExpr(_, entries):
            pairs = zip(entries, children[::2], children[1::2], strict=True)
            return MapExpr(new_id, tuple(MapEntry(old.id, key, value, old.optional) for old, key, value in pairs))
        case StructExpr(_, type_name, fields):
            values = zip(fields, children, strict=True)
            return StructExpr(
                new_id, type_name, tuple(FieldEntry(old.id, old.field, value, old.optional) for old, value in values)
            )
        case Comprehension():
            return Comprehension(new_id, node.iter_var, node.iter_var2, children[0], node.accu_var, *children[1:])
        case _:
            return node


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
