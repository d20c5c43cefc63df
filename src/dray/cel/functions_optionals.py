"""Functions on optional values. `or` and `orValue` are part of the language: see the planner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dray.cel.arithmetic import MIN_TIMESTAMP
from dray.cel.ast import Uint
from dray.cel.errors import EvaluationError
from dray.cel.meter import Meter
from dray.cel.values import NONE, Duration, Optional, Timestamp, Value, as_map


def none() -> Optional:
    return NONE


def of(value: Value) -> Optional:
    return Optional(value)


def of_non_zero(value: Value) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Value) -> bool:
    kind = type(value)
    if value is None or kind in (bool, int, Uint, float, str, bytes):
        return not value
    if isinstance(value, list):
        return not value
    if isinstance(value, Duration):
        return value.nanos == 0
    if isinstance(value, Timestamp):
        return value.nanos == MIN_TIMESTAMP
    entries = as_map(value)
    return entries is not None and not entries


def has_value(optional: Optional) -> bool:
    return optional is not NONE


def value(optional: Optional) -> Value:
    if optional is NONE:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def unwrap(meter: Meter, items: list[Value]) -> list[Value]:
    meter.spend(len(items))
    values: list[Value] = []
    for item in items:
        if not isinstance(item, Optional):
            raise EvaluationError(f"value {item} is not optional")
        if item is not NONE:
            values.append(item.value)
    return values


def first(items: list[Value]) -> Optional:
    return Optional(items[0]) if items else NONE


def last(items: list[Value]) -> Optional:
    return Optional(items[-1]) if items else NONE


OVERLOADS: Final[dict[str, Callable[..., Value]]] = {
    "optional_none": none,
    "optional_of": of,
    "optional_ofNonZeroValue": of_non_zero,
    "optional_hasValue": has_value,
    "optional_value": value,
    "list_first": first,
    "list_last": last,
}
METERED: Final[dict[str, Callable[..., Value]]] = {
    "optional_unwrap": unwrap,
    "optional_unwrapOpt": unwrap,
}
