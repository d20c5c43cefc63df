"""Typed objects from JSON and back.

    decode_object(data)  =  read_object  →  apply_defaults  →  convert to the hub version

Reading has a fast way and an exact one: msgspec fills the structs straight from the bytes; what it doesn't accept, and
what it would read differently from Kubernetes, is left to `dray.api.exact`. Both give the same object, but for fields
that occur twice: the last one counts, where Kubernetes merges them. `dray.api.strict` finds those and merges.

Objects are written as Kubernetes writes them: empty fields are left out, except those that Go's types always write.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec
from msgspec.structs import replace

from dray.api.conversion import to_hub, to_v1beta1
from dray.api.defaults import apply_defaults
from dray.api.exact import DecodeError, InvalidSyntax, read_exactly
from dray.api.kinds import KINDS, KindVersion
from dray.api.lists import ObjectList
from dray.api.meta import NIL, NO_RAW, RESOURCE_GROUP, ApiStruct, Json, ObjectMeta, Time
from dray.api.quantities import Quantity
from dray.api.quoting import quote
from dray.api.shapes import Record, record_of

__all__ = [
    "DecodeError", "InvalidSyntax", "UnknownKind", "convert_part", "decode_as", "decode_object", "decode_plain",
    "decode_served", "encode", "encode_as", "read_object", "to_json",
]  # fmt: skip

T = TypeVar("T")

_HEAD: Final = re.compile(
    rb'\{\s*"(?:apiVersion"\s*:\s*"([^"\\]*)"\s*,\s*"kind"\s*:\s*"([^"\\]*)"'
    rb'|kind"\s*:\s*"([^"\\]*)"\s*,\s*"apiVersion"\s*:\s*"([^"\\]*)")'
)
_HUB_API_VERSION: Final = f"{RESOURCE_GROUP}/v1"
_ODD: Final = (b"null", b'"list"')
"""Texts that only the exact decoder reads right: explicit nulls, and list attributes as KEP-5491 spells them."""


class UnknownKind(DecodeError):
    """Nothing is known by this `apiVersion` and `kind`."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"no kind {quote(kind)} is registered for version {quote(api_version)}")
        self.api_version = api_version
        self.kind = kind


class ReadObject(NamedTuple):
    """An object in the shape of the version it was written in, not yet defaulted."""

    kind: KindVersion
    value: Any


def decode_object(data: bytes | str | Json, *, now: Time | None = None, early: bool = True) -> Any:
    """The object in `data`, of any kind and version that dray knows, defaulted and in the hub version.

    `now` is the default for when a taint was added; without it, that stays open. With `early`, spellings of the KEPs
    that Kubernetes doesn't read (any more) are accepted as well. Raises DecodeError.
    """
    return complete(read_object(data, early=early), now)


def complete(read: ReadObject, now: Time | None) -> Any:
    """The second and third step: defaults of the object's version, then conversion to the hub."""
    return _to_hub(read.kind, apply_defaults(read.value, now))


def decode_as(type_: type[T], data: bytes | str | Json, *, now: Time | None = None) -> T:
    """The object in `data`, which must be of one kind. An item of a list, which names no kind, is read as v1."""
    if isinstance(data, dict) and "kind" not in data:
        data = {**data, "kind": type_.__name__, "apiVersion": f"{RESOURCE_GROUP}/v1"}
    value = decode_object(data, now=now)
    if not isinstance(value, type_):
        raise DecodeError(f"expected a {type_.__name__}, got a {value.kind}")
    return value


