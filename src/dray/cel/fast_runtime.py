"""What generated code calls for everything that isn't one line of Python. Any error is raised: the caller then
evaluates again, exactly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dray.cel.arithmetic import OPERATORS, negate
from dray.cel.devices import DeviceValue
from dray.cel.dispatch import is_in, size_of
from dray.cel.equality import compare_values, equals
from dray.cel.errors import EvaluationError
from dray.cel.meter import FREE
from dray.cel.qualifiers import ABSENT, qualify, qualify_if_present
from dray.cel.values import (
    EMPTY_MAP,
    NONE,
    DefaultMap,
    Map,
    MutableMap,
    Optional,
    Value,
    as_map,
    decode_key,
    encode_key,
    iter_keys,
)


class Inexact(Exception):
    """This case is for the exact evaluator."""


def _same_device(left: DeviceValue, right: DeviceValue) -> bool | None:
    """Whether they are equal; None if CEL has to compare them entry by entry."""
    one, other = left.fingerprint, right.fingerprint
    if one is None or other is None:
        return None
    return left is right or (one == other and left.content == right.content)


def equal(left: Value, right: Value) -> bool:
    if type(left) is DeviceValue and type(right) is DeviceValue:
        known = _same_device(left, right)
        if known is not None:
            return known
    answer = equals(left, right, FREE)
    if type(answer) is bool:
        return answer
    raise Inexact


def unequal(left: Value, right: Value) -> bool:
    if type(left) is DeviceValue and type(right) is DeviceValue:
        known = _same_device(left, right)
        if known is not None:
            return not known
    return equals(left, right, FREE) is not True


def _order(left: Value, right: Value) -> int:
    answer = compare_values(left, right, FREE)
    if isinstance(answer, EvaluationError):
        raise answer
    return answer


def less(left: Value, right: Value) -> bool:
    return _order(left, right) < 0


def less_equal(left: Value, right: Value) -> bool:
    return _order(left, right) <= 0


def greater(left: Value, right: Value) -> bool:
    return _order(left, right) > 0


def greater_equal(left: Value, right: Value) -> bool:
    return _order(left, right) >= 0


def boolean(value: Value) -> bool:
    if value is True or value is False:
        return value
    raise Inexact


def overflow() -> int:
    raise Inexact


def has_key(target: Value, key: Value) -> bool:
    return qualify_if_present(target, key) is not ABSENT


def optional_chain(target: Value, keys: tuple[Value, ...]) -> Optional:
    """`target[?key][?key]...`; an optional target is looked into."""
    if type(target) is Optional:
        if target is NONE:
            return NONE
        target = target.value
    for key in keys:
        target = qualify_if_present(target, key)
        if target is ABSENT:
            return NONE
    return Optional(target)


def is_one_of(value: Value, keys: frozenset[object]) -> bool:
    return value == value and isinstance(value, str | int | float) and (type(value), value) in keys


def bindable(value: Value) -> Value:
    """The value of `cel.bind`. An empty list would be mutable there."""
    if isinstance(value, list) and not value:
        raise Inexact
    return value


def elements(value: Value) -> Iterable[Value]:
    """What a comprehension with one variable iterates over."""
    if isinstance(value, list):
        return value
    entries = as_map(value)
    if entries is None:
        raise Inexact
    return iter_keys(entries)


def pairs(value: Value) -> Iterable[tuple[Value, Value]]:
    """What a comprehension with two variables iterates over."""
    if isinstance(value, list):
        return enumerate(value)
    entries = as_map(value)
    if entries is None:
        raise Inexact
    return ((decode_key(key), item) for key, item in entries.items())


def with_optional(items: Iterable[tuple[Value, bool]]) -> list[Value]:
    """A list literal of which some elements are optional."""
    result: list[Value] = []
    for item, optional in items:
        if not optional:
            result.append(item)
        elif not isinstance(item, Optional):
            raise Inexact
        elif item is not NONE:
            result.append(item.value)
    return result


def new_map(entries: Iterable[tuple[Value, Value, bool]]) -> Map:
    """A map literal."""
    result: Map = {}
    for key, value, optional in entries:
        encoded = encode_key(key)
        if not optional:
            result[encoded] = value
        elif not isinstance(value, Optional):
            raise Inexact
        elif value is NONE:
            result.pop(encoded, None)
        else:
            result[encoded] = value.value
    return result


NAMESPACE: Final[dict[str, object]] = {
    "ABSENT": ABSENT,
    "DefaultMap": DefaultMap,
    "EMPTY_MAP": EMPTY_MAP,
    "FREE": FREE,
    "NONE": NONE,
    "MutableMap": MutableMap,
    "bindable": bindable,
    "boolean": boolean,
    "elements": elements,
    "equal": equal,
    "greater": greater,
    "greater_equal": greater_equal,
    "has_key": has_key,
    "is_in": is_in,
    "is_one_of": is_one_of,
    "less": less,
    "less_equal": less_equal,
    "negate": negate,
    "new_map": new_map,
    "optional_chain": optional_chain,
    "overflow": overflow,
    "pairs": pairs,
    "qualify": qualify,
    "size_of": size_of,
    "unequal": unequal,
    "with_optional": with_optional,
    "add": OPERATORS["_+_"],
    "subtract": OPERATORS["_-_"],
    "multiply": OPERATORS["_*_"],
    "divide": OPERATORS["_/_"],
    "modulo": OPERATORS["_%_"],
}
"""The names that generated code may use besides its own constants."""
