"""A second budget, for work that Kubernetes' costs leave out.

Kubernetes charges 1 for `a + b` of lists or of dynamically typed strings, nothing for an iteration of `exists_one`, and
compares nested lists for the price of the outermost one. Such expressions could run for hours or fill the memory
at a cost that is far below the limit. The meter counts that work, and ends the evaluation as if the cost limit were
passed. Its limit is so high that no expression meets it that a person would write.
"""

from __future__ import annotations

from typing import Final

from dray.cel.errors import CostLimitExceeded

WORK_LIMIT: Final = 1_000_000
"""One unit is about what one element of a list costs to look at or copy: this many take well below a second."""
CHARACTERS_PER_UNIT: Final = 16


class Meter:
    """Counts work and stops it; `limit` is in units."""

    __slots__ = ("limit", "work")

    def __init__(self, limit: int = WORK_LIMIT) -> None:
        self.work = 0
        self.limit = limit

    def spend(self, units: int) -> None:
        self.work += units
        if self.work > self.limit:
            raise CostLimitExceeded

    def spend_text(self, length: int) -> None:
        """Spends what a text of `length` characters costs to look at or copy."""
        if length > CHARACTERS_PER_UNIT:
            self.spend(length // CHARACTERS_PER_UNIT)


class FreeMeter(Meter):
    """For code whose work is known to be small before it starts."""

    __slots__ = ()

    def spend(self, units: int) -> None:
        """Counts nothing."""

    def spend_text(self, length: int) -> None:
        """Counts nothing."""


FREE: Final = FreeMeter()
