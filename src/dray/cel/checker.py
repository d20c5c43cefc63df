"""The type checker: what type has each node, which variable or overloads does each name stand for?

It walks the tree with a stack of its own (see `parser` for why): a step checks one node after its children, and leaves
the answer in `types` and `references`. The first error ends the walk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

from dray.cel.ast import (
    Call,
    Checked,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Parsed,
    Reference,
    Select,
    StructExpr,
    Uint,
    children_of,
    replace_children,
)
from dray.cel.declarations import Function
from dray.cel.environment import Environment
from dray.cel.errors import CompileError
from dray.cel.recursion import with_deep_stack
from dray.cel.scopes import Found, Scopes, suggest
from dray.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
)
from dray.cel.unification import Substitution, is_dynamic, most_general, same

_LITERAL_TYPES: Final[dict[type, Type]] = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
_LOGIC: Final = {"_&&_": Reference(overload_ids=("logical_and",)), "_||_": Reference(overload_ids=("logical_or",))}
_OPTIONAL_SELECT: Final = Reference(overload_ids=("select_optional_field",))

_MAX_TYPE_DEPTH: Final = 300
"""More than a literal can have; only variables bound to nested literals, nested again, get beyond."""

_Step: TypeAlias = "tuple[Callable[[_Checker, Any], None], Any]"


def check(parsed: Parsed, environment: Environment) -> Checked:
    """Check the types of an expression. Raises `CompileError`."""
    return with_deep_stack(_check, parsed, environment)  # only types recurse, and only very nested ones need it


def _check(parsed: Parsed, environment: Environment) -> Checked:
    return _Checker(parsed, environment).run()


class _Checker:
    def __init__(self, parsed: Parsed, environment: Environment) -> None:
        self._parsed = parsed
        self._environment = environment
        self._substitution = Substitution()
        self._types: dict[int, Type] = {}
        self._references: dict[int, Reference] = {}
        self._scopes = Scopes(environment)
        self._stack: list[_Step] = []
        self._joined: dict[int, tuple[Type | None, Type | None]] = {}
        self._resolved: dict[int, Expr] = {}

    def run(self) -> Checked:
        root = self._parsed.expr
        stack = self._stack
        stack.append((_Checker._enter, root))
        while stack:
            step, subject = stack.pop()
            step(self, subject)
        types = self._substitution.settle_all(self._types)
        return Checked(self._parsed, self._rebuild(root), types, self._references)

    def _enter(self, node: Expr) -> None:
        _ENTER[type(node)](self, node)

    # Names

    def _enter_literal(self, node: Literal) -> None:
        self._types[node.id] = _LITERAL_TYPES[type(node.value)]

    def _enter_ident(self, node: Ident) -> None:
        found = self._scopes.find(node.name)
        if found is None:
            self._fail_undeclared(node.id, node.name)
        self._set_name(node, found)
        if node.name != found.name:
            # A dot in front stays if it is what makes the name global.
            kept = node.name.startswith(".") and self._scopes.is_local(found.name)
            self._resolved[node.id] = Ident(node.id, node.name if kept else found.name)

    def _enter_select(self, node: Select) -> None:
        found = None if node.test_only else self._scopes.find_qualified(node)
        if found:
            self._set_name(node, found)
            self._resolved[node.id] = Ident(node.id, found.name)
        else:
            self._stack.append((_Checker._leave_select, node))
            self._stack.append((_Checker._enter, node.operand))

    def _set_name(self, node: Expr, found: Found) -> None:
        self._types[node.id] = found.type
        self._references[node.id] = Reference(found.name, is_type=found.is_type)

    # Selections

    def _leave_select(self, node: Select) -> None:
        result = self._field_type(node.id, node.operand, node.field, optional=False)
        self._types[node.id] = BOOL if node.test_only else result

    def _leave_optional_select(self, node: Call) -> None:
        operand, field = node.args
        assert isinstance(field, Literal)
        self._types[node.id] = self._field_type(node.id, operand, str(field.value), optional=True)
        self._references[node.id] = _OPTIONAL_SELECT

    def _field_type(self, node_id: int, operand: Expr, field: str, *, optional: bool) -> Type:
        target = self._substitution.resolve(self._types[operand.id])
        if target.name == "optional_type":
            optional = True
            target = target.parameters[0]
        match target.kind:
            case "map":
                result = target.parameters[1]
            case "object":
                result = self._object_field(node_id, target.name, field)
            case "parameter":
                self._substitution.assignable(DYN, target)
                result = DYN
            case "dyn" | "any":
                result = DYN
            case _:
                self._fail(node_id, f"type '{target}' does not support field selection")
        return self._substitution.resolve(optional_of(result) if optional else result)

    def _object_field(self, node_id: int, type_name: str, field: str) -> Type:
        fields = self._environment.objects.get(type_name, {})
        if field not in fields:
            self._fail(node_id, f"undefined field '{field}' of {type_name}{suggest(field, fields)}")
        return fields[field]

    # Calls

    def _enter_call(self, node: Call) -> None:
        stack = self._stack
        if node.function == "_?._":
            stack.append((_Checker._leave_optional_select, node))
            stack.append((_Checker._enter, node.args[0]))
            return
        function, target = self._scopes.find_function(node.function, node.target)
        if function is None:
            self._fail_undeclared(node.id, node.function)
        stack.append((_Checker._leave_call, (node, function, target)))
        if target is not None:
            stack.append((_Checker._enter, target))
        stack.extend([(_Checker._enter, arg) for arg in reversed(node.args)])

    def _leave_call(self, subject: tuple[Call, Function, Expr | None]) -> None:
        node, function, target = subject
        if function.name != node.function or target is not node.target:
            self._resolved[node.id] = Call(node.id, function.name, node.args, target)
        types = self._types
        arguments = [types[arg.id] for arg in node.args]
        if target is not None:
            arguments.insert(0, types[target.id])
        elif node.function in _LOGIC:
            for arg, type_ in zip(node.args, arguments, strict=True):
                if not self._substitution.assignable(type_, BOOL):
                    self._fail_mismatch(arg.id, BOOL, type_)
            types[node.id] = BOOL
            self._references[node.id] = _LOGIC[node.function]
            return
        self._resolve_overload(node, function, arguments, member=target is not None)

    def _resolve_overload(self, node: Call, function: Function, arguments: list[Type], *, member: bool) -> None:
        substitution = self._substitution
        result: Type | None = None
        matching: list[str] = []
        for overload in function.by_shape.get((member, len(arguments)), ()):
            candidate = substitution.fits(arguments, overload)
            if candidate is None:
                continue
            matching.append(overload.id)
            if result is None:
                result = candidate
            elif not is_dynamic(result) and not same(candidate, result):
                result = DYN
        if result is None:
            shown = [str(substitution.settle(argument)) for argument in arguments]
            call = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
            self._fail(node.id, f"found no matching overload for '{function.name}' applied to '{call}'")
        self._set_type(node, result)
        self._references[node.id] = Reference(overload_ids=tuple(matching))

    # Literals of lists, maps and messages

    def _enter_list(self, node: ListExpr) -> None:
        self._joined[node.id] = (None, None)
        self._stack.append((_Checker._leave_list, node))
        for index in reversed(range(len(node.elements))):
            self._stack.append((_Checker._join_element, (node, index)))
            self._stack.append((_Checker._enter, node.elements[index]))

    def _join_element(self, subject: tuple[ListExpr, int]) -> None:
        node, index = subject
        element = node.elements[index]
        type_ = self._types[element.id]
        if index in node.optional_indices:
            type_ = self._optional_value(element, type_)
        self._joined[node.id] = (self._join(self._joined[node.id][0], type_), None)

    def _leave_list(self, node: ListExpr) -> None:
        self._set_type(node, list_of(self._joined[node.id][0] or self._substitution.new_variable()))

    def _enter_map(self, node: MapExpr) -> None:
        self._joined[node.id] = (None, None)
        self._stack.append((_Checker._leave_map, node))
        for entry in reversed(node.entries):
            self._stack.append((_Checker._join_value, (node, entry.value, entry.optional)))
            self._stack.append((_Checker._enter, entry.value))
            self._stack.append((_Checker._join_key, (node, entry.key)))
            self._stack.append((_Checker._enter, entry.key))

    def _join_key(self, subject: tuple[MapExpr, Expr]) -> None:
        node, key = subject
        keys, values = self._joined[node.id]
        self._joined[node.id] = (self._join(keys, self._types[key.id]), values)

    def _join_value(self, subject: tuple[MapExpr, Expr, bool]) -> None:
        node, value, optional = subject
        keys, values = self._joined[node.id]
        type_ = self._types[value.id]
        if optional:
            type_ = self._optional_value(value, type_)
        self._joined[node.id] = (keys, self._join(values, type_))

    def _leave_map(self, node: MapExpr) -> None:
        keys, values = self._joined[node.id]
        new_variable = self._substitution.new_variable
        self._set_type(node, map_of(keys or new_variable(), values or new_variable()))

    def _join(self, previous: Type | None, current: Type) -> Type:
        """The type for both. Mixed literals become dyn here; a validator rejects them outside of `format`."""
        if previous is None:
            return current
        if self._substitution.assignable(previous, current):
            return most_general(previous, current)
        return DYN

    def _optional_value(self, node: Expr, type_: Type) -> Type:
        if type_.name == "optional_type":
            return type_.parameters[0]
        if not is_dynamic(type_):
            self._fail_mismatch(node.id, optional_of(type_), type_)
        return type_

    def _enter_struct(self, node: StructExpr) -> None:
        found = self._scopes.find(node.type_name)
        if found is None:
            self._fail_undeclared(node.id, node.type_name)
        type_ = found.type.parameters[0] if found.is_type else found.type
        if not found.is_type or found.name not in self._environment.objects:
            self._fail(node.id, f"'{type_}' is not a message type")
        if node.type_name != found.name:
            self._resolved[node.id] = StructExpr(node.id, found.name, node.fields)
        self._types[node.id] = type_
        self._references[node.id] = Reference(found.name, is_type=True)
        for index in reversed(range(len(node.fields))):
            self._stack.append((_Checker._check_field, (node, found.name, index)))
            self._stack.append((_Checker._enter, node.fields[index].value))

    def _check_field(self, subject: tuple[StructExpr, str, int]) -> None:
        node, type_name, index = subject
        entry = node.fields[index]
        expected = self._object_field(entry.id, type_name, entry.field)
        type_ = self._types[entry.value.id]
        if entry.optional:
            type_ = self._optional_value(entry.value, type_)
        if not self._substitution.assignable(expected, type_):
            self._fail(
                entry.id, f"expected type of field '{entry.field}' is '{expected}' but provided type is '{type_}'"
            )

    # Comprehensions

    def _enter_comprehension(self, node: Comprehension) -> None:
        self._stack += [
            (_Checker._leave_comprehension, node),
            (_Checker._enter, node.result),
            (_Checker._leave_loop, node),
            (_Checker._enter, node.loop_step),
            (_Checker._leave_condition, node),
            (_Checker._enter, node.loop_condition),
            (_Checker._enter_loop, node),
            (_Checker._enter, node.accu_init),
            (_Checker._enter, node.iter_range),
        ]

    def _enter_loop(self, node: Comprehension) -> None:
        range_type = self._substitution.resolve(self._types[node.iter_range.id])
        match range_type.kind:
            case "list":
                first, second = INT, range_type.parameters[0]
                if not node.iter_var2:
                    first = second
            case "map":
                first, second = range_type.parameters
            case "dyn" | "parameter":
                self._substitution.assignable(DYN, range_type)
                first = second = DYN
            case _:
                self._fail(
                    node.iter_range.id,
                    f"expression of type '{range_type}' cannot be range of a comprehension "
                    "(must be list, map, or dynamic)",
                )
        self._scopes.enter(node.accu_var, self._types[node.accu_init.id])
        self._scopes.enter(node.iter_var, first)
        if node.iter_var2:
            self._scopes.enter(node.iter_var2, second)

    def _leave_condition(self, node: Comprehension) -> None:
        self._require(node.loop_condition, BOOL)

    def _leave_loop(self, node: Comprehension) -> None:
        self._require(node.loop_step, self._types[node.accu_init.id])
        self._scopes.leave(node.iter_var)
        if node.iter_var2:
            self._scopes.leave(node.iter_var2)

    def _leave_comprehension(self, node: Comprehension) -> None:
        self._scopes.leave(node.accu_var)
        self._types[node.id] = self._substitution.resolve(self._types[node.result.id])

    def _require(self, node: Expr, expected: Type) -> None:
        if not self._substitution.assignable(expected, self._types[node.id]):
            self._fail_mismatch(node.id, expected, self._types[node.id])

    # Results

    def _set_type(self, node: Expr, type_: Type) -> None:
        if type_.depth > _MAX_TYPE_DEPTH:
            self._fail(node.id, f"the type of this nests deeper than {_MAX_TYPE_DEPTH}")
        self._types[node.id] = type_

    def _rebuild(self, root: Expr) -> Expr:
        """The tree with the resolved names in it."""
        if not self._resolved:
            return root
        stack: list[tuple[Expr, bool]] = [(root, False)]
        done: list[Expr] = []
        while stack:
            node, children_done = stack.pop()
            node = self._resolved.get(node.id, node)
            children = children_of(node)
            if children and not children_done:
                stack.append((node, True))
                stack.extend([(child, False) for child in reversed(children)])
                continue
            first = len(done) - len(children)
            if any(new is not old for new, old in zip(done[first:], children, strict=True)):
                node = replace_children(node, done[first:])
            done[first:] = [node]
        return done[0]

    def _fail_undeclared(self, node_id: int, name: str) -> NoReturn:
        container = self._environment.container
        hint = self._scopes.suggest(name)
        self._fail(node_id, f"undeclared reference to '{name}' (in container '{container}'){hint}")

    def _fail_mismatch(self, node_id: int, expected: Type, found: Type) -> NoReturn:
        settle = self._substitution.settle
        self._fail(node_id, f"expected type '{settle(expected)}' but found '{settle(found)}'")

    def _fail(self, node_id: int, message: str) -> NoReturn:
        message = message.replace(str(ANY), "any")  # its name in the messages of a checker
        raise CompileError(message, text=self._parsed.text, position=self._parsed.positions[node_id])


_ENTER: Final[dict[type, Callable[[_Checker, Any], None]]] = {
    Literal: _Checker._enter_literal,
    Ident: _Checker._enter_ident,
    Select: _Checker._enter_select,
    Call: _Checker._enter_call,
    ListExpr: _Checker._enter_list,
    MapExpr: _Checker._enter_map,
    StructExpr: _Checker._enter_struct,
    Comprehension: _Checker._enter_comprehension,
}
