"""Type conversions: `bool bytes double duration dyn int string timestamp type uint`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, cast

from dray.cel.arithmetic import MAX_TIMESTAMP, MIN_TIMESTAMP
from dray.cel.ast import Uint
from dray.cel.errors import EvaluationError
from dray.cel.instants import format_duration, format_timestamp, parse_duration, parse_timestamp
from dray.cel.numbers import format_double, parse_double, parse_int, parse_uint
from dray.cel.values import (
    CIDR,
    INT_MAX,
    IP,
    Duration,
    Timestamp,
    TypeValue,
    Value,
    type_name,
)

_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))
_SECOND: Final = 10**9


def _impossible(source: str, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


def string_to_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _impossible("string", "bool")


def string_to_bytes(text: str) -> bytes:
    return text.encode()


def bytes_to_string(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def string_to_double(text: str) -> float:
    number = parse_double(text)
    if number is None:
        raise _impossible("string", "double")
    return number


def int_to_double(number: int) -> float:
    return float(number)


def string_to_int(text: str) -> int:
    number = parse_int(text)
    if number is None:
        raise _impossible("string", "int")
    return number


def double_to_int(number: float) -> int:
    # The bounds themselves are out: cel-go can't tell them from numbers beyond.
    if not -(2.0**63) < number < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(number)


def uint_to_int(number: Uint) -> int:
    if number > INT_MAX:
        raise EvaluationError("integer overflow")
    return int(number)


def timestamp_to_int(instant: Timestamp) -> int:
    return instant.nanos // _SECOND


def duration_to_int(duration: Duration) -> int:
    return duration.nanos


def string_to_uint(text: str) -> Uint:
    number = parse_uint(text)
    if number is None:
        raise _impossible("string", "uint")
    return number


def double_to_uint(number: float) -> Uint:
    if math.isnan(number) or not 0 <= number < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(int(number))


def int_to_uint(number: int) -> Uint:
    if number < 0:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)


def string_to_duration(text: str) -> Duration:
    nanos = parse_duration(text)
    if nanos is None:
        raise _impossible("string", "google.protobuf.Duration")
    return Duration(nanos)


def string_to_timestamp(text: str) -> Timestamp:
    parsed = parse_timestamp(text)
    if parsed is None:
        raise _impossible("string", "google.protobuf.Timestamp")
    if not MIN_TIMESTAMP <= parsed.nanos <= MAX_TIMESTAMP:
        raise EvaluationError("timestamp overflow")
    return parsed


def int_to_timestamp(seconds: int) -> Timestamp:
    nanos = seconds * _SECOND
    if not MIN_TIMESTAMP <= nanos <= MAX_TIMESTAMP:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanos)


_TO_STRING: Final[dict[type, Callable[..., str]]] = {
    str: lambda text: cast("str", text),
    bool: lambda value: "true" if value else "false",
    int: str,
    Uint: lambda number: str(int(number)),
    float: format_double,
    bytes: bytes_to_string,
    Timestamp: format_timestamp,
    Duration: format_duration,
    IP: str,
    CIDR: str,
}


def to_string(value: Value) -> str:
    """`string(value)`."""
    convert = _TO_STRING.get(type(value))
    if convert is None:
        raise _impossible(type_name(value), "string")
    return convert(value)


def identity(value: Value) -> Value:
    return value


def type_of_value(value: Value) -> TypeValue:
    return TypeValue(type_name(value))


OVERLOADS: Final[dict[str, Callable[..., Value]]] = {
    "bool_to_bool": identity,
    "string_to_bool": string_to_bool,
    "bytes_to_bytes": identity,
    "string_to_bytes": string_to_bytes,
    "double_to_double": identity,
    "int64_to_double": int_to_double,
    "uint64_to_double": int_to_double,
    "string_to_double": string_to_double,
    "duration_to_duration": identity,
    "string_to_duration": string_to_duration,
    "int64_to_int64": identity,
    "double_to_int64": double_to_int,
    "duration_to_int64": duration_to_int,
    "string_to_int64": string_to_int,
    "timestamp_to_int64": timestamp_to_int,
    "uint64_to_int64": uint_to_int,
    "string_to_string": identity,
    "bool_to_string": to_string,
    "bytes_to_string": bytes_to_string,
    "double_to_string": to_string,
    "duration_to_string": to_string,
    "int64_to_string": to_string,
    "timestamp_to_string": to_string,
    "uint64_to_string": to_string,
    "ip_to_string": to_string,
    "cidr_to_string": to_string,
    "timestamp_to_timestamp": identity,
    "int64_to_timestamp": int_to_timestamp,
    "string_to_timestamp": string_to_timestamp,
    "uint64_to_uint64": identity,
    "double_to_uint64": double_to_uint,
    "int64_to_uint64": int_to_uint,
    "string_to_uint64": string_to_uint,
    "to_dyn": identity,
    "type": type_of_value,
}
