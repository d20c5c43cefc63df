"""The text form of quantities: reading `1.5Gi` into integers, and writing integers in canonical form.

Kubernetes has two number representations behind one type, and shows which one it chose (`AsInt64` fails for `2000m`,
`Value` overflows differently), so the reader reports it: *small* amounts are an int64 with a decimal exponent, *big*
ones are decimals of any size, rounded up to billionths.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

MAX_INT64: Final = (1 << 63) - 1
MAX_DIGITS: Final = 2000
"""Numbers from 10**MAX_DIGITS on are never written out in digits, so that `1e2000000000` costs nothing."""

NANO: Final = -9
_MAX_SMALL_DIGITS: Final = 18

FORMAT_MESSAGE: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC_MESSAGE: Final = "unable to parse numeric part of quantity"
SUFFIX_MESSAGE: Final = "unable to parse quantity's suffix"

# More permissive than the expression in the message, exactly as Kubernetes' scanner is: the number may be empty.
_PARTS: Final = re.compile(
    r"(?P<value>(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?)(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)",
    re.ASCII,
)

_DECIMAL_EXPONENTS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_EXPONENTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _BINARY_EXPONENTS.items()}


class InvalidQuantity(ValueError):
    """The text is no quantity; the message is Kubernetes'."""


class Amount(NamedTuple):
    """`unscaled * 10**scale`, in Kubernetes' small (int64) or big representation."""

    unscaled: int
    scale: int
    big: bool


class ParsedQuantity(NamedTuple):
    amount: Amount
    format: str
    text: str | None
    """The input, where Kubernetes takes it for canonical without checking; None means that it has to be formatted."""


def parse_amount(text: str) -> ParsedQuantity:
    """Read a quantity; raises InvalidQuantity."""
    if not text:
        raise InvalidQuantity(FORMAT_MESSAGE)
    if text == "0":
        return ParsedQuantity(Amount(0, 0, False), DECIMAL_SI, text)
    if len(text) > MAX_DIGITS:
        raise InvalidQuantity(f"quantities must not be longer than {MAX_DIGITS} characters")
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise InvalidQuantity(FORMAT_MESSAGE)
    whole = parts["whole"] or "0"
    fraction = parts["fraction"] or ""
    exponent, format = _interpret_suffix(parts["suffix"])
    negative = parts["sign"] == "-"
    return _parse_small(text, whole, fraction, exponent, format, negative) or _parse_big(
        parts["value"], exponent, format
    )


def _interpret_suffix(suffix: str) -> tuple[int, str]:
    """The exponent (of 2 for BinarySI, else of 10) and the format."""
    if (exponent := _DECIMAL_EXPONENTS.get(suffix)) is not None:
        return exponent, DECIMAL_SI
    if (exponent := _BINARY_EXPONENTS.get(suffix)) is not None:
        return exponent, BINARY_SI
    if suffix[0] in "eE":
        digits = suffix[1:]
        if re.fullmatch(r"[+-]?[0-9]+", digits, re.ASCII) and -MAX_INT64 - 1 <= int(digits) <= MAX_INT64:
            return _int32(int(digits)), DECIMAL_EXPONENT
    raise InvalidQuantity(SUFFIX_MESSAGE)


def _parse_small(
    text: str, whole: str, fraction: str, exponent: int, format: str, negative: bool
) -> ParsedQuantity | None:
    """The int64 representation, or None where Kubernetes' estimate says that the number may not fit."""
    digits = whole + fraction
    factor = 1
    if format == BINARY_SI:
        if fraction or 15 - len(whole) - exponent * 3 // 10 - 1 < 0:
            return None
        scale = 0
        factor = 1 << exponent
    else:
        if len(digits) > _MAX_SMALL_DIGITS:
            return None
        scale = _int32(exponent - len(fraction))
    if scale < NANO:
        return None
    number = int(digits)
    unscaled = number * factor
    if unscaled > MAX_INT64:
        return None
    if format == BINARY_SI:
        keeps_text = number & 7 != 0
    else:
        keeps_text = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    amount = Amount(-unscaled if negative else unscaled, scale, False)
    return ParsedQuantity(amount, format, text if keeps_text else None)


def _parse_big(value: str, exponent: int, format: str) -> ParsedQuantity:
    sign_and_whole, _, fraction = value.partition(".")
    digits = sign_and_whole.lstrip("+-") + fraction
    if not digits:
        raise InvalidQuantity(NUMERIC_MESSAGE)
    unscaled = int(digits)
    scale = -len(fraction)
    if format == BINARY_SI:
        unscaled <<= exponent
    else:
        scale = _int32(scale + exponent)
    if unscaled:
        unscaled, scale, _ = round_up(unscaled, scale, NANO)
    if format == BINARY_SI:
        one = 10**-scale
        if unscaled > MAX_INT64 * one:
            unscaled, scale = MAX_INT64, 0
        elif 0 < unscaled < one:
            format = DECIMAL_SI
    if value.startswith("-"):
        unscaled = -unscaled
    return ParsedQuantity(Amount(unscaled, scale, True), format, None)


def round_up(unscaled: int, scale: int, to_scale: int) -> tuple[int, int, bool]:
    """The number at exactly `to_scale`, rounded away from zero, and whether that was exact.

    A number too large to be written out in digits stays as it is.
    """
    if unscaled == 0 or scale == to_scale:
        return unscaled, to_scale, True
    if scale > to_scale:
        if scale - to_scale > 2 * MAX_DIGITS:
            return unscaled, scale, True
        return unscaled * 10 ** (scale - to_scale), to_scale, True
    magnitude = abs(unscaled)
    places = to_scale - scale
    if places > 2 * MAX_DIGITS and places > magnitude.bit_length():
        quotient, remainder = 0, 1
    else:
        quotient, remainder = divmod(magnitude, 10**places)
    if remainder:
        quotient += 1
    return quotient if unscaled > 0 else -quotient, to_scale, remainder == 0


def format_amount(amount: Amount, format: str) -> str:
    """The canonical text: no fraction, the largest suffix that fits, DecimalSI where BinarySI can't be exact."""
    unscaled, scale, _ = amount
    if unscaled == 0:
        return "0"
    if format == BINARY_SI and (whole := _whole_from_1024(unscaled, scale)) is not None:
        number, exponent = _remove_factors(whole, 1024)
        return f"{number}{_BINARY_SUFFIXES.get(exponent * 10, '')}"
    number, tens = _remove_factors(unscaled, 10)
    exponent = scale + tens
    excess = exponent % 3
    number *= 10**excess
    exponent -= excess
    if format in (DECIMAL_SI, BINARY_SI):
        # Beyond E there is no suffix, and Kubernetes prints none: 1000E reads "1".
        return f"{number}{_DECIMAL_SUFFIXES.get(exponent, '')}"
    return f"{number}e{exponent}" if exponent else str(number)


def _whole_from_1024(unscaled: int, scale: int) -> int | None:
    """The number if it is whole and at least 1024 in magnitude, so that a binary suffix can say it exactly."""
    if scale > 2 * MAX_DIGITS:
        return None
    if scale >= 0:
        whole = unscaled * 10**scale
    else:
        whole, remainder = divmod(unscaled, 10**-scale)
        if remainder:
            return None
    return whole if abs(whole) >= 1024 else None


def _remove_factors(number: int, base: int) -> tuple[int, int]:
    times = 0
    while number % base == 0:
        number //= base
        times += 1
    return number, times


def _int32(number: int) -> int:
    """Go's conversion to int32, which wraps around."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)
