"""The conformance suite of the CEL language, as far as it is in the scope of Kubernetes' dialect.

`dra_env` of a test says what that dialect makes of it; that, not the suite's own expectation, is compared.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dray.cel import types
from dray.cel.ast import Comprehension, Literal, Uint, children_of
from dray.cel.checker import check
from dray.cel.declarations import Function, Overload
from dray.cel.environment import Environment, generic_environment
from dray.cel.errors import CompileError
from dray.cel.parser import parse
from dray.cel.planner import make_plan
from dray.cel.program import Program, compile_expression
from dray.cel.types import Type
from dray.cel.unchecked import resolve_names
from dray.cel.values import TypeValue, Value, encode_key
from tests.conformance.cel import unequal
from tests.conformance.cel_values import encode, normalize
from tests.conformance.runner import Case, has_keys, iter_data

PHASES: Final = {"parse": "invalid", "check": "invalid", "program": "internal"}
PRIMITIVES: Final = {
    "BOOL": types.BOOL,
    "BYTES": types.BYTES,
    "DOUBLE": types.DOUBLE,
    "INT64": types.INT,
    "STRING": types.STRING,
    "UINT64": types.UINT,
}


is_mine = has_keys("sections")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for path, data in iter_data(paths, is_mine):
        for section in data.get("sections", ()):
            for test in section["tests"]:
                if test["in_scope"]:
                    name = f"{path.name} {section['name']}/{test['name']} {test['expr']!r}"
                    yield Case(name, lambda test=test: _compare(test))  # type: ignore[misc]


def _compare(test: dict[str, Any]) -> str | None:
    expected = {key: value for key, value in test["dra_env"].items() if key != "agrees"}
    phase = expected.pop("compile_error_type", None)
    try:
        program = _compile(test)
    except CompileError as error:
        if phase is None:
            return f"compile error of ours: {error}"
        return None if error.kind == PHASES[phase] else f"compile error of kind {error.kind}, expected {phase}"
    if phase is not None:
        return f"compiles, expected {expected['compile_error']}"
    facts: dict[str, Any] = {"output_type": str(program.output_type)}
    if not test["check_only"]:
        variables = {name: _value(bound["value"]) for name, bound in test["bindings"].items()}
        outcome = program.run_exact(variables)
        facts["actual_cost"] = outcome.cost
        if outcome.error is not None:
            facts["eval_error"] = str(outcome.error)
        else:
            facts["result"] = encode(outcome.value)
    if "result" in expected:
        expected["result"] = normalize(expected["result"])
    if _cost_depends_on_map_order(test):
        expected.pop("actual_cost", None)
    return "; ".join(unequal(expected, facts)) or None


def _compile(test: dict[str, Any]) -> Program:
    environment = _environment(test)
    if not test["disable_check"]:
        return compile_expression(test["expr"], environment)
    checked = resolve_names(parse(test["expr"]), environment)
    return Program(checked, make_plan(checked, environment.functions), environment, "generic")


def _cost_depends_on_map_order(test: dict[str, Any]) -> bool:
    """Go goes through maps in random order, so what a macro costs that may stop early is a matter of luck there."""
    if test["disable_check"]:
        return False
    checked = check(parse(test["expr"]), _environment(test))
    stack = [checked.expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Comprehension):
            stops_early = not isinstance(node.loop_condition, Literal)
            if stops_early and checked.types[node.iter_range.id].kind == "map":
                return True
        stack.extend(children_of(node))
    return False


def _environment(test: dict[str, Any]) -> Environment:
    variables = {entry["name"]: _type(entry["ident"]["type"]) for entry in test["type_env"] if "ident" in entry}
    functions = [
        Function(entry["name"], tuple(_overload(overload) for overload in entry["function"]["overloads"]))
        for entry in test["type_env"]
        if "function" in entry
    ]
    return generic_environment(variables, functions, test["container"])


def _overload(described: dict[str, Any]) -> Overload:
    parameters = tuple(_type(parameter) for parameter in described["params"])
    names = dict.fromkeys(name for parameter in parameters for name in _open_names(parameter))
    return Overload(
        described["overloadId"],
        described.get("isInstanceFunction", False),
        parameters,
        _type(described["resultType"]),
        tuple(types.type_parameter(name) for name in names),
    )


def _open_names(type_: Type) -> Iterator[str]:
    if type_.kind == "parameter":
        yield type_.name
    for parameter in type_.parameters:
        yield from _open_names(parameter)


def _type(described: dict[str, Any]) -> Type:
    ((kind, value),) = described.items()
    match kind:
        case "primitive":
            return PRIMITIVES[value]
        case "null":
            return types.NULL
        case "dyn":
            return types.DYN
        case "listType":
            return types.list_of(_type(value["elemType"]))
        case "mapType":
            return types.map_of(_type(value["keyType"]), _type(value["valueType"]))
        case "typeParam":
            return types.type_parameter(value)
        case "abstractType":
            return types.opaque(value["name"], *map(_type, value.get("parameterTypes", ())))
        case _:
            raise ValueError(f"no type in scope: {described}")


def _value(described: dict[str, Any]) -> Value:
    ((kind, value),) = described.items()
    match kind:
        case "nullValue":
            return None
        case "boolValue" | "stringValue":
            return value
        case "int64Value":
            return int(value)
        case "uint64Value":
            return Uint(value)
        case "doubleValue":
            return float(value)
        case "bytesValue":
            return base64.b64decode(value)
        case "typeValue":
            return TypeValue(value)
        case "listValue":
            return [_value(item) for item in value.get("values", ())]
        case "mapValue":
            return {encode_key(_value(entry["key"])): _value(entry["value"]) for entry in value.get("entries", ())}
        case _:
            raise ValueError(f"no value in scope: {described}")
