"""Exact resource quantities (`40Gi`, `100m`, `1e3`): parsed once, compared as integers, printed as Kubernetes does."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Final

from dray.api.quantity_text import (
    BINARY_SI,
    DECIMAL_EXPONENT,
    DECIMAL_SI,
    MAX_DIGITS,
    MAX_INT64,
    NANO,
    Amount,
    InvalidQuantity,
    format_amount,
    parse_amount,
    round_up,
)
from dray.api.text_cache import cached_by_text

__all__ = ["BINARY_SI", "DECIMAL_EXPONENT", "DECIMAL_SI", "InvalidQuantity", "Quantity", "parse_quantity"]

MILLI: Final = -3
_MIN_INT64: Final = -MAX_INT64 - 1
_HUGE: Final = int(10 ** (MAX_DIGITS + 9))
_HALF_HUGE: Final = _HUGE // 2
_SMALL_POWERS: Final = tuple(float(f"1e{exponent}") for exponent in range(32))
_LARGE_POWERS: Final = tuple(float(f"1e{exponent}") for exponent in range(0, 309, 32))
_NEGATIVE_POWERS: Final = tuple(float(f"1e-{exponent}") for exponent in range(0, 321, 32))


class Quantity:
    """An immutable, exact number with the format in which it is printed.

    `nano` is the number in billionths, exactly: the fast way to compare and add many quantities. Only for numbers from
    10**2000 on is it capped; the operators stay exact there. Equality, order and hash are those of the number; the
    format doesn't count. Arithmetic follows Kubernetes in every detail that can be seen: a sum with zero takes the
    format of the other operand, and `value` wraps around or gives zero where Go's integers overflow.
    """

    ZERO: ClassVar[Quantity]
    __slots__ = ("_amount", "_text", "format", "nano")

    def __init__(
        self, amount: Amount, format: str = DECIMAL_SI, text: str | None = None, nano: int | None = None
    ) -> None:
        self._amount: Final = amount
        self._text = text
        self.format: Final = format
        self.nano: Final = _in_nanos(amount) if nano is None else nano

    @staticmethod
    def parse(text: str) -> Quantity:
        """Read the text form; raises InvalidQuantity, a ValueError. Texts seen before cost a lookup."""
        return parse_quantity(text)

    @classmethod
    def parse_json(cls, literal: str) -> Quantity:
        """Read a raw JSON value: a string, a number as it was written, or null. Escapes in strings are not decoded."""
        if literal == "null":
            return cls.ZERO
        if len(literal) >= 2 and literal[0] == literal[-1] == '"':
            literal = literal[1:-1]
        return parse_quantity(literal.strip())

    @classmethod
    def of(cls, value: int, format: str = DECIMAL_SI, *, scale: int = 0) -> Quantity:
        """`value * 10**scale`; the scale is at least -9 (billionths)."""
        return cls(Amount(value, scale, not _MIN_INT64 <= value <= MAX_INT64), format)

    def __str__(self) -> str:
        if self._text is None:
            self._text = format_amount(self._amount, self.format)
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __reduce__(self) -> tuple[type[Quantity], tuple[Amount, str, str | None]]:
        return Quantity, (self._amount, self.format, self._text)

    @property
    def canonical(self) -> str:
        """The canonical text. `str()` differs from it where the input was close enough to be kept."""
        return format_amount(self._amount, self.format)

    # Comparison

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1."""
        mine, others = self.nano, other.nano
        if mine != others:
            return 1 if mine > others else -1
        if -_HUGE < mine < _HUGE:
            return 0
        return _compare_huge(self._amount, other._amount)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.compare(other) == 0

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano or self.compare(other) < 0

    def __le__(self, other: Quantity) -> bool:
        return self.nano < other.nano or self.compare(other) <= 0

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano or self.compare(other) > 0

    def __ge__(self, other: Quantity) -> bool:
        return self.nano > other.nano or self.compare(other) >= 0

    def __bool__(self) -> bool:
        return self.nano != 0

    @property
    def is_zero(self) -> bool:
        return self.nano == 0

    @property
    def sign(self) -> int:
        return (self.nano > 0) - (self.nano < 0)

    # Arithmetic

    def __add__(self, other: Quantity) -> Quantity:
        format = self.format if self.nano else other.format
        mine, others = self._amount, other._amount
        if not mine.big and not others.big:
            if others.unscaled == 0:
                return Quantity(mine, format, nano=self.nano)
            if mine.unscaled == 0:
                return Quantity(others, format, nano=other.nano)
        exactly_known = -_HALF_HUGE < self.nano < _HALF_HUGE and -_HALF_HUGE < other.nano < _HALF_HUGE
        return Quantity(_add(mine, others), format, nano=self.nano + other.nano if exactly_known else None)

    def __sub__(self, other: Quantity) -> Quantity:
        return self + -other

    def __neg__(self) -> Quantity:
        unscaled, scale, big = self._amount
        # The smallest int64 has no counterpart.
        return Quantity(Amount(-unscaled, scale, big or unscaled == _MIN_INT64), self.format, nano=-self.nano)

    def __mul__(self, factor: int) -> Quantity:
        return self.multiply(factor)[0]

    def multiply(self, factor: int) -> tuple[Quantity, bool]:
        """The product, and whether Kubernetes calls it exact (its digits fit an int64)."""
        amount = self._amount
        product = amount.unscaled * factor
        fits = _MIN_INT64 <= product <= MAX_INT64
        if not amount.big and fits:
            if product == 0:
                return Quantity(Amount(0, 0 if amount.unscaled else amount.scale, False), self.format), True
            if _scaled_up_fits(product, amount.scale):
                return Quantity(Amount(product, amount.scale, False), self.format), True
        return Quantity(Amount(product, amount.scale, True), self.format), fits

    def round_up(self, scale: int) -> tuple[Quantity, bool]:
        """Rounded away from zero to a multiple of 10**scale, and whether that was exact."""
        amount = self._amount
        if not amount.big and amount.scale >= scale:
            return self, True
        unscaled, new_scale, exact = round_up(amount.unscaled, amount.scale, scale)
        return Quantity(Amount(unscaled, new_scale, amount.big), self.format), exact

    # Conversion

    @property
    def value(self) -> int:
        """Rounded away from zero to a whole number, as an int64 that overflows as Go's does."""
        return self.scaled_value(0)

    @property
    def milli_value(self) -> int:
        """Like `value`, in thousandths."""
        return self.scaled_value(MILLI)

    def scaled_value(self, scale: int) -> int:
        unscaled, own_scale, big = self._amount
        if big:
            return _scaled_big(unscaled, own_scale - scale)
        return _scaled_small(unscaled, own_scale - scale)

    def as_int64(self) -> int | None:
        """The number if Kubernetes' quick conversion gives it: it fits, and was written without fraction or `m`."""
        unscaled, scale, big = self._amount
        if big or scale < 0 or not _scaled_up_fits(unscaled, scale):
            return None
        return unscaled * _power(scale) if unscaled else 0

    def as_fraction(self) -> Fraction:
        """The exact number. Raises OverflowError from 10**2000 on."""
        if abs(self.nano) >= _HUGE:
            raise OverflowError(f"{self} is too large to be written out")
        return Fraction(self.nano, 10**9)

    def as_decimal(self) -> Decimal:
        """The exact number, with the digits after the point that Kubernetes keeps."""
        unscaled, scale, _ = self._amount
        digits = tuple(map(int, str(abs(unscaled))))
        return Decimal((int(unscaled < 0), digits, scale))

    def approximate_float(self) -> float:
        """What Kubernetes and CEL's asApproximateFloat give; can be off in the last digit."""
        unscaled, scale, _ = self._amount
        return _to_float(unscaled) * _power_of_ten(scale) if scale else _to_float(unscaled)

    def __float__(self) -> float:
        """The nearest float."""
        unscaled, scale, _ = self._amount
        if scale > 2 * MAX_DIGITS:
            return _to_float(unscaled) * float("inf") if unscaled else 0.0
        if scale >= 0:
            return _to_float(unscaled * _power(scale))
        return _to_float(_divide_to_bits(unscaled, _power(-scale), max(unscaled.bit_length(), 64)))


