"""What `.x` and `[y]` give on a value."""

from __future__ import annotations

from typing import Final, cast

from dray.cel.ast import Uint
from dray.cel.errors import EvaluationError
from dray.cel.values import INT_MAX, INT_MIN, DefaultMap, Value, as_map, find_key, type_name

_KEY_TYPES: Final = frozenset((str, int, Uint, bool, float))


class _Absent:
    __slots__ = ()


ABSENT: Final = _Absent()
"""What a presence test gives for something that isn't there."""


def qualify(target: Value, key: Value) -> Value:
    """`target[key]`. Raises EvaluationError."""
    kind = type(target)
    if kind is dict and type(key) is str:
        entries = cast("dict[str, Value]", target)
        if key in entries:
            return entries[key]
        raise EvaluationError(f"no such key: {key}")
    value = qualify_if_present(target, key)
    if value is ABSENT:
        if isinstance(target, list):
            raise EvaluationError(f"index out of bounds: {key}")
        raise EvaluationError(f"no such key: {_shown(key)}")
    return value


def qualify_if_present(target: Value, key: Value) -> Value:
    """`target[?key]`: ABSENT if it isn't there. Raises EvaluationError for a key that can't be one."""
    if type(key) not in _KEY_TYPES:
        raise EvaluationError(f"invalid qualifier type: {type_name(key)}")
    if isinstance(target, list):
        index = _index(key)
        return target[index] if 0 <= index < len(target) else ABSENT
    entries = as_map(target)
    if entries is None:
        return ABSENT
    found = find_key(entries, key)
    if found is not None:
        return entries[found]
    return entries.__missing__("") if isinstance(entries, DefaultMap) else ABSENT


def _index(key: Value) -> int:
    """A list index; doubles and unsigned numbers will do if they are whole and fit."""
    if type(key) is int:
        return key
    if type(key) is Uint and key <= INT_MAX:
        return int(key)
    if type(key) is float and key.is_integer() and INT_MIN <= key <= INT_MAX:
        return int(key)
    if type(key) in (Uint, float):
        raise EvaluationError(f"unsupported index value {_shown(key)} in list")
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")


def _shown(key: Value) -> str:
    if type(key) is bool:
        return "true" if key else "false"
    return str(key)