def decode_served(type_: type[T], obj: Json) -> T:
    """An object as a server gives it: in the hub version, defaulted already. Managed fields are left out.

    What informers use: it does less than `decode_as` for the many objects that need no more, and the same for others.
    """
    metadata = obj.get("metadata")
    if obj.get("apiVersion", _HUB_API_VERSION) != _HUB_API_VERSION or not isinstance(metadata, dict):
        return decode_as(type_, obj)
    if "managedFields" in metadata:
        obj = {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
    try:
        if not _has_attributes(type_):
            return convert_part(obj, type_)
        raw = _to_bytes(obj)
        if not any(odd in raw for odd in _ODD):
            value: T = _decoder(cast(Any, type_))(raw)
            return value
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # also opaque parameters, which stay text
        pass
    return decode_as(type_, obj)


def convert_part(value: Json, type_: type[T]) -> T:
    """A part of an object in the hub version, not defaulted. Raises msgspec.ValidationError, also for what is fine.

    Opaque data, which must stay as it was written, is beyond it.
    """
    return msgspec.convert(value, type_, dec_hook=_decode_quantity)


def decode_plain(type_: type[T], obj: Json, *, now: Time | None = None) -> T:
    """An object in the hub version, defaulted, if it is an ordinary one. Raises DecodeError, also for what is fine."""
    if _has_attributes(type_):
        raise DecodeError("list attributes are for the exact decoder")
    try:
        value = convert_part(obj, type_)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DecodeError(str(error)) from None
    return cast(T, apply_defaults(cast(Any, value), now))


def _has_attributes(type_: type) -> bool:
    """Whether an object may hold list attributes, of which there are two spellings."""
    return type_.__name__ == "ResourceSlice"


def read_object(data: bytes | str | Json, *, early: bool = True) -> ReadObject:
    """The object in `data` as its version spells it; raises DecodeError."""
    raw = _to_bytes(data)
    if (head := _HEAD.match(raw)) is not None:
        # A guess that saves a pass over the text. Later duplicates of the two fields would win, hence the check.
        api_version, kind = (head[1], head[2]) if head[1] is not None else (head[4], head[3])
        known = KINDS.get((api_version.decode("utf-8", "replace"), kind.decode("utf-8", "replace")))
        if known is not None and (early or not known.early):
            value = _read(known, raw, early)
            if value.api_version == known.api_version and value.kind == known.kind:
                return ReadObject(known, value)
    known = find_kind(*read_type(raw), early=early)
    return ReadObject(known, _read(known, raw, early))


def find_kind(api_version: str, kind: str, *, early: bool = True) -> KindVersion:
    """Raises UnknownKind."""
    known = KINDS.get((api_version, kind))
    if known is None or (known.early and not early):
        raise UnknownKind(api_version, kind)
    return known


class TypeMeta(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""


_READ_TYPE: Final = msgspec.json.Decoder(TypeMeta).decode


def read_type(data: bytes) -> tuple[str, str]:
    """`apiVersion` and `kind` of an object; both must be there."""
    try:
        head = _READ_TYPE(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        head = _read_odd_type(data.decode("utf-8", "replace"))
    if head.api_version.count("/") > 1:
        raise DecodeError(f"unexpected GroupVersion string: {head.api_version}", ("apiVersion",))
    if not head.kind:
        raise DecodeError(f"Object 'Kind' is missing in '{_start_of(data)}'", ("kind",))
    if not head.api_version:
        raise DecodeError(f"Object 'apiVersion' is missing in '{_start_of(data)}'", ("apiVersion",))
    return head.api_version, head.kind


def _read_odd_type(text: str) -> TypeMeta:
    try:
        head: TypeMeta = read_exactly(text, record_of(TypeMeta, "v1", False)).value
    except InvalidSyntax:
        raise
    except DecodeError as error:
        # In Go the struct that these two are read into has no name.
        message = error.message.replace("struct field TypeMeta.", "struct field .")
        raise DecodeError(f"couldn't get version/kind; json parse error: {message}", error.path) from None
    return head


def _start_of(data: bytes, limit: int = 200) -> str:
    text = data.decode("utf-8", "replace")
    return text if len(text) <= limit else f"{text[:limit]}…"


def _to_bytes(data: bytes | str | Json) -> bytes:
    if isinstance(data, bytes):
        return data
    try:
        return data.encode() if isinstance(data, str) else msgspec.json.encode(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise DecodeError(f"not JSON: {error}") from None


def _decode_quantity(type_: type, value: object) -> Quantity:
    """Raises what sends the object to the exact decoder; that one sees how a number was written."""
    if type_ is Quantity:
        if type(value) is str:
            return Quantity.parse(value)
        if type(value) is int:
            return Quantity.parse(str(value))
    raise TypeError(type_)


@cache
def _decoder(type_: Any) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(type_, dec_hook=_decode_quantity).decode


def _read(kind: KindVersion, raw: bytes, early: bool) -> Any:
    if not any(odd in raw for odd in _ODD):
        try:
            return _own(_decoder(kind.type)(raw))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the exact decoder has the last word
            pass
    return read_exactly(raw.decode("utf-8", "replace"), kind_record(kind, early=early)).value


def kind_record(kind: KindVersion, *, early: bool) -> Record:
    return record_of(kind.type, kind.version, early)


def _own(value: Any) -> Any:
    """Managed fields are views of the whole text; a copy lets go of it."""
    if isinstance(value, ObjectList):
        return replace(value, items=tuple(map(_own, value.items))) if value.items else value
    metadata: ObjectMeta = value.metadata
    if not metadata.managed_fields:
        return value
    entries = tuple(
        entry if entry.fields_v1 is NO_RAW else replace(entry, fields_v1=entry.fields_v1.copy())
        for entry in metadata.managed_fields
    )
    return replace(value, metadata=replace(metadata, managed_fields=entries))


def _to_hub(kind: KindVersion, value: Any) -> Any:
    if kind.version == kind.hub_version and not isinstance(value, ObjectList):
        return value
    return replace(to_hub(value), api_version=kind.hub_api_version, kind=kind.kind)


_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)


def encode(value: msgspec.Struct) -> bytes:
    """The JSON of any API struct, as it stands."""
    data = _ENCODER.encode(value)
    # Two things msgspec can't write: `null` for an absent list, and nothing for an empty list that differs from an
    # absent one while it is in memory. Both come out as `[]`, which is rare enough to pay for a second, slower try.
    return _ENCODER.encode(_plain(value)) if b"[]" in data else data


def to_json(value: msgspec.Struct) -> Json:
    """Any API struct as plain JSON."""
    plain: Json = msgspec.json.decode(encode(value))
    return plain


def encode_as(value: msgspec.Struct, version: str) -> bytes:
    """The JSON of an object (of the hub version) in another version, e.g. `v1beta1`. Raises UnknownKind."""
    kind_name = value.kind if isinstance(value, ObjectList) else type(value).__name__
    kind = find_kind(f"{RESOURCE_GROUP}/{version}", kind_name)
    shaped = to_v1beta1(value) if kind.flat else value
    return encode(replace(shaped, api_version=kind.api_version, kind=kind.kind))


@cache
def _fields(type_: type[msgspec.Struct]) -> tuple[tuple[str, str, bool, Any], ...]:
    """Attribute, JSON name, whether it is always written, and the default, of each field."""
    return tuple(
        (info.name, info.encode_name, info.default_factory not in (msgspec.NODEFAULT, dict), info.default)
        for info in msgspec.structs.fields(type_)
    )


def _plain(value: Any) -> Any:
    """`value` with structs turned into dicts, field by field as Kubernetes writes them."""
    match value:
        case msgspec.Struct():
            plain: Json = {}
            for attribute, name, always, default in _fields(type(value)):
                content = getattr(value, attribute)
                if content is NIL:
                    if always:
                        plain[name] = None
                elif always or not (content is default or content == () or content == {}):
                    plain[name] = _plain(content)
            return plain
        case tuple():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case _:
            return value
