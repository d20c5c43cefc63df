"""Macros: calls that the parser replaces by other expressions, mostly comprehensions, in the shapes cel-go gives them.

The shapes matter beyond the result: costs are counted on the expanded tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from dray.cel.ast import (
    Call,
    Comprehension,
    Expr,
    FieldEntry,
    Ident,
    ListExpr,
    Literal,
    LiteralValue,
    MapEntry,
    MapExpr,
    Select,
    StructExpr,
    children_of,
    replace_children,
)

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"
MAX_NODES: Final = 30_000
"""No text of 10 KiB has as many nodes, unless macros that copy their target (`optMap`) are chained."""


class MacroError(Exception):
    """The arguments of a macro don't have the form that it needs. `position` is where."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class NodeIds:
    """Hands out node ids and remembers where in the text each node stands."""

    __slots__ = ("positions",)

    def __init__(self) -> None:
        self.positions: dict[int, int] = {}

    def at(self, position: int) -> int:
        node_id = len(self.positions) + 1
        if node_id > MAX_NODES:
            raise MacroError(f"the expression has more than {MAX_NODES} nodes after macro expansion", position)
        self.positions[node_id] = position
        return node_id


class Maker:
    """Makes the nodes of one expansion. They all stand where the macro call stands."""

    __slots__ = ("ids", "position")

    def __init__(self, ids: NodeIds, position: int) -> None:
        self.ids = ids
        self.position = position

    def literal(self, value: LiteralValue) -> Expr:
        return Literal(self.ids.at(self.position), value)

    def ident(self, name: str) -> Expr:
        return Ident(self.ids.at(self.position), name)

    def result(self) -> Expr:
        return self.ident(ACCUMULATOR)

    def call(self, function: str, *args: Expr, target: Expr | None = None) -> Expr:
        return Call(self.ids.at(self.position), function, args, target)

    def new_list(self, *elements: Expr) -> Expr:
        return ListExpr(self.ids.at(self.position), elements)

    def new_map(self) -> Expr:
        return MapExpr(self.ids.at(self.position), ())

    def loop(
        self, target: Expr, variables: tuple[str, str], init: Expr, condition: Expr, step: Expr, result: Expr
    ) -> Expr:
        first, second = variables
        return Comprehension(
            self.ids.at(self.position), first, second, target, ACCUMULATOR, init, condition, step, result
        )

    def bind(self, name: str, init: Expr, result: Expr) -> Expr:
        """A comprehension that never loops: it gives `init` a name in `result`."""
        return Comprehension(
            self.ids.at(self.position),
            UNUSED,
            "",
            self.new_list(),
            name,
            init,
            self.literal(False),
            self.ident(name),
            result,
        )

    def fail(self, message: str, node: Expr) -> MacroError:
        return MacroError(message, self.ids.positions[node.id])

    def copy(self, root: Expr) -> Expr:
        """The same tree with new ids, each node at its old place. Doesn't recurse: trees may be deep."""
        stack: list[tuple[Expr, bool]] = [(root, False)]
        done: list[Expr] = []
        while stack:
            node, children_done = stack.pop()
            children = children_of(node)
            if children and not children_done:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(children))
                continue
            copied = done[len(done) - len(children) :]
            del done[len(done) - len(children) :]
            done.append(self._renumber(node, copied))
        return done[0]

    def _renumber(self, node: Expr, children: list[Expr]) -> Expr:
        positions = self.ids.positions
        node_id = self.ids.at(positions[node.id])
        match node:
            case Literal(_, value):
                return Literal(node_id, value)
            case Ident(_, name):
                return Ident(node_id, name)
            case MapExpr(_, entries):
                ids = [self.ids.at(positions[entry.id]) for entry in entries]
                return replace_children(
                    MapExpr(
                        node_id,
                        tuple(
                            MapEntry(new, entry.key, entry.value, entry.optional)
                            for new, entry in zip(ids, entries, strict=True)
                        ),
                    ),
                    children,
                )
            case StructExpr(_, type_name, fields):
                ids = [self.ids.at(positions[field.id]) for field in fields]
                return replace_children(
                    StructExpr(
                        node_id,
                        type_name,
                        tuple(
                            FieldEntry(new, field.field, field.value, field.optional)
                            for new, field in zip(ids, fields, strict=True)
                        ),
                    ),
                    children,
                )
            case _:
                return replace_children(node, children, node_id)


Expander: TypeAlias = Callable[[Maker, Expr, tuple[Expr, ...]], "Expr | None"]


def expand(ids: NodeIds, position: int, function: str, target: Expr | None, args: tuple[Expr, ...]) -> Expr | None:
    """What the macro of this name and number of arguments makes of a call, or None if there is no such macro."""
    if target is None:
        if function == "has" and len(args) == 1:
            return _has(Maker(ids, position), args[0])
        return None
    expander = _MACROS.get((function, len(args)))
    return expander(Maker(ids, position), target, args) if expander else None


def _has(make: Maker, argument: Expr) -> Expr:
    if not isinstance(argument, Select):
        raise make.fail("invalid argument to has() macro: it takes a field selection such as a.b", argument)
    return Select(make.ids.at(make.position), argument.operand, argument.field, test_only=True)


