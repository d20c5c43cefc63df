"""Strict field validation: the unknown and duplicate fields of a text, which the decoder itself ignores."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import msgspec

from dray.api.codec import ReadObject, complete, decode_object, find_kind, kind_record, read_type
from dray.api.exact import StrictError, read_exactly
from dray.api.meta import Time
from dray.api.shapes import ListOf, MapOf, Pointer, Record, Shape


class StrictlyDecoded(NamedTuple):
    value: Any
    errors: list[StrictError]


def decode_strict(data: bytes, *, now: Time | None = None, early: bool = True) -> StrictlyDecoded:
    """Like `decode_object`, with what strict field validation objects to. Fields that occur twice are merged."""
    kind = find_kind(*read_type(data), early=early)
    record = kind_record(kind, early=early)
    if _is_clean(data, record):
        return StrictlyDecoded(decode_object(data, now=now, early=early), [])
    reading = read_exactly(data.decode("utf-8", "replace"), record)
    return StrictlyDecoded(complete(ReadObject(kind, reading.value), now), reading.strict_errors)


def find_strict_errors(data: bytes, *, early: bool = True) -> list[StrictError]:
    """What `fieldValidation=Strict` rejects and `Warn` warns of, e.g. `unknown field "spec.x"`. Raises DecodeError."""
    record = kind_record(find_kind(*read_type(data), early=early), early=early)
    return [] if _is_clean(data, record) else read_exactly(data.decode("utf-8", "replace"), record).strict_errors


def _is_clean(data: bytes, record: Record) -> bool:
    """A quick look that is right when it says yes. Duplicates within opaque data make it say no for nothing."""
    objects: list[list[tuple[str, Any]]] = []
    try:
        _strict_decoder(record)(data)
        # The hook sees every object of the text as a list of pairs; all of this runs without a step of Python.
        json.loads(data, object_pairs_hook=objects.append)
    except (ValueError, RecursionError):
        return False
    return sum(map(len, objects)) == sum(map(len, map(dict, objects)))


@cache
def _strict_decoder(record: Record) -> Callable[[bytes], object]:
    return msgspec.json.Decoder(_strict_type(record)).decode


@cache
def _strict_type(shape: Shape) -> Any:
    """A type that accepts what fits the shape, values unread, but no unknown field."""
    match shape:
        case Record():
            fields = {name: inner for name, (_, inner) in shape.fields.items()}
            members = [(f"field_{at}", _strict_type(inner), None) for at, inner in enumerate(fields.values())]
            names = {f"field_{at}": name for at, name in enumerate(fields)}
            for name, inner_fields in shape.inlined.items():
                names[f"inlined_{name}"] = name
                members.append((f"inlined_{name}", _strict_inlined(name, tuple(inner_fields)), None))
            return msgspec.defstruct(shape.name, members, rename=names, forbid_unknown_fields=True, gc=False)
        case Pointer(to):
            return _strict_type(to)
        case ListOf(item) if _has_fields(item):
            return list[_strict_type(item)]  # type: ignore[misc]
        case MapOf(item) if _has_fields(item):
            return dict[str, _strict_type(item)]  # type: ignore[misc]
        case _:
            return msgspec.Raw


def _strict_inlined(name: str, fields: tuple[str, ...]) -> Any:
    members = [(f"field_{field}", msgspec.Raw, None) for field in fields]
    names = {f"field_{field}": field for field in fields}
    return msgspec.defstruct(name, members, rename=names, forbid_unknown_fields=True, gc=False)


def _has_fields(shape: Shape) -> bool:
    match shape:
        case Record():
            return True
        case Pointer(inner) | ListOf(inner) | MapOf(inner):
            return _has_fields(inner)
        case _:
            return False
