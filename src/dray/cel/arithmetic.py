"""The operators `+ - * / %` and unary `-`. Each raises EvaluationError for operands that it has no meaning for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, cast

from dray.cel.ast import Uint
from dray.cel.errors import EvaluationError
from dray.cel.meter import Meter
from dray.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    ConcatList,
    Duration,
    MutableList,
    Timestamp,
    Value,
)

MIN_TIMESTAMP: Final = -62_135_596_800 * 10**9
MAX_TIMESTAMP: Final = 253_402_300_799 * 10**9 + 999_999_999
_NO_SUCH_OVERLOAD: Final = "no such overload"


def checked_int(number: int) -> int:
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvaluationError("integer overflow")


def checked_uint(number: int) -> Uint:
    if 0 <= number <= UINT_MAX:
        return Uint(number)
    raise EvaluationError("unsigned integer overflow")


def checked_duration(nanos: int) -> Duration:
    if INT_MIN <= nanos <= INT_MAX:
        return Duration(nanos)
    raise EvaluationError("duration overflow")


def checked_timestamp(nanos: int, offset: int) -> Timestamp:
    if MIN_TIMESTAMP <= nanos <= MAX_TIMESTAMP:
        return Timestamp(nanos, offset)
    raise EvaluationError("timestamp overflow")


def add(meter: Meter, left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return checked_int(cast("int", left) + cast("int", right))
        if kind is str:
            meter.spend_text(len(cast("str", left)) + len(cast("str", right)))
            return cast("str", left) + cast("str", right)
        if kind is float:
            return cast("float", left) + cast("float", right)
        if kind is Uint:
            return checked_uint(cast("int", left) + cast("int", right))
        if kind is bytes:
            meter.spend_text(len(cast("bytes", left)) + len(cast("bytes", right)))
            return cast("bytes", left) + cast("bytes", right)
    if isinstance(left, list) and isinstance(right, list):
        return add_lists(meter, left, right)
    match left, right:
        case Duration(nanos), Duration(other):
            return checked_duration(nanos + other)
        case (Timestamp(nanos, offset), Duration(other)) | (Duration(other), Timestamp(nanos, offset)):
            return checked_timestamp(nanos + other, offset)
    raise EvaluationError(_NO_SUCH_OVERLOAD)


def add_lists(meter: Meter, left: list[Value], right: list[Value]) -> list[Value]:
    if type(left) is MutableList:
        meter.spend(len(right))
        left.extend(right)
        return left
    if not left:
        return right
    if not right:
        return left
    meter.spend(len(left) + len(right))
    joined = ConcatList(left)
    joined.extend(right)
    return joined


def subtract(meter: Meter, left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return checked_int(cast("int", left) - cast("int", right))
        if kind is float:
            return cast("float", left) - cast("float", right)
        if kind is Uint:
            return checked_uint(int(cast("int", left)) - int(cast("int", right)))
    match left, right:
        case Duration(nanos), Duration(other):
            return checked_duration(nanos - other)
        case Timestamp(nanos, _), Timestamp(other, _):
            return checked_duration(nanos - other)
        case Timestamp(nanos, offset), Duration(other):
            return checked_timestamp(nanos - other, offset)
    raise EvaluationError(_NO_SUCH_OVERLOAD)


def multiply(meter: Meter, left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return checked_int(cast("int", left) * cast("int", right))
        if kind is float:
            return cast("float", left) * cast("float", right)
        if kind is Uint:
            return checked_uint(cast("int", left) * cast("int", right))
    raise EvaluationError(_NO_SUCH_OVERLOAD)


def divide(meter: Meter, left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is float:
            return _divide_doubles(cast("float", left), cast("float", right))
        if kind is int or kind is Uint:
            dividend, divisor = int(cast("int", left)), int(cast("int", right))
            if divisor == 0:
                raise EvaluationError("division by zero")
            quotient = abs(dividend) // abs(divisor)
            if kind is Uint:
                return Uint(quotient)
            return checked_int(-quotient if (dividend < 0) != (divisor < 0) else quotient)
    raise EvaluationError(_NO_SUCH_OVERLOAD)


def _divide_doubles(dividend: float, divisor: float) -> float:
    if divisor:
        return dividend / divisor
    if not dividend or math.isnan(dividend):
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def modulo(meter: Meter, left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right) and (kind is int or kind is Uint):
        dividend, divisor = int(cast("int", left)), int(cast("int", right))
        if divisor == 0:
            raise EvaluationError("modulus by zero")
        if dividend == INT_MIN and divisor == -1:
            raise EvaluationError("integer overflow")
        remainder = abs(dividend) % abs(divisor)
        if kind is Uint:
            return Uint(remainder)
        return -remainder if dividend < 0 else remainder
    raise EvaluationError(_NO_SUCH_OVERLOAD)


def negate(meter: Meter, value: Value) -> Value:
    if type(value) is int:
        return checked_int(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return checked_duration(-value.nanos)
    raise EvaluationError(_NO_SUCH_OVERLOAD)


OPERATORS: Final[dict[str, Callable[[Meter, Value, Value], Value]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
}
