"""Makes the plan of a checked expression. What goes wrong here, Kubernetes calls an internal error of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, cast

from dray.cel import ast
from dray.cel.ast import Checked, Expr, Ident, Literal, Select, Uint
from dray.cel.declarations import Function
from dray.cel.dispatch import Apply, bind_call
from dray.cel.errors import CompileError, EvaluationError
from dray.cel.meter import FREE, Meter
from dray.cel.numbers import twins
from dray.cel.plan import (
    Attribute,
    Call,
    Constant,
    Equality,
    Fold,
    Has,
    IsOneOf,
    Logic,
    NewEntry,
    NewField,
    NewList,
    NewMap,
    NewMessage,
    Node,
    NotStrictlyFalse,
    OptionalOr,
    Plan,
    Qualifier,
    Resolved,
    Ternary,
    Variable,
)
from dray.cel.regexes import InvalidRegex, Regex, compile_regex
from dray.cel.run_time_costs import cost_rule
from dray.cel.values import Map, TypeValue, Value, encode_key, no_such_overload, type_name

_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
_KEY_TYPES: Final = frozenset((str, int, Uint, bool, float))


def make_plan(checked: Checked, functions: Mapping[str, Function]) -> Plan:
    """Raises CompileError of kind `internal`."""
    planner = _Planner(checked, functions)
    root = planner.plan(checked.expr)
    return Plan(root, planner.slots, checked.types)


class _Planner:
    def __init__(self, checked: Checked, functions: Mapping[str, Function]) -> None:
        self._checked = checked
        self._functions = functions
        self._scopes: dict[str, list[Variable]] = {}
        self.slots = 0

    def _fail(self, message: str, node: Expr) -> CompileError:
        parsed = self._checked.parsed
        return CompileError(message, text=parsed.text, position=parsed.positions.get(node.id), kind="internal")

    def plan(self, node: Expr) -> Node:
        match node:
            case Literal(id, value):
                return Constant(id, value)
            case Ident(id, name):
                return self._plan_name(id, name)
            case Select():
                return self._plan_select(node)
            case ast.Call():
                return self._plan_call(node)
            case ast.ListExpr():
                return self._plan_list(node)
            case ast.MapExpr():
                return self._plan_map(node)
            case ast.StructExpr(id, type_name, fields):
                planned = tuple(NewField(field.field, self.plan(field.value), field.optional) for field in fields)
                return NewMessage(id, type_name, planned)
            case ast.Comprehension():
                return self._plan_fold(node)

    def _plan_name(self, node_id: int, name: str) -> Node:
        reference = self._checked.references.get(node_id)
        if reference is not None and reference.is_type:
            return Constant(node_id, TypeValue(name.removeprefix(".")))
        scopes = self._scopes.get(name)
        if scopes:
            return Attribute(node_id, scopes[-1])
        return Attribute(node_id, Variable(name.removeprefix(".")))

    # Chains of selections and indexes

    def _plan_select(self, node: Select) -> Node:
        target = self.plan(node.operand)
        qualifier = Qualifier(node.id, node.field, constant=True, tests=node.test_only)
        attribute = _qualified(_as_attribute(target), qualifier)
        return Has(node.id, attribute) if node.test_only else attribute

    def _plan_index(self, node: ast.Call, *, optional: bool) -> Node:
        target, index = (self.plan(argument) for argument in node.args)
        if isinstance(index, Constant):
            if type(index.value) not in _KEY_TYPES:
                raise self._fail(f"invalid qualifier type: {type_name(index.value)}", node)
            qualifier = Qualifier(node.id, index.value, constant=True, optional=optional)
        else:
            qualifier = Qualifier(node.id, _as_attribute(index), constant=False, optional=optional)
        return _qualified(_as_attribute(target), qualifier)

    def _plan_optional_select(self, node: ast.Call) -> Node:
        field = cast("Literal", node.args[1])
        qualifier = Qualifier(node.id, field.value, constant=True, optional=True)
        return _qualified(_as_attribute(self.plan(node.args[0])), qualifier)

    # Calls

    def _plan_call(self, node: ast.Call) -> Node:
        match node.function, node.args:
            case ("_&&_" | "_||_") as name, (left, right):
                return Logic(node.id, name == "_||_", self.plan(left), self.plan(right))
            case ("_==_" | "_!=_") as name, (left, right):
                return Equality(node.id, name == "_!=_", self.plan(left), self.plan(right))
            case "_?_:_", (condition, then, otherwise):
                planned = self.plan(condition)
                return Ternary(node.id, planned, _as_attribute(self.plan(then)), _as_attribute(self.plan(otherwise)))
            case "_[_]", _:
                return self._plan_index(node, optional=False)
            case "_[?_]", _:
                return self._plan_index(node, optional=True)
            case "_?._", _:
                return self._plan_optional_select(node)
            case "@not_strictly_false", (argument,):
                return NotStrictlyFalse(node.id, self.plan(argument))
        arguments = tuple(self.plan(argument) for argument in ast.children_of(node))
        if node.function in ("or", "orValue") and len(arguments) == 2:
            return OptionalOr(node.id, arguments[0], arguments[1], node.function == "orValue")
        return self._optimize(node, self._bind(node, arguments))

    def _bind(self, node: ast.Call, arguments: tuple[Node, ...]) -> Call:
        reference = self._checked.references.get(node.id)
        overload_ids = () if reference is None else reference.overload_ids
        overload_id = overload_ids[0] if len(overload_ids) == 1 else ""
        # Only where the checker was skipped is a function unknown, or called with a wrong number of arguments.
        # Functions of several overloads find that out when they are called.
        function = self._functions.get(node.function) or Function(node.function, ())
        if len(function.overloads) == 1 and len(arguments) != len(function.overloads[0].parameters):
            raise self._fail(f"no such overload: {node.function} with {len(arguments)} arguments", node)
        apply, stops = bind_call(function, overload_ids, len(arguments))
        rule = cost_rule(node.function, overload_id)
        return Call(node.id, node.function, overload_id, arguments, apply, rule, stops)

    def _optimize(self, node: ast.Call, call: Call) -> Node:
        arguments = call.arguments
        if call.function in _CONVERSIONS and len(arguments) == 1 and isinstance(arguments[0], Constant):
            try:
                return Constant(call.id, call.apply(FREE, arguments[0].value))
            except EvaluationError as error:
                raise self._fail(str(error), node) from None
        if call.overload_id == "in_list" and isinstance(arguments[1], Constant):
            return _optimize_membership(call, cast("list[Value]", arguments[1].value))
        if call.function in _REGEX_FUNCTIONS and len(arguments) > 1:
            return self._optimize_regex(node, call)
        return call

    def _optimize_regex(self, node: ast.Call, call: Call) -> Call:
        pattern = call.arguments[1]
        if not isinstance(pattern, Constant) or type(pattern.value) is not str:
            return call
        try:
            regex = compile_regex(pattern.value)
        except InvalidRegex as error:
            raise self._fail(str(error), node) from None
        apply = _REGEX_FUNCTIONS[call.function](regex)
        return Call(call.id, call.function, call.overload_id, call.arguments, apply, call.cost, stops=True)

    # Literals

    def _plan_list(self, node: ast.ListExpr) -> Node:
        elements = tuple(self.plan(element) for element in node.elements)
        self._check_optional(node.elements[index] for index in node.optional_indices)
        if not node.optional_indices and all(isinstance(element, Constant) for element in elements):
            return Constant(node.id, [cast("Constant", element).value for element in elements])
        return NewList(node.id, elements, node.optional_indices)

    def _plan_map(self, node: ast.MapExpr) -> Node:
        entries = tuple(
            NewEntry(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries
        )
        self._check_optional(entry.value for entry in node.entries if entry.optional)
        constant: Map = {}
        for entry in entries:
            if entry.optional or not isinstance(entry.key, Constant) or not isinstance(entry.value, Constant):
                return NewMap(node.id, entries)
            try:
                constant[encode_key(entry.key.value)] = entry.value.value
            except EvaluationError as error:
                raise self._fail(str(error), node) from None
        return Constant(node.id, constant)

    def _check_optional(self, values: Iterable[Expr]) -> None:
        for value in values:
            if not self._checked.types[value.id].parameters:
                raise self._fail("an optional element must have an optional type, not a dynamic one", value)

    # Comprehensions

    def _plan_fold(self, node: ast.Comprehension) -> Node:
        init = self.plan(node.accu_init)
        iter_range = self.plan(node.iter_range)
        first, accumulator, mark = self.slots, self.slots + 1, self.slots + 2
        second = self.slots + 3 if node.iter_var2 else None
        self.slots += 4 if node.iter_var2 else 3
        variables = [Variable(node.iter_var, first)]
        if second is not None:
            variables.append(Variable(node.iter_var2, second))
        result_variable = Variable(node.accu_var, accumulator, lazy=True)
        # The accumulator hides an iteration variable of its name; only it is visible in the result.
        for variable in (*variables, result_variable):
            self._scopes.setdefault(variable.name, []).append(variable)
        condition, step = self.plan(node.loop_condition), self.plan(node.loop_step)
        for variable in variables:
            self._scopes[variable.name].remove(variable)
        result = self.plan(node.result)
        self._scopes[node.accu_var].pop()
        return Fold(node.id, iter_range, first, second, accumulator, mark, init, condition, step, result)


def _as_attribute(node: Node) -> Resolved:
    """The node as something that qualifiers can follow. `has(x)` counts as the attribute that it tests."""
    if isinstance(node, Attribute | Ternary):
        return node
    if isinstance(node, Has):
        return node.attribute
    return Attribute(node.id, node)


def _qualified(target: Resolved, qualifier: Qualifier) -> Resolved:
    if isinstance(target, Ternary):
        then, otherwise = _qualified(target.then, qualifier), _qualified(target.otherwise, qualifier)
        return Ternary(target.id, target.condition, then, otherwise)
    return Attribute(target.id, target.base, (*target.qualifiers, qualifier))


def _optimize_membership(call: Call, items: list[Value]) -> Node:
    if not items:
        return Constant(call.id, False)
    keys: set[object] = set()
    for item in items:
        if type(item) not in _KEY_TYPES:
            return call
        keys.update((type(twin), twin) for twin in twins(item))
    return IsOneOf(call.id, call.arguments[0], frozenset(keys))


def _matching(regex: Regex) -> Apply:
    def apply(meter: Meter, text: Value, *rest: Value) -> Value:
        if type(text) is not str:
            raise no_such_overload("matches", text, *rest)
        return regex.is_in(text)

    return apply


def _finding(regex: Regex) -> Apply:
    def apply(meter: Meter, text: Value, *rest: Value) -> Value:
        if type(text) is not str:
            raise no_such_overload("find", text, *rest)
        return regex.find(text)

    return apply


def _finding_all(regex: Regex) -> Apply:
    def apply(meter: Meter, text: Value, pattern: Value, limit: Value = -1) -> Value:
        if type(text) is not str or type(limit) is not int:
            raise no_such_overload("findAll", text, pattern, limit)
        meter.spend_text(len(text))
        return regex.find_all(text, limit)

    return apply


_REGEX_FUNCTIONS: Final[dict[str, Callable[[Regex], Apply]]] = {
    "matches": _matching,
    "find": _finding,
    "findAll": _finding_all,
}