@cached_by_text
def parse_quantity(text: str) -> Quantity:
    """Read the text form; raises InvalidQuantity, a ValueError."""
    amount, format, kept = parse_amount(text)
    return Quantity(amount, format, kept)


_POWERS: Final = tuple(int(10**exponent) for exponent in range(64))


def _power(exponent: int) -> int:
    """10**exponent, for exponents of at least 0."""
    return _POWERS[exponent] if exponent < 64 else int(10**exponent)


def _in_nanos(amount: Amount) -> int:
    unscaled, scale, _ = amount
    if unscaled == 0:
        return 0
    if scale <= MAX_DIGITS:
        nano = unscaled * _power(scale - NANO)
        if -_HUGE < nano < _HUGE:
            return nano
    return _HUGE if unscaled > 0 else -_HUGE


def _compare_huge(mine: Amount, others: Amount) -> int:
    """Compares two numbers of the same sign by their count of digits, and only then digit by digit."""
    sign = 1 if mine.unscaled > 0 else -1
    my_digits, others_digits = str(abs(mine.unscaled)), str(abs(others.unscaled))
    my_size, others_size = len(my_digits) + mine.scale, len(others_digits) + others.scale
    if my_size != others_size:
        return sign if my_size > others_size else -sign
    width = max(len(my_digits), len(others_digits))
    left, right = my_digits.ljust(width, "0"), others_digits.ljust(width, "0")
    return sign * ((left > right) - (left < right))


