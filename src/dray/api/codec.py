"""Typed objects from JSON and back."""

from __future__ import annotations

from typing import Any

import msgspec

from dray.api.claims import ResourceClaim, ResourceClaimTemplate
from dray.api.classes import DeviceClass
from dray.api.meta import Json
from dray.api.quantities import Quantity
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule

TYPES: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (ResourceClaim, ResourceClaimTemplate, DeviceClass, ResourceSlice, DeviceTaintRule)
}


class DecodeError(ValueError):
    """The data isn't an object of a known kind; `field` is the path of the field at fault, if there is one."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field


def _decode_value(type_: type, value: object) -> Any:
    if type_ is Quantity and type(value) in (str, int):
        return Quantity.parse(str(value))
    raise TypeError(f"cannot read {value!r} as {type_.__name__}")


def _encode_value(value: object) -> str:
    return str(value)


_DECODERS = {name: msgspec.json.Decoder(cls, dec_hook=_decode_value) for name, cls in TYPES.items()}
_ENCODER = msgspec.json.Encoder(enc_hook=_encode_value)


class TypeMeta(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


def decode_object(data: bytes | Json) -> Any:
    """The typed object in `data`. First version: resource.k8s.io/v1 without defaults."""
    raw = _ENCODER.encode(data) if isinstance(data, dict) else data
    try:
        head = msgspec.json.decode(raw, type=TypeMeta)
        if head.kind not in _DECODERS or head.api_version != "resource.k8s.io/v1":
            raise DecodeError(f'no kind "{head.kind}" is registered for version "{head.api_version}"')
        return _DECODERS[head.kind].decode(raw)
    except msgspec.DecodeError as error:
        raise DecodeError(str(error)) from error


def encode(value: msgspec.Struct) -> bytes:
    return _ENCODER.encode(value)


def to_json(value: msgspec.Struct) -> Json:
    plain: Json = msgspec.json.decode(encode(value))
    return plain
