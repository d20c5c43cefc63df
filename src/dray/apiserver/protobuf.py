"""Bodies in Kubernetes' protobuf encoding, which Go clients send for the kinds that they know.

Field numbers are in `protobuf.json`: per struct `number name` pairs, where `?` marks fields that are absent when unset
(pointers in Go), `!` those whose zero value is written, and `^Struct` one whose members count as the parent's own.
All other fields are always on the wire and mean nothing when they are zero. Answers are JSON: these clients take both.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any, Final, assert_never

import msgspec

from dray.api.errors import BadRequest
from dray.api.meta import Json
from dray.api.times import format_micro_time, format_time
from dray.apiserver.schemas import Anything, ListOf, MapOf, Node, Scalar, Struct, UnknownType, meta_type, type_of

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DEPTH: Final = 60

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Malformed(ValueError):
    """The bytes aren't a message."""


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    keeps_zero: bool
    inlined: str
    """The struct whose members stand for this one."""


def read_protobuf(body: bytes, dropped: list[str]) -> Json:
    """The object in a body as JSON. Fields whose numbers we don't know are noted in `dropped`. Raises BadRequest."""
    try:
        if not body.startswith(_MAGIC):
            raise Malformed("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
        envelope = dict(_fields(body[len(_MAGIC) :]))
        type_meta = {number: _text(value) for number, value in _fields(_bytes(envelope.get(1, b"")))}
        api_version, kind = type_meta.get(1, ""), type_meta.get(2, "")
        obj = _read_struct(_bytes(envelope.get(2, b"")), _schema(api_version, kind), dropped, 0)
    except Malformed as error:
        raise BadRequest(f"couldn't get version/kind; {error}") from error
    return {"kind": kind, "apiVersion": api_version, **obj}


def _schema(api_version: str, kind: str) -> Struct:
    group, _, version = api_version.rpartition("/")
    if kind == "DeleteOptions":
        return meta_type(kind)
    try:
        return type_of(group, version, kind)
    except (UnknownType, KeyError):
        raise Malformed(f'no kind "{kind}" is registered for version "{api_version}"') from None


@functools.cache
def _numbers() -> dict[str, str]:
    data = resources.files("dray.apiserver").joinpath("protobuf.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, str])


@functools.cache
def _members(struct: str) -> dict[int, _Member]:
    words = _numbers().get(struct, "").split()
    members = {}
    for number, name in zip(words[::2], words[1::2], strict=True):
        inlined = name[1:] if name.startswith("^") else ""
        members[int(number)] = _Member(name.rstrip("?!"), name[-1] in "?!", inlined)
    return members


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and raw values of a message, in the order of the wire."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                value, at = _varint(data, at)
                yield key >> 3, value
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise Malformed("proto: unexpected end of message")
                yield key >> 3, data[at : at + size]
                at += size
            case 1 | 5 as wire:
                size = 8 if wire == _FIXED64 else 4
                if at + size > len(data):
                    raise Malformed("proto: unexpected end of message")
                yield key >> 3, int.from_bytes(data[at : at + size], "little")
                at += size
            case wire:
                raise Malformed(f"proto: illegal wireType {wire}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("proto: unexpected end of message")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise Malformed("proto: wrong wireType")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"proto: {error}") from None


def _read_struct(data: bytes, schema: Struct, dropped: list[str], depth: int, table: str = "") -> Json:
    """`table` names the struct that the numbers are of, if it is one that is inlined into `schema`."""
    if depth > _MAX_DEPTH:
        raise Malformed("proto: nested too deeply")
    members, types = _members(table or schema.name), schema.fields
    result: Json = {}
    for number, raw in _fields(data):
        member = members.get(number)
        if member is None:
            dropped.append(f"field number {number} of {schema.short_name} is not known and was ignored")
            continue
        if member.inlined:
            result |= _read_struct(_bytes(raw), schema, dropped, depth + 1, member.inlined)
            continue
        field = types.get(member.name)
        if field is not None:
            _add(result, member, raw, field.type, dropped, depth + 1)
    return result


def _add(result: Json, member: _Member, raw: int | bytes, schema: Node, dropped: list[str], depth: int) -> None:
    match schema:
        case ListOf():
            result.setdefault(member.name, []).extend(_items(raw, schema.item, dropped, depth))
        case MapOf():
            entry = dict(_fields(_bytes(raw)))
            value = _value(entry.get(2, b""), schema.value, dropped, depth)
            result.setdefault(member.name, {})[_text(entry.get(1, b""))] = value
        case _:
            value = _value(raw, schema, dropped, depth)
            if member.keeps_zero or value not in ("", 0, None):
                result[member.name] = value


def _items(raw: int | bytes, schema: Node, dropped: list[str], depth: int) -> list[Any]:
    if isinstance(schema, Scalar) and schema.name in ("int32", "int64", "boolean") and isinstance(raw, bytes):
        packed, at, items = raw, 0, []
        while at < len(packed):
            number, at = _varint(packed, at)
            items.append(_value(number, schema, dropped, depth))
        return items
    return [_value(raw, schema, dropped, depth)]


def _value(raw: int | bytes, schema: Node, dropped: list[str], depth: int) -> Any:
    match schema:
        case Scalar():
            return _scalar(raw, schema.name)
        case Struct():
            return _read_struct(_bytes(raw), schema, dropped, depth)
        case Anything():
            content = dict(_fields(_bytes(raw))).get(1, b"")
            return _json(_bytes(content))
        case ListOf():
            # The values of some maps are lists, which have a message of their own.
            return [item for _, each in _fields(_bytes(raw)) for item in _items(each, schema.item, dropped, depth)]
        case MapOf():
            raise Malformed("proto: maps of maps are not supported")
        case _:
            assert_never(schema)


def _json(content: bytes) -> Any:
    if not content:
        return None
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise Malformed(f"raw data is not JSON: {error}") from None


def _scalar(raw: int | bytes, name: str) -> Any:
    match name:
        case "string":
            return _text(raw)
        case "boolean":
            return bool(raw)
        case "int32" | "int64":
            if not isinstance(raw, int):
                raise Malformed("proto: wrong wireType")
            return raw - (1 << 64) if raw >= 1 << 63 else raw
        case "bytes":
            return base64.b64encode(_bytes(raw)).decode()
        case "quantity":
            return _text(dict(_fields(_bytes(raw))).get(1, b"0"))
        case "time" | "micro-time":
            return _time(dict(_fields(_bytes(raw))), name)
        case "int-or-string":
            parts = dict(_fields(_bytes(raw)))
            return _text(parts.get(3, b"")) if parts.get(1) else _scalar(parts.get(2, 0), "int32")
        case _:
            raise Malformed(f"proto: {name} is not supported")


def _time(parts: dict[int, int | bytes], name: str) -> str | None:
    """An absent time is an empty message."""
    if not parts:
        return None
    seconds, nanos = (_scalar(parts.get(number, 0), "int64") for number in (1, 2))
    try:
        instant = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise Malformed("proto: time out of range") from None
    return format_time(instant) if name == "time" else format_micro_time(instant)