def _add(mine: Amount, others: Amount) -> Amount:
    """The sum at the finer of both scales; it stays small only if both were and no step overflows."""
    distance = mine.scale - others.scale
    if distance < 0:
        mine, others, distance = others, mine, -distance
    big = mine.big or others.big
    if distance > 2 * MAX_DIGITS and mine.unscaled:
        # The other is beyond the last digit that we write out; Kubernetes would exhaust its memory here.
        return Amount(mine.unscaled, mine.scale, big)
    raised = mine.unscaled * _power(distance) if mine.unscaled else 0
    total = raised + others.unscaled
    fits = _MIN_INT64 <= raised <= MAX_INT64 and _MIN_INT64 <= total <= MAX_INT64
    return Amount(total, others.scale, big or not fits)


def _scaled_up_fits(unscaled: int, scale: int) -> bool:
    if scale <= 0 or unscaled == 0:
        return True
    return scale < 20 and _MIN_INT64 < unscaled * _power(scale) <= MAX_INT64


def _scaled_small(unscaled: int, exponent: int) -> int:
    """`unscaled * 10**exponent` in int64 arithmetic as Kubernetes does it, overflow included."""
    if exponent <= 0:
        return round_up(unscaled, exponent, 0)[0]
    if _scaled_up_fits(unscaled, exponent):
        return unscaled * _power(exponent) if unscaled else 0
    # One multiplication wraps around; the loop for other exponents stops at the first overflow and gives zero.
    if exponent in (1, 2, 3, 6, 9) and unscaled != _MIN_INT64:
        return _wrap(unscaled * _power(exponent))
    return 0


def _scaled_big(unscaled: int, exponent: int) -> int:
    """`unscaled * 10**exponent` of a decimal, rounded up, then cut down to 64 bits."""
    if exponent >= 0:
        power = _power(exponent) if exponent < 19 else _MIN_INT64
        return _wrap(_wrap(unscaled) * power)
    divisor = _power(-exponent)
    if unscaled < MAX_INT64 and -exponent < 19:
        # Every negative number comes here, also one that doesn't fit: Kubernetes 1.37 checks the upper bound only.
        wrapped = _wrap(unscaled)
        quotient, remainder = divmod(abs(wrapped), divisor)
        if wrapped < 0:
            quotient = -quotient
    else:
        quotient, remainder = divmod(unscaled, divisor)
    # Also for negative numbers, where this is not away from zero: Kubernetes' arithmetic, kept as it is.
    return _wrap(_wrap(quotient) + (remainder != 0))


def _wrap(number: int) -> int:
    """Go's conversion to int64."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _to_float(number: int | Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _power_of_ten(exponent: int) -> float:
    """Go's math.Pow10, which is one product of two table entries."""
    if 0 <= exponent <= 308:
        return _LARGE_POWERS[exponent // 32] * _SMALL_POWERS[exponent % 32]
    if -323 <= exponent < 0:
        return _NEGATIVE_POWERS[-exponent // 32] / _SMALL_POWERS[-exponent % 32]
    return 0.0 if exponent < 0 else float("inf")


def _divide_to_bits(dividend: int, divisor: int, bits: int) -> Fraction:
    """The quotient rounded to a mantissa of so many bits, ties to even."""
    exact = Fraction(dividend, divisor)
    if not exact:
        return exact
    shift = bits - (abs(exact.numerator).bit_length() - exact.denominator.bit_length())
    for candidate in (shift, shift - 1):
        scaled = exact * (1 << candidate) if candidate >= 0 else exact / (1 << -candidate)
        rounded = round(scaled)
        if abs(rounded).bit_length() <= bits or candidate != shift:
            return Fraction(rounded) / (Fraction(2) ** candidate)
    raise AssertionError("the second candidate always fits")


Quantity.ZERO = Quantity(Amount(0, 0, False), "")
