"""What a call costs when it is evaluated: Kubernetes' rules, by function name or overload id.

A rule gets the values of all arguments (receiver first), errors included, and the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias, cast

from dray.api.quantities import Quantity
from dray.api.versions import Semver
from dray.cel.ast import Uint
from dray.cel.errors import EvaluationError
from dray.cel.meter import Meter
from dray.cel.values import CIDR, IP, NONE, URL, Format, Optional, QuantitySum, Value, as_map

Arguments: TypeAlias = tuple[Value, ...]

_STRING_FACTOR: Final = 0.1
_REGEX_FACTOR: Final = 0.25
_LIST_BASE: Final = 11
_LARGEST_FORMAT: Final = 1103
UNBOUNDED: Final = 10**15
"""Stands for a size that nothing is known of: whatever is computed from it is far beyond any limit."""
SCALARS: Final = frozenset((int, bool, float, Uint, type(None), EvaluationError))
"""Types whose values are of size 1; not all, but most of those that occur."""
_KUBERNETES_KINDS: Final = frozenset((Quantity, QuantitySum, Semver, IP, CIDR, URL, Format))


class Sizes(NamedTuple):
    """Upper bounds: of `size` and of `traversal` of the arguments, and of the size of the result."""

    lengths: tuple[int, ...]
    weights: tuple[int, ...]
    result: int


class Panic(EvaluationError):
    """Kubernetes' cost tracker crashes here, which ends the evaluation: nothing absorbs it."""


