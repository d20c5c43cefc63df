"""Which earlier picks a dead end depends on.

If a branch fails, and the picks of some slot had no part in that, then other picks for that slot fail just the same:
the search goes straight back to a slot that had a part. A blame is a mask of slots: it may name too many, never too
few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dray.allocator.frames import Pick
from dray.allocator.tables import Table


class Blame:
    def __init__(self, table: Table, picks: Sequence[Pick]) -> None:
        self._table: Final = table
        self._picks: Final = picks

    def of_slot(self, number: int) -> int:
        """The slots that decided what this slot can have, and the slot itself."""
        table = self._table
        wanted, sets = table.wanted[number], table.drawn_sets[number]
        found = table.linked[number] | 1 << number
        for option, position in self._picks:
            slot = 1 << option.slot
            if found & slot:
                continue
            if wanted >> position & 1 or (
                sets
                and table.drawing >> position & 1
                and any(sets >> bucket & 1 for bucket, _ in table.draws[position])
            ):
                found |= slot
        return found

    def of_rest(self, number: int) -> int:
        """The slots that decided what this slot and all later ones can have."""
        found = 0
        for later in range(number, len(self._table.slots)):
            found |= self.of_slot(later)
        return found
