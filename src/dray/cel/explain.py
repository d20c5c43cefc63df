"""One evaluation, told: each sub-expression with the value that it had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from dray.api.quantities import Quantity
from dray.api.versions import Semver
from dray.cel.ast import Call, Checked, Comprehension, Expr, Ident, Literal, Select, Uint, children_of
from dray.cel.errors import EvaluationError
from dray.cel.evaluation import DEFAULT_COST_LIMIT, Outcome
from dray.cel.functions_conversions import to_string
from dray.cel.interpreter import Interpreter
from dray.cel.plan import Plan
from dray.cel.unparse import unparse, write_literal
from dray.cel.values import (
    CIDR,
    IP,
    NONE,
    URL,
    Duration,
    Format,
    Optional,
    QuantitySum,
    Timestamp,
    TypeValue,
    Value,
    as_map,
    iter_keys,
)

MAX_TEXT: Final = 120


class NotEvaluated:
    """Stands for the value of a sub-expression that wasn't needed."""

    def __repr__(self) -> str:
        return "not evaluated"


NOT_EVALUATED: Final = NotEvaluated()


class Explained(NamedTuple):
    """A sub-expression and its value, an EvaluationError, or NOT_EVALUATED."""

    text: str
    value: Value
    depth: int = 0
    """How many of the sub-expressions in this list it is a part of."""
    operator: str = ""
    """`&&` or `||`, if that is what joins its parts."""
    input: str = ""
    """If it is something that is looked up, such as `device.attributes["x"].model`: its name."""

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.text} = {format_value(self.value)}"


def explain(
    checked: Checked, plan: Plan, inputs: Mapping[str, Value], cost_limit: int = DEFAULT_COST_LIMIT
) -> list[Explained]:
    """The whole expression first, then its parts. Bodies of comprehensions have many values, and are left out."""
    seen: dict[int, Value] = {}
    outcome = Interpreter(plan, seen.__setitem__).run(inputs, cost_limit)
    teller = _Teller(checked, seen)
    told = list(teller.tell(checked.parsed.expr, 0))
    return told or [Explained(checked.parsed.text.strip(), _result(outcome))]


def _result(outcome: Outcome) -> Value:
    return outcome.value if outcome.error is None else outcome.error


def find_reason(told: list[Explained]) -> str:
    """What made an expression false or an error: the part of it that decided, and the values in that part."""
    start = 0
    while told[start].operator == "&&" and told[start].value is not True:
        parts = _direct_parts(told, start)
        failed = [index for index in parts if told[index].value is False]
        failed = failed or [index for index in parts if isinstance(told[index].value, EvaluationError)]
        if not failed:
            break
        start = failed[0]
    decided = told[start]
    if isinstance(decided.value, EvaluationError):
        return f"{decided.value} in {decided.text}"
    inputs = {part.input: format_value(part.value) for part in _all_parts(told, start) if part.input}
    shown = ", ".join(f"{name} is {value}" for name, value in inputs.items())
    return f"{decided.text} ({shown})" if shown else decided.text


def _all_parts(told: list[Explained], start: int) -> Iterator[Explained]:
    """A sub-expression and everything in it."""
    yield told[start]
    for part in told[start + 1 :]:
        if part.depth <= told[start].depth:
            return
        yield part


def _direct_parts(told: list[Explained], start: int) -> list[int]:
    parts = []
    for index in range(start + 1, len(told)):
        if told[index].depth <= told[start].depth:
            break
        if told[index].depth == told[start].depth + 1:
            parts.append(index)
    return parts