def size(value: Value) -> int:
    """How large Kubernetes takes a value to be."""
    kind = type(value)
    if kind in SCALARS:
        return 1
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    if kind is IP:
        return cast("IP", value).address.max_prefixlen // 8
    if kind is CIDR:
        return -(-cast("CIDR", value).prefix // 8)
    entries = as_map(value)
    return 1 if entries is None else len(entries)


def _size_inside(value: Value) -> int:
    """Like `size`, but an optional counts as what it holds: the rules of cel-go itself look inside."""
    while type(value) is Optional and value is not NONE:
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


class Rule(NamedTuple):
    """`actual` is the price of a call; `bound` is at least that, from upper bounds of the sizes."""

    actual: Callable[[Arguments, Value, Meter], int]
    bound: Callable[[Sizes], int]
    by_result: bool = False
    """Whether the result matters; if not, a call can be paid for before it is made."""


def _by_size(price: Callable[..., int], *indexes: int, inside: bool = True) -> Rule:
    """A price that depends on the sizes of some arguments, and grows with them."""
    measure = _size_inside if inside else size
    if len(indexes) == 1:
        only = indexes[0]
        return Rule(
            lambda arguments, result, meter: price(measure(arguments[only])), lambda sizes: price(sizes.lengths[only])
        )
    first, second = indexes
    return Rule(
        lambda arguments, result, meter: price(measure(arguments[first]), measure(arguments[second])),
        lambda sizes: price(sizes.lengths[first], sizes.lengths[second]),
    )


def _by_result(price: Callable[[int], int]) -> Rule:
    return Rule(
        lambda arguments, result, meter: price(_size_inside(result)), lambda sizes: price(sizes.result), by_result=True
    )


def _twice(length: int) -> int:
    return math.ceil(length * 2 * _STRING_FACTOR)


def _regex(text: int, pattern: int) -> int:
    return math.ceil((1.0 + text) * _STRING_FACTOR) * math.ceil(pattern * _REGEX_FACTOR)


def _block(prefix: int) -> int:
    return _twice(prefix) + _traversed(prefix) + 1


SMALLER_SIZE: Final = _by_size(lambda left, right: _traversed(min(left, right)), 0, 1)
"""`!=` and the order of strings."""


def _equality(arguments: Arguments, result: Value, meter: Meter) -> int:
    if type(arguments[0]) in _KUBERNETES_KINDS:
        return 1
    return SMALLER_SIZE.actual(arguments, result, meter)


EQUALITY: Final = Rule(_equality, lambda sizes: max(1, SMALLER_SIZE.bound(sizes)))
"""`==`; unlike `!=` it has an exception for Kubernetes' types."""

_WALK_RECEIVER: Final = Rule(
    lambda arguments, result, meter: traversal(arguments[0], meter), lambda sizes: sizes.weights[0]
)
_VALIDATE: Final = Rule(
    lambda arguments, result, meter: (
        _regex(size(arguments[1]), arguments[0].regex_size) if isinstance(arguments[0], Format) else 1
    ),
    lambda sizes: _regex(sizes.lengths[1], _LARGEST_FORMAT),
)


def _product(factor: int) -> Rule:
    return _by_size(lambda left, right: 1 + factor * left * right, 0, 1)


def _all_pairs(index: int) -> Rule:
    """Every element against every other one, in the list at `index`."""

    def actual(arguments: Arguments, result: Value, meter: Meter) -> int:
        items = arguments[index]
        if not isinstance(items, list):
            raise Panic("internal error: the cost of this call is not defined for what it was called on")
        factor = 2.1 if items and type(items[0]) in (str, bytes) else 2.0
        return _LIST_BASE + math.floor(factor * float(len(items) * len(items)))

    return Rule(actual, lambda sizes: _LIST_BASE + math.floor(2.1 * sizes.lengths[index] ** 2))


def _flatten_cost(arguments: Arguments, result: Value, meter: Meter) -> int:
    depth = 1
    if len(arguments) > 1:
        if type(arguments[1]) is not int:
            raise Panic("internal error: the depth of flatten() has no value")
        depth = arguments[1] if arguments[1] >= 0 else 1
    return _LIST_BASE + depth * _size_inside(arguments[0])


_FLATTEN: Final = Rule(_flatten_cost, lambda sizes: _LIST_BASE + sizes.lengths[0])
_FLATTEN_DEEP: Final = Rule(_flatten_cost, lambda sizes: UNBOUNDED)
_FIRST: Final = _by_size(_traversed, 0, inside=False)
_FIRST_INSIDE: Final = _by_size(_traversed, 0)
_FIRST_TWICE: Final = _by_size(_twice, 0, inside=False)
_SECOND_INSIDE: Final = _by_size(_traversed, 1)
_REGEX: Final = _by_size(_regex, 0, 1)
_RESULT_LENGTH: Final = _by_result(lambda length: _LIST_BASE + length)
_CONTAINS_IP: Final = _by_size(_twice, 0, inside=False)
_CONTAINS_IP_TEXT: Final = _by_size(lambda block, text: _twice(block) + _traversed(text), 0, 1, inside=False)
_CONTAINS_CIDR: Final = _by_size(_block, 0, inside=False)
_CONTAINS_CIDR_TEXT: Final = _by_size(lambda block, text: _block(block) + _traversed(text), 0, 1, inside=False)

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
    "list_flatten": _FLATTEN,
    "list_flatten_int": _FLATTEN_DEEP,
    "lists_range": _RESULT_LENGTH,
    "list_reverse": _RESULT_LENGTH,
    "list_slice": _RESULT_LENGTH,
    **{f"list_{name}_sort": _all_pairs(0) for name in _SORTABLE},
    **{f"list_{name}_sortByAssociatedKeys": _all_pairs(1) for name in _SORTABLE},
}
_FUNCTIONS: Final[dict[str, Rule]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _WALK_RECEIVER),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _FIRST),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _FIRST),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _FIRST_TWICE),
    "join": _by_result(_twice),
    "find": _REGEX,
    "findAll": _REGEX,
    "validate": _VALIDATE,
}
_STANDARD: Final[dict[str, Rule]] = {
    "starts_with_string": _SECOND_INSIDE,
    "ends_with_string": _SECOND_INSIDE,
    "string_to_bytes": _FIRST_INSIDE,
    "bytes_to_string": _FIRST_INSIDE,
    "strings_quote": _FIRST_INSIDE,
    "string_format": _FIRST_INSIDE,
    "in_list": _by_size(lambda length: length, 1),
    **{f"{prefix}_{kind}": SMALLER_SIZE for prefix in _ORDERINGS for kind in ("string", "bytes")},
    "add_string": _by_size(lambda left, right: _traversed(left + right), 0, 1),
    "add_bytes": _by_size(lambda left, right: _traversed(left + right), 0, 1),
    "matches": _REGEX,
    "matches_string": _REGEX,
    "contains_string": _by_size(lambda text, part: _traversed(text) * _traversed(part), 0, 1),
}


def cost_rule(function: str, overload_id: str) -> Rule | None:
    """The rule of a call, None if it costs 1. `overload_id` is empty if the checker left several overloads."""
    if (rule := _EXTENSIONS.get(overload_id)) is not None:
        return rule
    match function:
        case "ip":
            return None if overload_id == "cidr_ip" else _FIRST
        case "containsIP":
            return _CONTAINS_IP_TEXT if overload_id == "cidr_contains_ip_string" else _CONTAINS_IP
        case "containsCIDR":
            return _CONTAINS_CIDR_TEXT if overload_id == "cidr_contains_cidr_string" else _CONTAINS_CIDR
    return _FUNCTIONS.get(function) or _STANDARD.get(overload_id)
