"""The search: the first solution in Kubernetes' order, without Kubernetes' work.

Kubernetes fills one slot (request) after the other; in a slot it tries one option (subrequest) after the other, and for
an option all combinations of devices in the order of the devices. The first complete solution wins. We walk the same
tree in the same order, so the first solution we meet is the same one; we only leave out branches without a solution:

    too few       not enough devices are left for the slots that are still open (see `outlook`)
    twins         after a device failed, devices that nothing can tell from it fail too (see `symmetry`)
    dead ends     what failed once fails again, if all it depends on is as it was (see `symmetry`)
    no part       slots that had no part in a failure are skipped on the way back (see `blame`)

Leaving out branches must not hide errors. Kubernetes ends with an error when it looks at a device whose selector fails,
so a branch is left out only if no such device can be met in it; the walk is `safe` there. Elsewhere every device is
tried in order, and since the innermost loop soon reaches the device at fault, that doesn't take long.

The state after a pick is a new value; going back means to drop it. The walk ends because every frame only moves
forward over a finite list of options or devices. Frames are kept on a list of our own, as claims can be large.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from dray.allocator.blame import Blame
from dray.allocator.errors import DeadlineExceeded
from dray.allocator.frames import (
    EVERY_SLOT,
    Frame,
    Hopeless,
    Move,
    OrderedFrame,
    Outcome,
    Pick,
    SafeFrame,
    SlotFrame,
    Stopped,
    TakenFrame,
)
from dray.allocator.outlook import Outlook
from dray.allocator.requests import Failure
from dray.allocator.sets import SetConstraints
from dray.allocator.situation import Situation, State
from dray.allocator.statistics import Statistics
from dray.allocator.symmetry import Symmetry
from dray.allocator.tables import Option, Slot, Stop, Table
from dray.api.claims import MAX_ALLOCATION_RESULTS

ANYWHERE: Final = -1
"""All devices are ahead."""

STEPS_BETWEEN_LOOKS_AT_THE_CLOCK: Final = 64


def never() -> bool:
    return False


class Limits(NamedTuple):
    expired: Callable[[], bool] = never
    """Asked now and then; True ends the search with DeadlineExceeded."""
    renew: Callable[[], None] | None = None
    """Called before the search on each node, if the limit is per node: one that takes too long doesn't fit."""


Solution = tuple[Pick, ...]


def find_solution(table: Table, situation: Situation, limits: Limits, statistics: Statistics) -> Solution | None:
    """The first solution, or None. Raises Stopped and DeadlineExceeded."""
    statistics.searches += 1
    return Search(table, situation, limits, statistics).run()


