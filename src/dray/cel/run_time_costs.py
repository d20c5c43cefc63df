"""What a call costs when it is evaluated: Kubernetes' rules, by function name or overload id.

A rule gets the values of all arguments (receiver first), errors included, and the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from dray.api.quantities import Quantity
from dray.api.versions import Semver
from dray.cel.errors import EvaluationError
from dray.cel.meter import Meter
from dray.cel.values import CIDR, IP, NONE, URL, Format, Optional, QuantitySum, Value, as_map

Rule: TypeAlias = Callable[[tuple[Value, ...], Value, Meter], int]

_STRING_FACTOR: Final = 0.1
_REGEX_FACTOR: Final = 0.25
_LIST_BASE: Final = 11
_KUBERNETES_KINDS: Final = frozenset((Quantity, QuantitySum, Semver, IP, CIDR, URL, Format))


class Panic(EvaluationError):
    """Kubernetes' cost tracker crashes here, which ends the evaluation: nothing absorbs it."""


def size(value: Value) -> int:
    """How large Kubernetes takes a value to be."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    if isinstance(value, IP):
        return value.address.max_prefixlen // 8
    if isinstance(value, CIDR):
        return -(-value.prefix // 8)
    entries = as_map(value)
    return 1 if entries is None else len(entries)


def _size_inside(value: Value) -> int:
    """Like `size`, but an optional counts as what it holds: the rules of cel-go itself look inside."""
    while isinstance(value, Optional) and value is not NONE:
        value = value.value
    return size(value)


def _traversed(length: int) -> int:
    return math.ceil(length * _STRING_FACTOR)


def traversal(value: Value, meter: Meter) -> int:
    """One per scalar, a tenth per byte of text, rounded down; containers are the sum of what they hold."""
    if isinstance(value, str):
        meter.spend_text(len(value))
        return int(len(value.encode()) * _STRING_FACTOR)
    if isinstance(value, bytes):
        return int(len(value) * _STRING_FACTOR)
    if isinstance(value, list):
        meter.spend(len(value))
        return sum(traversal(item, meter) for item in value)
    entries = as_map(value)
    if entries is None:
        return 1
    meter.spend(len(entries))
    return sum(
        (traversal(key, meter) if isinstance(key, str) else 1) + traversal(item, meter) for key, item in entries.items()
    )


# Rules


def _first(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    return _traversed(size(arguments[0]))


def _first_twice(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    return math.ceil(size(arguments[0]) * 2 * _STRING_FACTOR)


def _result_twice(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    return math.ceil(size(result) * 2 * _STRING_FACTOR)


def _walk_receiver(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    return traversal(arguments[0], meter)


def _first_inside(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    return _traversed(_size_inside(arguments[0]))


def _second_inside(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    return _traversed(_size_inside(arguments[1]))


def _list_length(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    return _size_inside(arguments[1])


def smaller_size(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    return _traversed(min(_size_inside(arguments[0]), _size_inside(arguments[1])))


def equality(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    """`==`; `!=` has no exception for Kubernetes' types."""
    if type(arguments[0]) in _KUBERNETES_KINDS:
        return 1
    return smaller_size(arguments, result, meter)


def _both_sizes(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    return _traversed(_size_inside(arguments[0]) + _size_inside(arguments[1]))


def _contains(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    return _traversed(_size_inside(arguments[0])) * _traversed(_size_inside(arguments[1]))


def _regex(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    text = math.ceil((1.0 + _size_inside(arguments[0])) * _STRING_FACTOR)
    return text * math.ceil(_size_inside(arguments[1]) * _REGEX_FACTOR)


def _validate(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    format = arguments[0]
    if not isinstance(format, Format):
        return 1
    return math.ceil((1.0 + size(arguments[1])) * _STRING_FACTOR) * math.ceil(format.regex_size * _REGEX_FACTOR)


def _contains_ip(overload_id: str) -> Rule:
    def rule(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
        cost = math.ceil(size(arguments[0]) * 2 * _STRING_FACTOR)
        if overload_id == "cidr_contains_ip_string":
            cost += _traversed(size(arguments[1]))
        return cost

    return rule


def _contains_cidr(overload_id: str) -> Rule:
    def rule(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
        block = size(arguments[0])
        cost = math.ceil(block * 2 * _STRING_FACTOR) + _traversed(block) + 1
        if overload_id == "cidr_contains_cidr_string":
            cost += _traversed(size(arguments[1]))
        return cost

    return rule


def _product(factor: int) -> Rule:
    def rule(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
        return 1 + factor * _size_inside(arguments[0]) * _size_inside(arguments[1])

    return rule


def _result_length(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    return _LIST_BASE + _size_inside(result)


def _all_pairs(index: int) -> Rule:
    """Every element against every other one, in the list at `index`."""

    def rule(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
        items = arguments[index]
        if not isinstance(items, list):
            raise Panic("internal error: the cost of this call is not defined for what it was called on")
        factor = 2.1 if items and type(items[0]) in (str, bytes) else 2.0
        return _LIST_BASE + math.floor(factor * float(len(items) * len(items)))

    return rule


def _flatten(arguments: tuple[Value, ...], result: Value, meter: Meter) -> int:
    depth = 1
    if len(arguments) > 1:
        if type(arguments[1]) is not int:
            raise Panic("internal error: the depth of flatten() has no value")
        given = arguments[1]
        depth = given if given >= 0 else 1
    return _LIST_BASE + depth * _size_inside(arguments[0])


_SORTABLE: Final = (
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "string",
    "bytes",
)
_ORDERINGS: Final = ("less", "less_equals", "greater", "greater_equals")

_EXTENSIONS: Final[dict[str, Rule]] = {
    "list_sets_contains_list": _product(1),
    "list_sets_intersects_list": _product(1),
    "list_sets_equivalent_list": _product(2),
    "list_distinct": _all_pairs(0),
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _result_length,
    "list_reverse": _result_length,
    "list_slice": _result_length,
    **{f"list_{name}_sort": _all_pairs(0) for name in _SORTABLE},
    **{f"list_{name}_sortByAssociatedKeys": _all_pairs(1) for name in _SORTABLE},
}
_FUNCTIONS: Final[dict[str, Rule]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _walk_receiver),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _first),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _first),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_twice),
    "join": _result_twice,
    "find": _regex,
    "findAll": _regex,
    "validate": _validate,
}
_STANDARD: Final[dict[str, Rule]] = {
    "starts_with_string": _second_inside,
    "ends_with_string": _second_inside,
    "string_to_bytes": _first_inside,
    "bytes_to_string": _first_inside,
    "strings_quote": _first_inside,
    "string_format": _first_inside,
    "in_list": _list_length,
    **{f"{prefix}_{kind}": smaller_size for prefix in _ORDERINGS for kind in ("string", "bytes")},
    "add_string": _both_sizes,
    "add_bytes": _both_sizes,
    "matches": _regex,
    "matches_string": _regex,
    "contains_string": _contains,
}


def cost_rule(function: str, overload_id: str) -> Rule | None:
    """The rule of a call, None if it costs 1. `overload_id` is empty if the checker left several overloads."""
    if (rule := _EXTENSIONS.get(overload_id)) is not None:
        return rule
    match function:
        case "ip":
            return None if overload_id == "cidr_ip" else _first
        case "containsIP":
            return _contains_ip(overload_id)
        case "containsCIDR":
            return _contains_cidr(overload_id)
    return _FUNCTIONS.get(function) or _STANDARD.get(overload_id)