def _variable(make: Maker, node: Expr, message: str) -> str:
    if not isinstance(node, Ident) or node.name.startswith("."):
        raise make.fail(message, node)
    if node.name in (ACCUMULATOR, "__result__"):
        raise make.fail("iteration variable overwrites accumulator variable", node)
    return node.name


def _variables(make: Maker, args: tuple[Expr, ...], count: int) -> tuple[str, str]:
    first = _variable(make, args[0], "argument must be a simple name")
    if count == 1:
        return first, ""
    second = _variable(make, args[1], "argument must be a simple name")
    if first == second:
        raise make.fail(f"duplicate variable name: {first}", args[1])
    return first, second


def _all(count: int) -> Expander:
    def expander(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
        variables = _variables(make, args, count)
        condition = make.call("@not_strictly_false", make.result())
        step = make.call("_&&_", make.result(), args[count])
        return make.loop(target, variables, make.literal(True), condition, step, make.result())

    return expander


def _exists(count: int) -> Expander:
    def expander(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
        variables = _variables(make, args, count)
        condition = make.call("@not_strictly_false", make.call("!_", make.result()))
        step = make.call("_||_", make.result(), args[count])
        return make.loop(target, variables, make.literal(False), condition, step, make.result())

    return expander


def _exists_one(count: int) -> Expander:
    def expander(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
        variables = _variables(make, args, count)
        increment = make.call("_+_", make.result(), make.literal(1))
        step = make.call("_?_:_", args[count], increment, make.result())
        result = make.call("_==_", make.result(), make.literal(1))
        return make.loop(target, variables, make.literal(0), make.literal(True), step, result)

    return expander


def _build_list(count: int) -> Expander:
    """`map` and `transformList`, with or without a filter before the transformation."""

    def expander(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
        variables = _variables(make, args, count)
        step = make.call("_+_", make.result(), make.new_list(args[-1]))
        if len(args) > count + 1:
            step = make.call("_?_:_", args[count], step, make.result())
        return make.loop(target, variables, make.new_list(), make.literal(True), step, make.result())

    return expander


def _filter(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
    variables = _variables(make, args, 1)
    step = make.call("_+_", make.result(), make.new_list(args[0]))
    step = make.call("_?_:_", args[1], step, make.result())
    return make.loop(target, variables, make.new_list(), make.literal(True), step, make.result())


def _build_map(*, entries: bool) -> Expander:
    """`transformMap` keeps the key; `transformMapEntry` makes whole entries."""

    def expander(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
        variables = _variables(make, args, 2)
        inserted = (args[-1],) if entries else (make.ident(variables[0]), args[-1])
        step = make.call("cel.@mapInsert", make.result(), *inserted)
        if len(args) == 4:
            step = make.call("_?_:_", args[2], step, make.result())
        return make.loop(target, variables, make.new_map(), make.literal(True), step, make.result())

    return expander


def _bind(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    name = _variable(make, args[0], "cel.bind() variable names must be simple identifiers")
    return make.bind(name, args[1], args[2])


def _opt_map(*, flat: bool) -> Expander:
    function = "optFlatMap" if flat else "optMap"

    def expander(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
        name = _variable(make, args[0], f"{function}() variable name must be a simple identifier")
        value = make.call("value", target=make.copy(target))
        mapped = make.bind(name, value, args[1])
        if not flat:
            mapped = make.call("optional.of", mapped)
        return make.call("_?_:_", make.call("hasValue", target=target), mapped, make.call("optional.none"))

    return expander


def _sort_by(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
    if isinstance(target, Literal | MapExpr | StructExpr):
        raise make.fail("sortBy can only be applied to a list, identifier, comprehension, call or selection", target)
    name = "@__sortBy_input__"
    variable = _variable(make, args[0], "argument is not an identifier")
    step = make.call("_+_", make.result(), make.new_list(args[1]))
    keys = make.loop(make.ident(name), (variable, ""), make.new_list(), make.literal(True), step, make.result())
    return make.bind(name, target, make.call("@sortByAssociatedKeys", keys, target=make.ident(name)))


_MACROS: Final[dict[tuple[str, int], Expander]] = {
    ("all", 2): _all(1),
    ("all", 3): _all(2),
    ("exists", 2): _exists(1),
    ("exists", 3): _exists(2),
    ("exists_one", 2): _exists_one(1),
    ("exists_one", 3): _exists_one(2),
    ("existsOne", 3): _exists_one(2),
    ("map", 2): _build_list(1),
    ("map", 3): _build_list(1),
    ("filter", 2): _filter,
    ("transformList", 3): _build_list(2),
    ("transformList", 4): _build_list(2),
    ("transformMap", 3): _build_map(entries=False),
    ("transformMap", 4): _build_map(entries=False),
    ("transformMapEntry", 3): _build_map(entries=True),
    ("transformMapEntry", 4): _build_map(entries=True),
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map(flat=False),
    ("optFlatMap", 2): _opt_map(flat=True),
    ("sortBy", 2): _sort_by,
}
