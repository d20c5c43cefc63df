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


class _Seen:
    """What one constraint sees of a node."""

    __slots__ = ("answers", "classes", "options")

    def __init__(self, table: Table, constraint: Constraint) -> None:
        self.options: Final = frozenset(
            option.number for option in table.options if constraint.covers(option.alternative)
        )
        """The options that it covers, by number; of all claims that have this constraint."""
        self.classes: Final = [table.view.projected(each, constraint.attributes) for each in table.classes]
        self.answers: Final = constraint.remembered.setdefault(table.view, {})


class SetConstraints:
    def __init__(self, table: Table, statistics: Statistics) -> None:
        self._table: Final = table
        self._statistics: Final = statistics
        self._seen: Final[dict[Constraint, _Seen]] = {}

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
        seen = self._seen.get(constraint)
        if seen is None:
            seen = self._seen[constraint] = _Seen(table, constraint)
        covered = seen.options
        chosen = [
            position
            for option, position in picks
            if option.number in covered and table.slots[option.slot].claim == slot.claim
        ]
        if not chosen:
            return True
        classes = tuple([seen.classes[position] for position in chosen])
        answer = seen.answers.get(classes)
        if answer is None:
            answer = seen.answers[classes] = self._evaluate(constraint, chosen)
        if isinstance(answer, CelError):
            return Stop(slot.claim, constraint=constraint.index, failure=Failure(answer), devices=tuple(chosen))
        return answer

    def _evaluate(self, constraint: Constraint, chosen: Sequence[int]) -> bool | CelError:
        assert constraint.expression is not None
        values = [self._table.view.value(self._table.classes[position]) for position in chosen]
        self._statistics.constraint_evaluations += 1
        try:
            return constraint.expression.matches_set(values)
        except CelError as error:
            return error
