"""Numbers and text: how Go reads and writes them."""

from __future__ import annotations

import math
import re
from typing import Final

from dray.cel.ast import Uint
from dray.cel.values import INT_MAX, INT_MIN, UINT_MAX, Value

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED: Final = re.compile(r"[0-9]+", re.ASCII)
_DECIMAL: Final = re.compile(
    r"[+-]?(?:[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)?|\.[0-9](?:_?[0-9])*)(?:[eE][+-]?[0-9](?:_?[0-9])*)?",
    re.ASCII,
)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX]_?(?:[0-9a-fA-F](?:_?[0-9a-fA-F])*(?:\.(?:[0-9a-fA-F](?:_?[0-9a-fA-F])*)?)?|\.[0-9a-fA-F](?:_?[0-9a-fA-F])*)"
    r"[pP][+-]?[0-9](?:_?[0-9])*",
    re.ASCII,
)
_SPECIAL: Final = re.compile(r"[+-]?(?:inf|infinity)|nan", re.ASCII | re.IGNORECASE)
_MAX_DIGITS: Final = 400
"""No 64-bit number needs more; Python refuses to read integers of thousands of digits."""


def parse_int(text: str) -> int | None:
    """A 64-bit integer in decimal digits, None if it isn't one."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = _bounded(text.lstrip("+-"))
    if text[0] == "-":
        number = -number
    return number if INT_MIN <= number <= INT_MAX else None


def parse_uint(text: str) -> Uint | None:
    if _UNSIGNED.fullmatch(text) is None:
        return None
    number = _bounded(text)
    return Uint(number) if number <= UINT_MAX else None


def _bounded(digits: str) -> int:
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) <= _MAX_DIGITS else UINT_MAX + 1


def parse_double(text: str) -> float | None:
    """Go's ParseFloat: also hexadecimal digits, underscores between digits, `inf` and `nan`; None if out of range."""
    if _DECIMAL.fullmatch(text):
        number = float(text.replace("_", ""))
    elif _HEXADECIMAL.fullmatch(text):
        try:
            number = float.fromhex(text.replace("_", ""))
        except OverflowError:
            return None
    elif _SPECIAL.fullmatch(text):
        return float(text)
    else:
        return None
    return number if math.isfinite(number) else None


def format_double(number: float) -> str:
    """Go's `%g`: the shortest text that reads back the same; with an exponent below 10**-4 and from 10**6 on."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    sign, digits, point = _shortest(number)
    exponent = point - 1
    if exponent < -4 or exponent >= 6:
        return sign + _with_exponent(digits, exponent)
    return sign + _without_exponent(digits, point)


def format_seconds(number: float) -> str:
    """Go's shortest `%f`: never an exponent."""
    sign, digits, point = _shortest(number)
    return sign + _without_exponent(digits, point)


def _shortest(number: float) -> tuple[str, str, int]:
    """Sign, digits without trailing zeros, and where the decimal point is."""
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    mantissa, _, exponent = f"{abs(number)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) - (len(whole + fraction) - len(digits)) + int(exponent or "0")
    digits = digits.rstrip("0")
    return (sign, digits, point) if digits else (sign, "0", 1)


def _with_exponent(digits: str, exponent: int) -> str:
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _without_exponent(digits: str, point: int) -> str:
    if point <= 0:
        return f"0.{'0' * -point}{digits}"
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


def twins(value: Value) -> list[Value]:
    """A primitive and the numbers of other types that a constant set holds for it, as cel-go builds such sets.

    From 2**53 on an integer takes the double next to it along.
    """
    found = [value]
    if type(value) is float:
        if value.is_integer() and INT_MIN < value < INT_MAX:
            found.append(int(value))
        if value.is_integer() and 0 <= value < UINT_MAX:
            found.append(Uint(int(value)))
    elif type(value) is int:
        found.append(float(value))
        if value >= 0:
            found.append(Uint(value))
    elif type(value) is Uint:
        found.append(float(value))
        if value <= INT_MAX:
            found.append(int(value))
    return found