class Search:
    def __init__(
        self,
        table: Table,
        situation: Situation,
        limits: Limits,
        statistics: Statistics,
        claim: int | None = None,
    ) -> None:
        """With `claim`, only that claim is looked at, as if it were alone."""
        self.table: Final = table
        numbers = [slot.number for slot in table.slots if claim is None or slot.claim == claim]
        self._first: Final = numbers[0] if numbers else 0
        self._end: Final = numbers[-1] + 1 if numbers else 0
        self.situation: Final = situation
        self.outlook: Final = Outlook(table, situation, self._end)
        self.symmetry: Final = Symmetry(table, situation)
        self.sets: Final = SetConstraints(table, statistics)
        self.picks: Final[list[Pick]] = []
        self.causes: Final = Blame(table, self.picks)
        self.blame = EVERY_SLOT
        """The slots that the last dead end depends on."""
        self.dead: Final[set[Hashable]] = set()
        self._limits: Final = limits
        self._statistics: Final = statistics
        self._steps = 0
        self._looks_ahead = table.is_constrained
        """Looking ahead costs, so it is done at the start if it is likely to help, and once something has failed."""
        self._has_failed = False

    def run(self) -> Solution | None:
        try:
            return self._run()
        except Hopeless:
            return None
        finally:
            self._statistics.steps += self._steps

    def _run(self) -> Solution | None:
        frames: list[Frame] = []
        move: Move = self.open_slot(self._first, self.situation.start)
        while move is not Outcome.FOUND:
            if isinstance(move, Outcome):
                if not frames:
                    return None
                move = frames[-1].resume(move)
            else:
                frames.append(move)
                move = move.resume(None)
            if isinstance(move, Outcome):
                frames.pop()
        return tuple(self.picks)

    def count_step(self) -> None:
        self._steps += 1
        if self._steps % STEPS_BETWEEN_LOOKS_AT_THE_CLOCK == 0 and self._limits.expired():
            raise DeadlineExceeded(self._steps)

    def open_slot(self, number: int, state: State) -> Move:
        if number == self._end:
            return Outcome.FOUND
        slot = self.table.slots[number]
        if slot.opens_claim:
            state = state.in_next_claim(slot.constraints)
        if self.dead and self.symmetry.key(slot, None, 0, 0, state) in self.dead:
            return self.dead_end(self.causes.of_rest(number))
        if len(slot.options) == 1 and not (slot.opens_claim and number > self._first):
            return self.open_option(slot.options[0], state)
        return SlotFrame(self, slot, state)

    def remember_dead(self, slot: Slot, state: State) -> None:
        """All options have been tried, in vain."""
        if not self.outlook.risky[slot.number]:
            key = self.symmetry.key(slot, None, 0, 0, state)
            if key is not None:
                self.dead.add(key)

    def dead_end(self, blame: int) -> Outcome:
        self.blame = blame
        return Outcome.DEAD

    def open_option(self, option: Option, state: State) -> Move:
        if option.takes_all:
            return self._take_all(option, state) if option.count else self.dead_end(1 << option.slot)
        if option.count == 0:
            return self.close_option(option, state)
        if state.total + option.count > MAX_ALLOCATION_RESULTS:
            return Outcome.EXCEEDED
        return self.open_devices(option, option.count, ANYWHERE, state)

    def close_option(self, option: Option, state: State) -> Move:
        """All devices of the option are picked: check the sets that are complete now, go on with the next slot."""
        slot = self.table.slots[option.slot]
        for constraint in slot.finishes:
            if self._limits.expired():
                raise DeadlineExceeded(self._steps)
            stop = self.sets.check(slot, constraint, self.picks)
            if stop is False:
                return self.dead_end(self.sets.slots_of(slot, constraint))
            if stop is not True:
                raise Stopped(stop)
        return self.open_slot(option.slot + 1, state)

    def open_devices(self, option: Option, remaining: int, ahead: int, state: State) -> Move:
        """Pick `remaining` more devices for the option, from those `ahead`."""
        free = ahead & ~(state.mine if option.admin else self.situation.used | state.used)
        candidates = option.usable & free & ~(state.blocked & ~state.shared) & ~state.tight[option.profile]
        failing = option.failing & free
        for number, column in option.columns:
            if column.failed:
                failing |= candidates & column.failed
            candidates &= column.allowed(state.constraints[number])
        if failing or self.outlook.risky[option.slot + 1]:
            return OrderedFrame(self, option, remaining, candidates, failing, state)
        if candidates.bit_count() < remaining:
            return self.dead_end(self.causes.of_slot(option.slot))
        narrowed = self._looks_ahead
        if narrowed:
            candidates = self.narrow(option, remaining, candidates, state, thorough=self._has_failed)
            if candidates.bit_count() < remaining:
                return Outcome.DEAD
            self._looks_ahead = self._has_failed
        key: Hashable | None = None
        if self._has_failed:
            key = self.symmetry.key(self.table.slots[option.slot], option, remaining, candidates, state)
            if key in self.dead:
                return self.dead_end(self.causes.of_rest(option.slot))
        if remaining > 1 and self._is_uniform(option, candidates, state):
            return self._take_first(option, remaining, candidates, state)
        return SafeFrame(self, option, remaining, candidates, state, narrowed=narrowed, key=key)

    def narrow(self, option: Option, remaining: int, candidates: int, state: State, *, thorough: bool) -> int:
        """The candidates with which there is hope; if they are too few, says which slots are to blame."""
        left = self.outlook.narrow(option, remaining, candidates, state, thorough=thorough)
        if left.bit_count() < remaining:
            missing = self.outlook.missing
            self.blame = self.causes.of_rest(option.slot) if missing is None else self.causes.of_slot(missing)
        return left

    def note_failure(self) -> None:
        """From now on, look ahead at every step. The first time, see whether each claim fits on its own."""
        if self._has_failed:
            return
        self._looks_ahead = self._has_failed = True
        claims = {slot.claim for slot in self.table.slots[self._first : self._end]}
        if len(claims) > 1 and not self.outlook.risky[self._first]:
            for claim in sorted(claims):
                if not self._fits_alone(claim):
                    raise Hopeless

    def _fits_alone(self, claim: int) -> bool:
        try:
            return Search(self.table, self.situation, self._limits, self._statistics, claim).run() is not None
        except Stopped:
            # An expression failed on a set that the search for all claims may never come to.
            return True

    def _is_uniform(self, option: Option, candidates: int, state: State) -> bool:
        """Whether it makes no difference to this slot which of the candidates are picked."""
        table = self.table
        if table.has_sets or candidates & (table.drawing | table.shareable):
            return False
        for number, column in option.columns:
            common = state.constraints[number]
            if not column.matches or not common or common & (common - 1):
                return False
        return True

    def _take_first(self, option: Option, remaining: int, candidates: int, state: State) -> Move:
        """Pick the first candidates at once. Others need not be tried unless a later slot wants some of these."""
        before = len(self.picks)
        left = candidates
        for _ in range(remaining):
            low = left & -left
            left ^= low
            self.picks.append(Pick(option, low.bit_length() - 1))
        self.count_step()
        after = self.situation.after_all(candidates ^ left, remaining, state)
        instead: Frame | None = None
        if candidates & self.table.later[option.slot]:
            instead = SafeFrame(self, option, remaining, candidates, state, narrowed=False)
        return TakenFrame(self, option, before, after, instead)

    def pick(self, option: Option, remaining: int, bit: int, state: State) -> Move:
        """Pick the device of this bit, and go on with those behind it."""
        self.count_step()
        position = bit.bit_length() - 1
        self.picks.append(Pick(option, position))
        after = self.situation.after(option, position, state)
        if remaining == 1:
            return self.close_option(option, after)
        return self.open_devices(option, remaining - 1, -bit << 1, after)

    def _take_all(self, option: Option, state: State) -> Move:
        """`All` needs every match: one that can't be had is a dead end, one that a constraint rejects is fatal."""
        if state.total + option.count > MAX_ALLOCATION_RESULTS:
            return Outcome.EXCEEDED
        before = len(self.picks)
        if not option.columns and not option.match & (self.table.drawing | self.table.shareable):
            if option.match & (self.situation.in_use(option, state) | ~self.situation.candidates(option, state)):
                return self.dead_end(self.causes.of_slot(option.slot))
            self.count_step()
            self.picks.extend([Pick(option, position) for position in option.positions])
            return TakenFrame(self, option, before, self.situation.after_all(option.match, option.count, state))
        for position in option.positions:
            self.count_step()
            after = self._take_one_of_all(option, position, state)
            if after is None:
                del self.picks[before:]
                return self.dead_end(self.causes.of_slot(option.slot))
            self.picks.append(Pick(option, position))
            state = after
        return TakenFrame(self, option, before, state)

    def _take_one_of_all(self, option: Option, position: int, state: State) -> State | None:
        bit = 1 << position
        situation = self.situation
        if situation.in_use(option, state) & bit or not option.usable & bit or situation.is_blocked(state) & bit:
            return None
        for number, column in option.columns:
            claim = self.table.slots[option.slot].claim
            if column.failed & bit:
                raise Stopped(self.derived_failure(option, number, position))
            if not column.allowed(state.constraints[number]) & bit:
                raise Stopped(Stop(claim, alternative=option.alternative, position=position, constraint=number))
        if not situation.candidates(option, state) & bit:
            return None
        return situation.after(option, position, state)

    def failure(self, option: Option, position: int, state: State) -> Stop:
        """Why the device, which was found to fail, stops the allocation."""
        claim = self.table.slots[option.slot].claim
        if option.failing >> position & 1:
            return self.table.failure_at(claim, option, position)
        allowed = 1 << position
        for number, column in option.columns:
            if column.failed & allowed:
                return self.derived_failure(option, number, position)
            allowed &= column.allowed(state.constraints[number])
        raise AssertionError("a failing device fails in a selector or in a derived attribute")

    def derived_failure(self, option: Option, number: int, position: int) -> Stop:
        table = self.table
        claim = table.slots[option.slot].claim
        constraint = table.program.claims[claim].constraints[number]
        error = constraint.elements(option.alternative, table.view, table.classes[position]).error
        assert error is not None
        return Stop(
            claim,
            alternative=option.alternative,
            position=position,
            constraint=number,
            derived=True,
            failure=Failure(error),
        )
