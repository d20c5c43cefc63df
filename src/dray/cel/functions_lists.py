"""Functions on lists: the lists and sets extensions, Kubernetes' own, and the parts that macros expand to."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cmp_to_key
from typing import Final, cast

from dray.cel.arithmetic import add
from dray.cel.ast import Uint
from dray.cel.equality import compare_values, equals, equals_self, is_equal, is_ordered
from dray.cel.errors import EvaluationError
from dray.cel.meter import Meter
from dray.cel.values import (
    Duration,
    Map,
    MutableMap,
    Value,
    as_map,
    encode_key,
    find_key,
    iter_keys,
    type_name,
)

MAX_RANGE: Final = 1_000_000
_SMALL: Final = 8
"""Lists up to this length are too short to be worth counting."""


def contains(items: list[Value], wanted: Value, meter: Meter) -> bool:
    """`wanted in items`: errors of single comparisons don't count."""
    if len(items) > _SMALL:
        meter.spend(len(items))
    return _has(items, wanted, meter)


def _has(items: list[Value], wanted: Value, meter: Meter) -> bool:
    """Like `contains`, for functions whose price is by the number of comparisons."""
    for item in items:  # noqa: SIM110 - a generator would take twice as long
        if equals(wanted, item, meter) is True:
            return True
    return False


# Sets


def sets_contains(meter: Meter, items: list[Value], wanted: list[Value]) -> bool:
    return all(_has(items, item, meter) for item in wanted)


def sets_equivalent(meter: Meter, left: list[Value], right: list[Value]) -> bool:
    return sets_contains(meter, left, right) and sets_contains(meter, right, left)


def sets_intersects(meter: Meter, left: list[Value], right: list[Value]) -> bool:
    return any(_has(right, item, meter) for item in left)


# The lists extension


def distinct(meter: Meter, items: list[Value]) -> list[Value]:
    unique: list[Value] = []
    for item in items:
        for other in unique:
            if equals_self(item, other, meter) is True:
                break
        else:
            unique.append(item)
    return unique


def flatten(meter: Meter, items: list[Value], depth: int = 1) -> list[Value]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Value] = []
    meter.spend(len(items))
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat += flatten(meter, item, depth - 1)
        else:
            flat.append(item)
    return flat


def number_range(length: int) -> list[int]:
    if length < 0:
        raise EvaluationError(f"lists.range: size {length} is negative")
    if length > MAX_RANGE:
        raise EvaluationError(f"lists.range: size {length} exceeds maximum allowed ({MAX_RANGE})")
    return list(range(length))


def reverse(meter: Meter, items: list[Value]) -> list[Value]:
    meter.spend(len(items))
    return list(reversed(items))