class _Teller:
    def __init__(self, checked: Checked, seen: Mapping[int, Value]) -> None:
        self._macro_calls = checked.parsed.macro_calls
        self._references = checked.references
        self._seen = seen

    def tell(self, node: Expr, depth: int) -> Iterator[Explained]:
        if isinstance(node, Literal | Ident) or self._is_name(node):
            return
        value = self._value(node)
        operator = node.function.strip("_") if isinstance(node, Call) and node.function in ("_&&_", "_||_") else ""
        yield Explained(unparse(node, self._macro_calls), value, depth, operator, self._input(node))
        if value is NOT_EVALUATED:
            return
        for part in self._parts(node):
            # Parts of a constant were computed when the expression was compiled: there is nothing to tell of them.
            if _may_skip_parts(node) or self._value(part) is not NOT_EVALUATED:
                yield from self.tell(part, depth + 1)

    def _input(self, node: Expr) -> str:
        match node:
            case Select(field=field, test_only=False):
                return field
            case Call(function="_[_]" | "_[?_]" | "_?._", args=(_, Literal(value=str(key)))):
                return key
        return ""

    def _is_name(self, node: Expr) -> bool:
        reference = self._references.get(node.id)
        return isinstance(node, Select) and reference is not None and bool(reference.name)

    def _value(self, node: Expr) -> Value:
        while node.id not in self._seen:
            # A selection from a ternary is made in its branches, so only the ternary was seen.
            if not isinstance(node, Select) and not (isinstance(node, Call) and node.function in _QUALIFIERS):
                return NOT_EVALUATED
            node = children_of(node)[0]
        return self._seen[node.id]

    def _parts(self, node: Expr) -> Iterator[Expr]:
        """What a reader takes for its parts: `a && b && c` has three, `a.b.c` none."""
        macro = self._macro_calls.get(node.id)
        if macro is not None and macro.function != "has":
            if macro.function == "bind":
                yield from macro.args[1:]
            elif macro.target is not None:
                yield macro.target
            return
        match node:
            case Call(function=("_&&_" | "_||_") as function):
                for part in node.args:
                    yield from self._operands(part, function)
            case Select() | Call(function="_[_]" | "_[?_]" | "_?._"):
                yield from self._computed_parts(node)
            case Comprehension():
                yield node.iter_range
            case _:
                yield from children_of(node)

    def _operands(self, node: Expr, function: str) -> Iterator[Expr]:
        if isinstance(node, Call) and node.function == function:
            for part in node.args:
                yield from self._operands(part, function)
        else:
            yield node

    def _computed_parts(self, node: Expr) -> Iterator[Expr]:
        """Of a chain of selections: what it starts with, unless that is a name, and computed indexes."""
        if isinstance(node, Select) and not self._is_name(node):
            yield from self._computed_parts(node.operand)
        elif isinstance(node, Call) and node.function in _QUALIFIERS:
            yield from self._computed_parts(node.args[0])
            yield node.args[1]
        elif isinstance(node, Call) and node.function == "_?_:_" and node.id not in self._macro_calls:
            yield node.args[0]
        else:
            yield node


def _may_skip_parts(node: Expr) -> bool:
    return isinstance(node, Call) and node.function in ("_&&_", "_||_", "_?_:_", "or", "orValue")


_QUALIFIERS: Final = ("_[_]", "_[?_]", "_?._")


def format_value(value: Value) -> str:
    """A value for people, close to how CEL would write it."""
    text = _write(value)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _write(value: Value) -> str:
    match value:
        case NotEvaluated():
            return "not evaluated"
        case EvaluationError():
            return f"error: {value}"
        case None | bool() | Uint() | int() | float() | str() | bytes():
            return write_literal(value)
        case Optional():
            return "optional.none()" if value is NONE else f"optional.of({_write(value.value)})"
        case Quantity() | Semver():
            return f'{type(value).__name__.lower()}("{value}")'
        case QuantitySum(quantity=quantity):
            return _write(quantity)
        case IP() | CIDR() | URL():
            return f'{type(value).__name__.lower()}("{value}")'
        case Duration() | Timestamp():
            return f'{type(value).__name__.lower()}("{to_string(value)}")'
        case TypeValue(name):
            return name
        case Format(name=name):
            return f"format {name}"
        case list():
            return f"[{', '.join(map(_write, value[:MAX_TEXT]))}]"
    entries = as_map(value)
    if entries is None:
        return str(value)
    pairs = zip(iter_keys(entries), entries.values(), strict=True)
    return f"{{{', '.join(f'{_write(key)}: {_write(item)}' for key, item in pairs)}}}"
