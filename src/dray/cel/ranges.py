"""Ranges of costs and sizes: pairs (least, most) of 64-bit numbers that stop at the largest one.

Plain tuples and functions rather than a class, because an estimate makes hundreds of them.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

Range: TypeAlias = tuple[int, int]

MOST: Final = 2**64 - 1
_MOST_AS_FLOAT: Final = float(MOST)

ZERO: Final[Range] = (0, 0)
ONE: Final[Range] = (1, 1)
UNKNOWN: Final[Range] = (0, MOST)


def plus(left: Range, right: Range) -> Range:
    least, most = left[0] + right[0], left[1] + right[1]
    return (least if least < MOST else MOST, most if most < MOST else MOST)


def times(left: Range, right: Range) -> Range:
    return (min(left[0] * right[0], MOST), min(left[1] * right[1], MOST))


def union(left: Range, right: Range) -> Range:
    return (min(left[0], right[0]), max(left[1], right[1]))


def scaled(range_: Range, factor: float) -> Range:
    """Both bounds times `factor`, rounded up, computed in doubles as cel-go does."""
    return (scale(range_[0], factor), scale(range_[1], factor))


def scale(number: int, factor: float) -> int:
    as_float = float(number)
    if as_float > 0 and factor > 0 and as_float > _MOST_AS_FLOAT / factor:
        return MOST
    return min(math.ceil(as_float * factor), MOST)


def wrap(number: int) -> int:
    """The number modulo 2^64, where upstream computes without a check."""
    return number & MOST
