"""What one overload of a call costs: rules by overload for cel-go's extensions, then Kubernetes' rules by function
(`estimate_kubernetes`), then cel-go's own by overload, else 1 (rule E4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dray.cel.ast import Literal
from dray.cel.declarations_extensions import COMPARABLE
from dray.cel.environment import Environment
from dray.cel.estimate_kubernetes import KUBERNETES_RULES
from dray.cel.estimate_rules import REGEX_LENGTH, TRAVERSAL, CallCost, Operand, Rule, RuleFunction
from dray.cel.ranges import MOST, ONE, Range, plus, scaled, times, union, wrap

_ALLOCATION: Final = (11, 11)
"""Of a list that a function makes: 10 for the list, 1 for the call."""


def estimate_overload(
    function: str, overload: str, target: Operand | None, args: Sequence[Operand], environment: Environment
) -> CallCost:
    """Cost of a call with its arguments, but without its receiver."""
    if overload == "conditional":
        return _conditional(*args)
    if overload in ("logical_and", "logical_or"):
        return CallCost((args[0].cost[0], plus(args[0].cost, args[1].cost)[1]))
    rule = _EXTENSIONS.get(overload) or KUBERNETES_RULES.get(function) or _STANDARD.get(overload)
    found = rule(overload, target, args, environment) if rule else None
    if found is None and (standard := _STANDARD.get(overload)) is not None:
        found = standard(overload, target, args, environment)
    cost = ONE if found is None else found.cost
    for arg in args:
        cost = plus(cost, arg.cost)
    entries_of = (args[0], args[1]) if overload in _CONCATENATIONS else None
    return CallCost(cost, found.size if found else None, entries_of)


def _conditional(condition: Operand, then: Operand, otherwise: Operand) -> CallCost:
    cost = plus(condition.cost, union(then.cost, otherwise.cost))
    return CallCost(cost, union(then.size_or_unknown, otherwise.size_or_unknown), (then, otherwise))


# cel-go's own functions


def _prefix(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    return Rule(scaled(args[0].size_or_unknown, TRAVERSAL))


def _contains(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    if target is None:
        return None
    text, part = target.size_or_unknown, args[0].size_or_unknown
    return Rule(times(scaled(text, TRAVERSAL), scaled(part, TRAVERSAL)))


def _matches(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    text, pattern = (target, args[0]) if target is not None else args
    traversed = scaled(plus(text.size_or_unknown, ONE), TRAVERSAL)
    return Rule(times(traversed, scaled(pattern.size_or_unknown, REGEX_LENGTH)))


def _in_list(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    return Rule(scaled(args[1].size_or_unknown, 1))


def _format(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    return None if target is None else Rule(scaled(target.size_or_unknown, TRAVERSAL))


def _to_bytes(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    size = args[0].size_or_unknown
    return Rule(scaled(size, TRAVERSAL), (size[0], wrap(size[1] * 4)))


def _to_string(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    size = args[0].size_or_unknown
    return Rule(scaled(size, TRAVERSAL), (size[0] // 4, size[1]))


def _quote(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    size = args[0].size_or_unknown
    return Rule(scaled(size, TRAVERSAL), (wrap(size[0] + 2), wrap(size[1] * 2 + 2)))


def _concatenate(overload: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    size = plus(args[0].size_or_unknown, args[1].size_or_unknown)
    return Rule(ONE if overload == "add_list" else scaled(size, TRAVERSAL), size)


def _compare(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    most = min(args[0].size_or_unknown[1], args[1].size_or_unknown[1])
    return Rule(scaled((min(most, 1), most), TRAVERSAL))


_CONCATENATIONS: Final = frozenset(("add_string", "add_bytes", "add_list"))

_STANDARD: Final[dict[str, RuleFunction]] = {
    "starts_with_string": _prefix,
    "ends_with_string": _prefix,
    "contains_string": _contains,
    "matches": _matches,
    "matches_string": _matches,
    "in_list": _in_list,
    "string_format": _format,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_string,
    "strings_quote": _quote,
    **dict.fromkeys(_CONCATENATIONS, _concatenate),
    **{
        f"{order}_{type_}": _compare
        for order in ("less", "less_equals", "greater", "greater_equals")
        for type_ in ("string", "bytes")
    },
    "equals": _compare,
    "not_equals": _compare,
}


# The extensions sets and lists


def _set(overload: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    product = times(args[0].size_or_unknown, args[1].size_or_unknown)
    return Rule(plus(scaled(product, 2 if overload == "list_sets_equivalent_list" else 1), ONE))


def _new_list(factor: float, size: Range) -> Rule:
    return Rule(plus(scaled(size, factor), _ALLOCATION), size)


def _slice(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    if target is None:
        return None
    length = wrap(_natural(args[1], target.size_or_unknown[1]) - _natural(args[0], 0))
    return _new_list(1, (length, length))


def _range(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    length = _natural(args[0], MOST)
    return _new_list(1, (length, length))


def _reverse(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    return None if target is None else _new_list(1, target.size_or_unknown)


def _flatten(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    depth = _natural(args[0], MOST) if args else 1
    return None if target is None else _new_list(float(depth), target.size_or_unknown)


def _distinct(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    return None if target is None else _self_compare(target, 2.0)


def _sort(overload: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    keys = args[0] if args else target
    if keys is None:
        return None
    return _self_compare(keys, 2.0 + TRAVERSAL if overload.startswith(("list_string_", "list_bytes_")) else 2.0)


def _self_compare(items: Operand, factor: float) -> Rule:
    return _new_list(factor, times(items.size_or_unknown, items.size_or_unknown))


def _natural(operand: Operand, default: int) -> int:
    """The value of an int literal, 0 if it is negative, else the default."""
    node = operand.node
    if isinstance(node, Literal) and type(node.value) is int:
        return max(node.value, 0)
    return default


_EXTENSIONS: Final[dict[str, RuleFunction]] = {
    "list_sets_contains_list": _set,
    "list_sets_equivalent_list": _set,
    "list_sets_intersects_list": _set,
    "list_slice": _slice,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": _distinct,
    **{f"list_{name}_sort": _sort for name in COMPARABLE},
    **{f"list_{name}_sortByAssociatedKeys": _sort for name in COMPARABLE},
}
