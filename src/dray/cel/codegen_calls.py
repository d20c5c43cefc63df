"""Calls as Python code. What has no form of its own here calls the implementation of the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from dray.api.quantities import Quantity
from dray.api.versions import Semver
from dray.cel.codegen_context import ATTRIBUTES, CAPACITY, QUANTITY, Code, Context
from dray.cel.dispatch import PLAIN
from dray.cel.errors import EvaluationError
from dray.cel.meter import FREE
from dray.cel.plan import Call, Constant
from dray.cel.regexes import compile_regex
from dray.cel.values import INT_MAX, INT_MIN

_ARITHMETIC: Final = {
    "_+_": ("+", "add"),
    "_-_": ("-", "subtract"),
    "_*_": ("*", "multiply"),
    "_/_": ("", "divide"),
    "_%_": ("", "modulo"),
}
_ORDER: Final = {
    "_<_": ("<", "less"),
    "_<=_": ("<=", "less_equal"),
    "_>_": (">", "greater"),
    "_>=_": (">=", "greater_equal"),
}
_ORDERED_TYPES: Final = ("int", "uint", "string", "bytes", "bool")
_SIZED: Final = ("string", "bytes", "list", "map")
_TEXT_METHODS: Final = {
    "contains_string": "{1} in {0}",
    "starts_with_string": "{0}.startswith({1})",
    "ends_with_string": "{0}.endswith({1})",
}
_COMPARISONS: Final = {"isGreaterThan": ">", "isLessThan": "<"}
_HUGE: Final = 10**2000
_GENERIC: Final = frozenset(("value", "min", "max", "sum", "first", "last", "dyn"))
"""Functions that give what they got, so that the checker's idea of the result may be wrong."""
_SIMPLE: Final = frozenset(
    (
        *("bool", "int", "uint", "double", "string", "bytes", "net.IP", "net.CIDR", "optional_type"),
        *("google.protobuf.Timestamp", "google.protobuf.Duration", "kubernetes.Semver", "kubernetes.Quantity"),
    )
)
_RESULTS: Final = {name: name for name in (*_SIMPLE, "list", "map")}
"""Result types that an implementation is certain to return."""


def write_call(context: Context, node: Call) -> Code:
    if (folded := _fold_constant(context, node)) is not None:
        return folded
    writer = _WRITERS.get(node.function)
    if writer is None and node.overload_id in _TEXT_METHODS:
        writer = _write_text_method
    code = None if writer is None else writer(context, node)
    return _write_plain_call(context, node) if code is None else code


def _fold_constant(context: Context, node: Call) -> Code | None:
    """`quantity("40Gi")`: functions are pure, so what they make of constants is a constant."""
    values = [argument.value for argument in node.arguments if isinstance(argument, Constant)]
    if not values or len(values) != len(node.arguments) or node.function in ("lists.range", "format", "replace"):
        return None
    try:
        result = node.apply(FREE, *values)
    except EvaluationError:
        return None
    return context.constant(result)


def _arguments(context: Context, node: Call) -> list[Code]:
    return [context.expression(argument) for argument in node.arguments]


def _write_plain_call(context: Context, node: Call) -> Code:
    arguments = _arguments(context, node)
    listed = ", ".join(argument.text for argument in arguments)
    kind = "" if node.function in _GENERIC else _RESULTS.get(_static_name(context, node), "")
    role = QUANTITY if node.overload_id == "string_to_quantity" else ""
    plain = PLAIN.get(node.overload_id)
    if plain is not None and all(argument.kind in _SIMPLE for argument in arguments):
        # The types are certain, so the guard that looks at them again can be left out.
        return Code(f"{context.name_of(plain)}({listed})", kind, role)
    separator = ", " if listed else ""
    return Code(f"{context.name_of(node.apply)}(FREE{separator}{listed})", kind, role)


def _static_name(context: Context, node: Call) -> str:
    type_ = context.types.get(node.id)
    return "" if type_ is None else type_.name


def _write_arithmetic(context: Context, node: Call) -> Code | None:
    left, right = _arguments(context, node)
    operator, helper = _ARITHMETIC[node.function]
    if operator and left.kind == right.kind == "int":
        name = context.new_name("t")
        result = f"({name} := {left.text} {operator} {right.text})"
        return Code(f"({name} if {INT_MIN} <= {result} <= {INT_MAX} else overflow())", "int")
    if operator == "+" and left.kind == right.kind == "string":
        return Code(f"({left.text} + {right.text})", "string")
    return Code(f"{helper}(FREE, {left.text}, {right.text})")


def _write_order(context: Context, node: Call) -> Code | None:
    operator, helper = _ORDER[node.function]
    compared = _compared_quantities(context, node)
    if compared is not None:
        left, right = compared
        return Code(f"({left} {operator} {right})", "bool")
    first, second = _arguments(context, node)
    if first.kind == second.kind and first.kind in _ORDERED_TYPES:
        return Code(f"({first.text} {operator} {second.text})", "bool")
    if second.constant and type(second.value) in (int, str):
        kind = type(second.value).__name__
        fast, slow = f"@ {operator} {second.text}", f"{helper}(@, {second.text})"
        return Code(context.branch(first, kind, fast, slow), "bool")
    return Code(f"{helper}({first.text}, {second.text})", "bool")


