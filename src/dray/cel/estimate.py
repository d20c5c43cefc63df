"""The static cost estimate: bounds of what an evaluation can cost, from the tree and the sizes its input can have.

The rules (E1 to E13, and E14 to E17 for `devices`) are in docs/cel-costs.md. Two things are computed for each node:
its cost, and its size (`_size_of`). The walk uses a stack of its own; the order of steps is that of cel-go, which
matters because paths share memory (`sizes`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from dray.cel.ast import Call, Checked, Comprehension, Expr, Ident, ListExpr, Literal, MapExpr, Select, StructExpr
from dray.cel.environment import Environment
from dray.cel.estimate_calls import estimate_overload
from dray.cel.estimate_rules import Entries, Operand
from dray.cel.macros import ACCUMULATOR
from dray.cel.ranges import MOST, ONE, UNKNOWN, ZERO, Range, plus, times, union
from dray.cel.sizes import EMPTY, Path, size_at
from dray.cel.types import Type

_LIST_COST: Final = (10, 10)
_MAP_COST: Final = (30, 30)
_MESSAGE_COST: Final = (40, 40)
_NOTHING: Final = (MOST, 0)
"""The union of no ranges."""

_COST_OF_SELECTION: Final = frozenset(("map", "object", "parameter"))
_SCALARS: Final = frozenset(("bool", "int", "uint", "double", "google.protobuf.Duration", "google.protobuf.Timestamp"))


class CostEstimate(NamedTuple):
    """The least and the most that an evaluation costs."""

    min: int
    max: int


class _Local(NamedTuple):
    path: Path
    size: Range | None
    entries: Entries | None


_Step: TypeAlias = "tuple[Callable[[_Estimator, Any], None], Any]"


def estimate(checked: Checked, environment: Environment) -> CostEstimate:
    """Estimate the cost of evaluating a checked expression."""
    return CostEstimate(*_Estimator(checked, environment).run())


class _Estimator:
    def __init__(self, checked: Checked, environment: Environment) -> None:
        self._checked = checked
        self._environment = environment
        self._costs: dict[int, Range] = {}
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, Entries] = {}
        self._operands: dict[int, Operand] = {}
        self._locals: dict[str, list[_Local]] = {}
        self._stack: list[_Step] = []

    def run(self) -> Range:
        root = self._checked.expr
        stack = self._stack
        stack.append((_Estimator._enter, root))
        while stack:
            step, subject = stack.pop()
            step(self, subject)
        return self._costs[root.id]

    def _enter(self, node: Expr) -> None:
        _ENTER[type(node)](self, node)

    # Leaves and selections

    def _enter_literal(self, node: Literal) -> None:
        self._costs[node.id] = ZERO

    def _enter_ident(self, node: Ident) -> None:
        local = self._local(node.name)
        self._paths[node.id] = local.path if local else Path.of(node.name)
        self._costs[node.id] = ONE

    def _enter_select(self, node: Select) -> None:
        self._stack.append((_Estimator._leave_select, node))
        self._stack.append((_Estimator._enter, node.operand))

    def _leave_select(self, node: Select) -> None:
        cost = self._costs[node.operand.id]
        if not node.test_only:
            if self._checked.types[node.operand.id].kind in _COST_OF_SELECTION:
                cost = plus(cost, ONE)
            self._paths[node.id] = self._path_of(node.operand).append(node.field)
        self._costs[node.id] = cost

    # Lists, maps and messages

    def _enter_list(self, node: ListExpr) -> None:
        self._stack.append((_Estimator._leave_list, node))
        for element in reversed(node.elements):
            self._stack.append((_Estimator._measure, element))
            self._stack.append((_Estimator._enter, element))

    def _leave_list(self, node: ListExpr) -> None:
        cost, items = _LIST_COST, _NOTHING if node.elements else ZERO
        for element in node.elements:
            cost = plus(cost, self._costs[element.id])
            items = union(items, self._operands[element.id].size or UNKNOWN)
        self._entries[node.id] = Entries("list", ONE, items)
        self._costs[node.id] = cost

    def _enter_map(self, node: MapExpr) -> None:
        self._stack.append((_Estimator._leave_map, node))
        for entry in reversed(node.entries):
            self._stack.append((_Estimator._measure, entry.value))
            self._stack.append((_Estimator._measure, entry.key))
            self._stack.append((_Estimator._enter, entry.value))
            self._stack.append((_Estimator._enter, entry.key))

    def _leave_map(self, node: MapExpr) -> None:
        cost = _MAP_COST
        keys = values = _NOTHING if node.entries else ZERO
        for entry in node.entries:
            cost = plus(plus(cost, self._costs[entry.key.id]), self._costs[entry.value.id])
            keys = union(keys, self._operands[entry.key.id].size or UNKNOWN)
            values = union(values, self._operands[entry.value.id].size or UNKNOWN)
        self._entries[node.id] = Entries("map", keys, values)
        self._costs[node.id] = cost

    def _enter_struct(self, node: StructExpr) -> None:
        self._stack.append((_Estimator._leave_struct, node))
        self._stack.extend([(_Estimator._enter, entry.value) for entry in reversed(node.fields)])

    def _leave_struct(self, node: StructExpr) -> None:
        cost = _MESSAGE_COST
        for entry in node.fields:
            cost = plus(cost, self._costs[entry.value.id])
        self._costs[node.id] = cost

    # Calls

    def _enter_call(self, node: Call) -> None:
        if node.function == "dyn":
            self._stack.append((_Estimator._leave_dyn, node))
            self._stack.append((_Estimator._enter, node.args[0]))
            return
        self._stack.append((_Estimator._leave_call, node))
        if node.target is not None:
            self._stack.append((_Estimator._measure, node.target))
            self._stack.append((_Estimator._enter, node.target))
        for arg in reversed(node.args):
            self._stack.append((_Estimator._measure, arg))
            self._stack.append((_Estimator._enter, arg))

    def _measure(self, node: Expr) -> None:
        """Note what a rule may ask of an operand, at the time when cel-go looks."""
        path = self._path_of(node)
        if path.length and path.root in (ACCUMULATOR, "__result__"):
            path = EMPTY
        type_ = self._checked.types.get(node.id)
        size = self._size_of(node)
        self._operands[node.id] = Operand(node, self._costs[node.id], path, type_, size, self._entries_of(node))

    def _leave_dyn(self, node: Call) -> None:
        self._costs[node.id] = plus(ONE, self._costs[node.args[0].id])
        self._copy_sizes(node, node.args[0])

    def _leave_call(self, node: Call) -> None:
        operands = [self._operands[arg.id] for arg in node.args]
        target = None if node.target is None else self._operands[node.target.id]
        cost = _NOTHING
        size: Range | None = None
        for overload in self._checked.references[node.id].overload_ids:
            one = estimate_overload(node.function, overload, target, operands, self._environment)
            cost = union(cost, one.cost)
            if one.size is not None:
                size = one.size if size is None else union(size, one.size)
            if one.entries_of:
                self._unite_entries(node, *one.entries_of)
            if overload in _INDEXES:
                entries = operands[0].entries
                size = entries.values if entries else None
                self._paths[node.id] = self._path_of(node.args[0]).append(_INDEXES[overload])
            if size is None:
                size = self._size_of(node)
        if size is not None:
            self._sizes[node.id] = size
        self._costs[node.id] = plus(ZERO if target is None else target.cost, cost)

    def _unite_entries(self, node: Call, left: Operand, right: Operand) -> None:
        """The result holds what is in both operands."""
        if left.entries and right.entries:
            keys = union(left.entries.keys, right.entries.keys)
            values = union(left.entries.values, right.entries.values)
            self._entries[node.id] = Entries(left.entries.kind, keys, values)

    # Comprehensions

    def _enter_comprehension(self, node: Comprehension) -> None:
        if _is_bind(node):
            self._stack += [
                (_Estimator._leave_bind, node),
                (_Estimator._enter, node.result),
                (_Estimator._enter_accumulator, node),
                (_Estimator._enter, node.accu_init),
                (_Estimator._enter, node.iter_range),
            ]
            return
        self._stack += [
            (_Estimator._leave_comprehension, node),
            (_Estimator._enter, node.result),
            (_Estimator._leave_loop, node),
            (_Estimator._enter, node.loop_step),
            (_Estimator._enter, node.loop_condition),
            (_Estimator._enter_loop, node),
            (_Estimator._enter_accumulator, node),
            (_Estimator._enter, node.accu_init),
            (_Estimator._enter, node.iter_range),
        ]

    def _enter_accumulator(self, node: Comprehension) -> None:
        init = node.accu_init
        self._push(node.accu_var, _Local(self._path_of(init), self._size_of(init), self._entries_of(init)))

    def _enter_loop(self, node: Comprehension) -> None:
        entries = self._entries_of(node.iter_range)
        path = self._path_of(node.iter_range)
        kind = entries.kind if entries else self._checked.types[node.iter_range.id].kind
        keys, values = (entries.keys, entries.values) if entries else (None, None)
        if node.iter_var2:
            self._push(node.iter_var, _Local(path.append("@indices" if kind == "list" else "@keys"), keys, None))
            self._push(node.iter_var2, _Local(path.append("@items" if kind == "list" else "@values"), values, None))
        elif kind == "list":
            self._push(node.iter_var, _Local(path.append("@items"), values, None))
        else:
            self._push(node.iter_var, _Local(path.append("@keys"), keys, None))

    def _leave_loop(self, node: Comprehension) -> None:
        self._locals[node.iter_var].pop()
        if node.iter_var2:
            self._locals[node.iter_var2].pop()

    def _leave_comprehension(self, node: Comprehension) -> None:
        self._locals[node.accu_var].pop()
        costs = self._costs
        count = self._size_of(node.iter_range) or UNKNOWN
        cost = plus(plus(costs[node.iter_range.id], costs[node.accu_init.id]), costs[node.result.id])
        each = plus(costs[node.loop_condition.id], costs[node.loop_step.id])
        costs[node.id] = plus(cost, times(count, each))
        if isinstance(node.accu_init, Literal):
            size = self._size_of(node.accu_init)
            if size is not None:
                self._sizes[node.id] = size
        elif isinstance(node.accu_init, ListExpr | MapExpr):
            self._sizes[node.id] = count
            if entries := self._entries_of(node.loop_step):
                self._entries[node.id] = entries

    def _leave_bind(self, node: Comprehension) -> None:
        self._locals[node.accu_var].pop()
        costs = self._costs
        costs[node.id] = plus(plus(costs[node.iter_range.id], costs[node.accu_init.id]), costs[node.result.id])
        self._copy_sizes(node, node.result)

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _local(self, name: str) -> _Local | None:
        scopes = self._locals.get(name)
        return scopes[-1] if scopes else None

    # Sizes

    def _path_of(self, node: Expr) -> Path:
        if isinstance(node, Ident) and (local := self._local(node.name)):
            return local.path
        return self._paths.get(node.id, EMPTY)

    def _copy_sizes(self, node: Expr, source: Expr) -> None:
        if (size := self._size_of(source)) is not None:
            self._sizes[node.id] = size
        if (entries := self._entries_of(source)) is not None:
            self._entries[node.id] = entries

    def _entries_of(self, node: Expr) -> Entries | None:
        found = self._entries.get(node.id)
        if found is None and isinstance(node, Ident) and (local := self._local(node.name)):
            return local.entries
        return found

    def _size_of(self, node: Expr) -> Range | None:
        """The size of a node (rule E5), None if it is unknown."""
        size = self._sizes.get(node.id)
        if size is not None:
            return size
        match node:
            case Literal(_, value):
                length = len(value) if isinstance(value, str | bytes) else 1
                return (length, length)
            case ListExpr(_, elements):
                return (len(elements), len(elements))
            case MapExpr(_, entries):
                return (len(entries), len(entries))
            case _:
                pass
        size = size_at(self._path_of(node), self._environment)
        if size is not None:
            self._sizes[node.id] = size
            return size
        type_ = self._checked.types.get(node.id)
        if type_ is not None and _is_scalar(type_):
            return ONE
        if isinstance(node, Ident) and (local := self._local(node.name)):
            return local.size
        return None


_INDEXES: Final = {"index_list": "@items", "index_map": "@values"}


def _is_bind(node: Comprehension) -> bool:
    condition = node.loop_condition
    return (
        isinstance(node.iter_range, ListExpr)
        and not node.iter_range.elements
        and isinstance(condition, Literal)
        and condition.value is False
        and node.accu_var != "__result__"
    )


def _is_scalar(type_: Type) -> bool:
    while type_.name == "optional_type":
        type_ = type_.parameters[0]
    if type_.kind == "wrapper":
        type_ = type_.parameters[0]
    return type_.kind == "primitive" and type_.name in _SCALARS


_ENTER: Final[dict[type, Callable[[_Estimator, Any], None]]] = {
    Literal: _Estimator._enter_literal,
    Ident: _Estimator._enter_ident,
    Select: _Estimator._enter_select,
    Call: _Estimator._enter_call,
    ListExpr: _Estimator._enter_list,
    MapExpr: _Estimator._enter_map,
    StructExpr: _Estimator._enter_struct,
    Comprehension: _Estimator._enter_comprehension,
}
