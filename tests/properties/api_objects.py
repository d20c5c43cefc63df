"""Hypothesis strategies for API objects as JSON, made from the shapes that the decoder knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, assert_never

from hypothesis import strategies as st

from dray.api.kinds import KINDS, KindVersion
from dray.api.shapes import (
    Amount,
    Boolean,
    Instant,
    Integer,
    ListOf,
    MapOf,
    Pointer,
    RawValue,
    Record,
    Shape,
    Text,
    record_of,
)

SINGLE_KINDS = [kind for kind in KINDS.values() if not kind.kind.endswith("List")]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
QUANTITIES = st.one_of(
    st.from_regex(r"[+-]?(0|[1-9][0-9]{0,20})(\.[0-9]{1,4})?(m|k|Mi|Gi|E|e3|E-3|)", fullmatch=True),
    st.integers(-(10**20), 10**20),
)
ZONES = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC) | ZONES).map(
    lambda moment: moment.isoformat().replace("+00:00", "Z")
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def values(shape: Shape) -> st.SearchStrategy[Any]:
    """JSON that fits a shape. Lists that tell empty from absent aren't empty: that difference isn't written."""
    match shape:
        case Record():
            return records(shape)
        case Pointer(ListOf() as listed):
            return st.lists(st.deferred(lambda: values(listed.item)), min_size=1, max_size=3)
        case Pointer(to):
            return values(to)
        case ListOf(item):
            return st.lists(st.deferred(lambda: values(item)), max_size=2)
        case MapOf(item):
            return st.dictionaries(TEXTS, st.deferred(lambda: values(item)), max_size=3)
        case Text():
            return TEXTS
        case Boolean():
            return st.booleans()
        case Integer(bits):
            return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        case Amount():
            return QUANTITIES
        case Instant():
            return INSTANTS
        case RawValue():
            return JSON.filter(lambda value: value is not None)
        case _:
            assert_never(shape)


_CACHE: dict[int, st.SearchStrategy[Any]] = {}


def records(record: Record) -> st.SearchStrategy[dict[str, Any]]:
    if id(record) not in _CACHE:
        fields = {name: st.deferred(lambda shape=shape: values(shape)) for name, (_, shape) in record.fields.items()}
        _CACHE[id(record)] = st.fixed_dictionaries({}, optional=fields)
    return _CACHE[id(record)]


def objects(kind: KindVersion) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of one kind and version."""
    fixed = {"apiVersion": kind.api_version, "kind": kind.kind}
    return records(record_of(kind.type, kind.version, False)).map(lambda body: {**body, **fixed})


def any_objects() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(SINGLE_KINDS).flatmap(objects)