def _compared_quantities(context: Context, node: Call) -> tuple[str, str] | None:
    """`a.compareTo(b) >= 0` of quantities is `a >= b`."""
    call, zero = node.arguments
    if not isinstance(call, Call) or call.overload_id != "quantity_compare_to":
        return None
    if not isinstance(zero, Constant) or type(zero.value) is not int or zero.value != 0:
        return None
    return in_nanos(*_arguments(context, call))


def in_nanos(left: Code, right: Code) -> tuple[str, str] | None:
    """Two quantities as numbers that compare as they do, None if that isn't known."""
    if left.role != QUANTITY or right.role != QUANTITY:
        return None
    for code in (left, right):
        if code.constant and abs(cast("Quantity", code.value).nano) < _HUGE:
            # From there on `nano` is capped, so one side below makes the comparison exact.
            return _nanos_of(left), _nanos_of(right)
    return None


def _nanos_of(code: Code) -> str:
    return str(cast("Quantity", code.value).nano) if code.constant else f"{code.text}.nano"


def _write_comparison(context: Context, node: Call) -> Code | None:
    """`isGreaterThan` and `isLessThan`."""
    left, right = _arguments(context, node)
    operator = _COMPARISONS[node.function]
    numbers = in_nanos(left, right)
    if numbers is not None:
        return Code(f"({numbers[0]} {operator} {numbers[1]})", "bool")
    if right.constant and type(right.value) is Semver:
        key, value = context.name_of(right.value.key), right.text
        slow = f"{context.name_of(node.apply)}(FREE, @, {value})"
        context.namespace["Semver"] = Semver
        return Code(context.branch(left, "Semver", f"@.key {operator} {key}", slow), "bool")
    return Code(f"{context.name_of(node.apply)}(FREE, {left.text}, {right.text})", "bool")


def _write_not(context: Context, node: Call) -> Code | None:
    return Code(f"(not {context.condition(node.arguments[0])})", "bool")


def _write_negate(context: Context, node: Call) -> Code | None:
    return Code(f"negate(FREE, {context.expression(node.arguments[0]).text})")


def _write_size(context: Context, node: Call) -> Code | None:
    code = context.expression(node.arguments[0])
    return Code(f"len({code.text})" if code.kind in _SIZED else f"size_of(FREE, {code.text})", "int")


def _write_in(context: Context, node: Call) -> Code | None:
    wanted, container = _arguments(context, node)
    if container.role in (ATTRIBUTES, CAPACITY) and wanted.kind == "string":
        return Code(f"({wanted.text} in {container.plain or container.text})", "bool")
    if container.kind == "map" and container.role and wanted.kind == "string":
        return Code(f"({wanted.text} in {container.text})", "bool")
    return Code(f"is_in(FREE, {wanted.text}, {container.text})", "bool")


def _write_text_method(context: Context, node: Call) -> Code | None:
    text, part = _arguments(context, node)
    template = _TEXT_METHODS[node.overload_id]
    if part.kind != "string":
        return Code(f"{context.name_of(node.apply)}(FREE, {text.text}, {part.text})", "bool")
    if text.kind == "string":
        return Code(f"({template.format(text.text, part.text)})", "bool")
    name = context.new_name("t")
    slow = f"{context.name_of(node.apply)}(FREE, {name}, {part.text})"
    condition = f"({name} := {text.text}).__class__ is str"
    return Code(f"({template.format(name, part.text)} if {condition} else {slow})", "bool")


def _write_matches(context: Context, node: Call) -> Code | None:
    pattern = node.arguments[1]
    if not isinstance(pattern, Constant) or type(pattern.value) is not str:
        return None
    text = context.expression(node.arguments[0])
    find = context.name_of(compile_regex(pattern.value).is_in)
    slow = f"{context.name_of(node.apply)}(FREE, @, {pattern.value!r})"
    if text.kind == "string":
        return Code(f"{find}({text.text})", "bool")
    return Code(context.branch(text, "str", f"{find}(@)", slow), "bool")


def _write_same(context: Context, node: Call) -> Code | None:
    return context.expression(node.arguments[0])


_WRITERS: Final[dict[str, Callable[[Context, Call], Code | None]]] = {
    **dict.fromkeys(_ARITHMETIC, _write_arithmetic),
    **dict.fromkeys(_ORDER, _write_order),
    **dict.fromkeys(_COMPARISONS, _write_comparison),
    "!_": _write_not,
    "-_": _write_negate,
    "size": _write_size,
    "@in": _write_in,
    "matches": _write_matches,
    "dyn": _write_same,
}
