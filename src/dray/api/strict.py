"""Strict field validation: the unknown and duplicate fields of a text, which the decoder itself ignores."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from dray.api.codec import ReadObject, complete, decode_object, find_kind, kind_record, read_type
from dray.api.exact import StrictError, read_exactly
from dray.api.meta import Time
from dray.api.shapes import ListOf, MapOf, Pointer, Record, Shape


class _DuplicateKey(Exception):
    pass


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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _DuplicateKey
    return members


_LOADER: Final = json.JSONDecoder(object_pairs_hook=_object)


def _is_clean(data: bytes, record: Record) -> bool:
    """A quick look that is right when it says yes. Duplicates within opaque data make it say no for nothing."""
    try:
        return _knows(record, _LOADER.decode(data.decode()))
    except (ValueError, RecursionError, _DuplicateKey):
        return False


def _knows(shape: Shape, value: Any) -> bool:
    match shape, value:
        case Pointer(to), _:
            return _knows(to, value)
        case Record(), dict():
            fields = shape.fields
            for key, member in value.items():
                if (known := fields.get(key)) is None or (
                    isinstance(member, dict | list) and not _knows(known[1], member)
                ):
                    return False
            return True
        case ListOf(item), list():
            return all(_knows(item, member) for member in value if isinstance(member, dict | list))
        case MapOf(item), dict():
            return all(_knows(item, member) for member in value.values() if isinstance(member, dict | list))
        case _:
            return True
