"""Messages that an expression may create: the wrapper types, Duration and Timestamp."""

from __future__ import annotations

from typing import Final

from dray.cel.arithmetic import checked_duration, checked_timestamp
from dray.cel.ast import Uint
from dray.cel.errors import EvaluationError
from dray.cel.values import Value

_SECOND: Final = 10**9
_DEFAULTS: Final[dict[str, Value]] = {
    "google.protobuf.BoolValue": False,
    "google.protobuf.BytesValue": b"",
    "google.protobuf.DoubleValue": 0.0,
    "google.protobuf.FloatValue": 0.0,
    "google.protobuf.Int32Value": 0,
    "google.protobuf.Int64Value": 0,
    "google.protobuf.StringValue": "",
    "google.protobuf.UInt32Value": Uint(0),
    "google.protobuf.UInt64Value": Uint(0),
}
_RANGES: Final = {
    "google.protobuf.Int32Value": range(-(1 << 31), 1 << 31),
    "google.protobuf.UInt32Value": range(1 << 32),
}


def make_message(type_name: str, fields: dict[str, Value]) -> Value:
    """The value of `type_name{...}`: CEL has plain values for all types that can be made."""
    match type_name:
        case "google.protobuf.Duration":
            return checked_duration(_number(fields, "seconds") * _SECOND + _number(fields, "nanos"))
        case "google.protobuf.Timestamp":
            return checked_timestamp(_number(fields, "seconds") * _SECOND + _number(fields, "nanos"), 0)
    if type_name not in _DEFAULTS:
        raise EvaluationError(f"unknown type '{type_name}'")
    default = _DEFAULTS[type_name]
    value = fields.get("value", default)
    if type(value) is not type(default):
        raise EvaluationError(f"unsupported field type for {type_name}.value")
    if type_name in _RANGES and value not in _RANGES[type_name]:
        raise EvaluationError(f"value of {type_name} is out of range")
    return value


def _number(fields: dict[str, Value], name: str) -> int:
    value = fields.get(name, 0)
    if type(value) is not int:
        raise EvaluationError(f"unsupported type of field '{name}'")
    return value