def cut(meter: Meter, items: list[Value], start: int, end: int) -> list[Value]:
    """`slice`."""
    call = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationError(f"{call}, negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{call}, start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"{call}, list is length {len(items)}")
    meter.spend(end - start)
    return items[start:end]


def sort(meter: Meter, items: list[Value]) -> list[Value]:
    return sort_by_keys(meter, items, items)


def sort_by_keys(meter: Meter, items: list[Value], keys: list[Value]) -> list[Value]:
    """`@sortByAssociatedKeys`, which `sortBy` expands to."""
    if len(items) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    if not is_ordered(keys[0]):
        raise EvaluationError("list elements must be comparable")
    if any(type_name(key) != type_name(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")
    meter.spend(len(items) * len(items).bit_length())

    def order(left: int, right: int) -> int:
        answer = compare_values(keys[left], keys[right], meter)
        return answer if isinstance(answer, int) else 0

    return [items[index] for index in sorted(range(len(items)), key=cmp_to_key(order))]


# Kubernetes' lists


def is_sorted(meter: Meter, items: list[Value]) -> bool:
    meter.spend(len(items))
    return all(compare_values(previous, item, meter) != 1 for previous, item in itertools.pairwise(items))


def _summing(zero: Value) -> Callable[[Meter, list[Value]], Value]:
    def total(meter: Meter, items: list[Value]) -> Value:
        meter.spend(len(items))
        result = zero
        for item in items:
            result = add(meter, result, item)
        return result

    return total


def _extreme(name: str, better: int) -> Callable[[Meter, list[Value]], Value]:
    def pick(meter: Meter, items: list[Value]) -> Value:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        meter.spend(len(items))
        result = items[0]
        for item in items:
            if not is_ordered(item):
                raise EvaluationError("no such overload")
            if compare_values(result, item, meter) == better:
                result = item
        return result

    return pick


minimum: Final = _extreme("min", 1)
maximum: Final = _extreme("max", -1)


def index_of(meter: Meter, items: list[Value], wanted: Value) -> int:
    meter.spend(len(items))
    for index, item in enumerate(items):
        if equals_self(item, wanted, meter) is True:
            return index
    return -1


def last_index_of(meter: Meter, items: list[Value], wanted: Value) -> int:
    meter.spend(len(items))
    for index in range(len(items) - 1, -1, -1):
        if equals_self(items[index], wanted, meter) is True:
            return index
    return -1


def includes(meter: Meter, receiver: Value, wanted: Value) -> bool:
    """For attributes that hold one value or a list of them (KEP-5491)."""
    if isinstance(receiver, list):
        return contains(receiver, wanted, meter)
    return is_equal(receiver, wanted, meter)


# What `transformMap` and `transformMapEntry` expand to


def map_insert(meter: Meter, target: Value, key: Value, value: Value) -> Map:
    entries = _growing(target, meter)
    if find_key(entries, key) is not None:
        raise EvaluationError(f"insert failed: key {key} already exists")
    entries[encode_key(key)] = value
    return entries


def map_insert_map(meter: Meter, target: Value, added: Value) -> Map:
    entries = _growing(target, meter)
    more = cast("Map", as_map(added))
    for key, value in zip(iter_keys(more), more.values(), strict=True):
        if find_key(entries, key) is not None:
            raise EvaluationError(f"insert failed: key {key} already exists")
        entries[encode_key(key)] = value
    return entries


def _growing(target: Value, meter: Meter) -> Map:
    """The map to insert into: the accumulator of a macro grows in place, any other map is copied."""
    if type(target) is MutableMap:
        return target
    entries = cast("Map", as_map(target))
    meter.spend(len(entries))
    return dict(entries)


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
_ORDERED: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")

OVERLOADS: Final[dict[str, Callable[..., Value]]] = {"lists_range": number_range}
METERED: Final[dict[str, Callable[..., Value]]] = {
    "list_sets_contains_list": sets_contains,
    "list_sets_equivalent_list": sets_equivalent,
    "list_sets_intersects_list": sets_intersects,
    "list_distinct": distinct,
    "list_flatten": flatten,
    "list_flatten_int": flatten,
    "list_reverse": reverse,
    "list_slice": cut,
    **{f"list_{name}_sort": sort for name in _SORTABLE},
    **{f"list_{name}_sortByAssociatedKeys": sort_by_keys for name in _SORTABLE},
    **{f"list_{name}_is_sorted_bool": is_sorted for name in _ORDERED},
    **{f"list_{name}_min_{name}": minimum for name in _ORDERED},
    **{f"list_{name}_max_{name}": maximum for name in _ORDERED},
    "list_int_sum_int": _summing(0),
    "list_uint_sum_uint": _summing(Uint(0)),
    "list_double_sum_double": _summing(0.0),
    "list_duration_sum_duration": _summing(Duration(0)),
    "list_a_index_of_int": index_of,
    "list_a_last_index_of_int": last_index_of,
    "list_includes_dyn_dyn": includes,
    "@mapInsert_map_key_value": map_insert,
    "@mapInsert_map_map": map_insert_map,
}
