"""CEL constraints (KEP-5254): expressions over the whole set of devices that a claim's requests get.

They aren't monotonic, so they are evaluated on full sets only. Devices that agree on everything the expression reads
look the same to it: a set is remembered by the classes of its devices, in the order in which they were chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dray.allocator.constraints import Constraint
from dray.allocator.frames import Pick
from dray.allocator.requests import Failure
from dray.allocator.selectors import CelError
from dray.allocator.statistics import Statistics
from dray.allocator.tables import Slot, Stop, Table


class SetConstraints:
    def __init__(self, table: Table, statistics: Statistics) -> None:
        self._table: Final = table
        self._statistics: Final = statistics

    def slots_of(self, slot: Slot, constraint: Constraint) -> int:
        """The slots whose picks decide whether the constraint holds, as a mask."""
        mask = 1 << slot.number
        for other in self._table.slots[: slot.number]:
            if other.claim == slot.claim and any(constraint.covers(option.alternative) for option in other.options):
                mask |= 1 << other.number
        return mask

    def check(self, slot: Slot, constraint: Constraint, picks: Sequence[Pick]) -> bool | Stop:
        """Whether the devices picked for the constraint's requests satisfy it; why not, if that can't be told.

        A constraint that covers none of the subrequests that were chosen has nothing to say.
        """
        table = self._table
        chosen = [
            pick.position
            for pick in picks
            if table.slots[pick.option.slot].claim == slot.claim and constraint.covers(pick.option.alternative)
        ]
        if not chosen:
            return True
        assert constraint.expression is not None
        classes = tuple([table.view.projected(table.classes[each], constraint.attributes) for each in chosen])
        known = constraint.remembered.setdefault(table.view, {})
        answer = known.get(classes)
        if answer is None:
            values = [table.view.value(table.classes[each]) for each in chosen]
            try:
                self._statistics.constraint_evaluations += 1
                answer = constraint.expression.matches_set(values)
            except CelError as error:
                answer = error
            known[classes] = answer
        if isinstance(answer, CelError):
            return Stop(slot.claim, constraint=constraint.index, failure=Failure(answer), devices=tuple(chosen))
        return answer
