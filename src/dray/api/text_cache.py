"""Remembers what was computed from a text: names, versions and quantities repeat endlessly in a cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

MAX_ENTRIES: Final = 1 << 15
MAX_LENGTH: Final = 256
"""Longer texts are rare, mostly wrong, and could fill the memory; they are computed anew."""

Result = TypeVar("Result")


def cached_by_text(function: Callable[[str], Result]) -> Callable[[str], Result]:
    """Keep the most recently used answers of a pure function of one text."""
    remembered = lru_cache(maxsize=MAX_ENTRIES)(function)

    @wraps(function)
    def lookup(text: str) -> Result:
        return remembered(text) if len(text) <= MAX_LENGTH else function(text)

    return lookup
