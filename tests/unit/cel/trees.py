"""Expressions as short text, so that tests can say what a tree looks like."""

from __future__ import annotations

from dray.cel.ast import Call, Comprehension, Expr, Ident, ListExpr, Literal, MapExpr, Select, StructExpr
from dray.cel.checker import check
from dray.cel.environment import Environment, device_environment
from dray.cel.errors import CompileError
from dray.cel.parser import parse


def show(node: Expr) -> str:
    match node:
        case Literal(_, value):
            return f"{type(value).__name__}:{value!r}" if isinstance(value, float) else repr(value)
        case Ident(_, name):
            return name
        case Select(_, operand, field, test_only):
            return f"has({show(operand)}.{field})" if test_only else f"{show(operand)}.{field}"
        case Call(_, function, args, None):
            return f"{function}({', '.join(map(show, args))})"
        case Call(_, function, args, target):
            assert target is not None
            return f"{show(target)}->{function}({', '.join(map(show, args))})"
        case ListExpr(_, elements, optional):
            return f"[{', '.join('?' * (i in optional) + show(element) for i, element in enumerate(elements))}]"
        case MapExpr(_, entries):
            return (
                "{"
                + ", ".join(f"{'?' * entry.optional}{show(entry.key)}: {show(entry.value)}" for entry in entries)
                + "}"
            )
        case StructExpr(_, type_name, fields):
            shown = ", ".join(f"{'?' * entry.optional}{entry.field}: {show(entry.value)}" for entry in fields)
            return f"{type_name}{{{shown}}}"
        case Comprehension():
            variables = ", ".join(name for name in (node.iter_var, node.iter_var2) if name)
            return (
                f"fold({variables} in {show(node.iter_range)}; {node.accu_var} = {show(node.accu_init)}; "
                f"while {show(node.loop_condition)}; {show(node.loop_step)}; {show(node.result)})"
            )


def parsed(text: str) -> str:
    return show(parse(text).expr)


def type_of(text: str, environment: Environment | None = None) -> str:
    return str(check(parse(text), environment or device_environment()).output_type)


def overloads(text: str, environment: Environment | None = None) -> tuple[str, ...]:
    """The overloads that are left for the outermost call."""
    checked = check(parse(text), environment or device_environment())
    return checked.references[checked.expr.id].overload_ids


def error_of(text: str, environment: Environment | None = None) -> CompileError:
    try:
        check(parse(text), environment or device_environment())
    except CompileError as error:
        return error
    raise AssertionError(f"no error in {text!r}")
