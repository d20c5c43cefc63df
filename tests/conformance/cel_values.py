"""CEL values in the form of the conformance data: objects with one key, the type; ints as strings; maps as pairs."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from dray.api.devices import DeviceAttribute
from dray.api.quantities import Quantity
from dray.api.versions import Semver
from dray.cel.ast import Uint
from dray.cel.instants import parse_timestamp
from dray.cel.values import (
    CIDR,
    IP,
    NONE,
    URL,
    Duration,
    Format,
    Optional,
    QuantitySum,
    Timestamp,
    TypeValue,
    Value,
    as_map,
    decode_key,
)


def encode(value: Value) -> Any:
    """A value of ours. What can be written in several ways is written as in `normalize`."""
    match value:
        case None:
            return {"null": None}
        case bool():
            return {"bool": value}
        case Uint():
            return {"uint": str(int(value))}
        case int():
            return {"int": str(value)}
        case float():
            return {"double": _double(value)}
        case str():
            return {"string": value}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case list():
            return {"list": [encode(item) for item in value]}
        case TypeValue(name):
            return {"type": name}
        case Timestamp(nanos):
            return {"timestamp": nanos}
        case Duration(nanos):
            return {"duration": str(nanos)}
        case Optional():
            return {"optional": None if value is NONE else encode(value.value)}
        case Quantity():
            return {"quantity": str(value)}
        case QuantitySum():
            return {"quantity": str(value.quantity)}
        case Semver() | IP() | CIDR() | URL():
            return {type(value).__name__.lower(): str(value)}
        case Format(name):
            return {"format": name}
        case _:
            entries = as_map(value)
            assert entries is not None, f"a value of no type: {value!r}"
            return _sorted({"map": [[encode(decode_key(key)), encode(item)] for key, item in entries.items()]})


def normalize(expected: Any) -> Any:
    """An expected value, written as `encode` writes ours."""
    ((kind, value),) = expected.items()
    match kind:
        case "double":
            return {"double": _double(float(value.replace("Inf", "inf")))}
        case "list":
            return {"list": [normalize(item) for item in value]}
        case "map":
            return _sorted({"map": [[normalize(key), normalize(item)] for key, item in value]})
        case "optional":
            return {"optional": None if value is None else normalize(value)}
        case "quantity":
            return {"quantity": str(Quantity.parse(value))}
        case "timestamp":
            parsed = parse_timestamp(value)
            assert parsed is not None
            return {"timestamp": parsed.nanos}
        case _:
            return expected


def encode_attribute(attribute: DeviceAttribute) -> Any:
    """An attribute of a device in its JSON form."""
    fields = ("int", "bool", "string", "version")
    scalars = {name: getattr(attribute, f"{name}_value") for name in fields}
    lists = {f"{name}s": getattr(attribute, f"{name}_values") for name in fields}
    found = {name: value for name, value in (scalars | lists).items() if value is not None}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def _double(number: float) -> str:
    return "nan" if math.isnan(number) else repr(number)


def _sorted(encoded: dict[str, Any]) -> dict[str, Any]:
    return {"map": sorted(encoded["map"], key=json.dumps)}
