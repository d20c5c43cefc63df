"""The open choices of a search, one frame for each: which option of a slot, which device next."""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from dray.allocator.situation import State
from dray.allocator.tables import Option, Slot, Stop

if TYPE_CHECKING:
    from dray.allocator.search import Search


EVERY_SLOT: Final = -1
"""A blame that names all slots."""


class Pick(NamedTuple):
    option: Option
    position: int


class Outcome(IntEnum):
    DEAD = 0
    FOUND = 1
    EXCEEDED = 2
    """More devices than a claim can hold; trying other devices in this claim doesn't help."""


class Stopped(Exception):
    """The search met an error."""

    def __init__(self, stop: Stop) -> None:
        super().__init__()
        self.stop = stop


class Hopeless(Exception):
    """There is no solution, as was found out by other means."""


class Frame(Protocol):
    def resume(self, outcome: Outcome | None) -> Move:
        """Go on after a branch ended so (None: none tried yet): the frame of the next one, or this frame's outcome."""


Move = Outcome | Frame


class SlotFrame:
    """Tries the options of a slot."""

    __slots__ = ("_all_exceeded", "_blame", "_is_risky", "_next", "_search", "_slot", "_state")

    def __init__(self, search: Search, slot: Slot, state: State) -> None:
        self._search = search
        self._is_risky = search.outlook.risky[slot.number]
        """Whether another option may end in an error, and so has to be tried."""
        self._blame = 0
        self._slot = slot
        self._state = state
        self._next = 0
        self._all_exceeded = True

    def resume(self, outcome: Outcome | None) -> Move:
        options = self._slot.options
        while outcome is not Outcome.FOUND:
            if outcome is Outcome.DEAD:
                self._all_exceeded = False
                if not self._search.blame >> self._slot.number & 1 and not self._is_risky:
                    return outcome
                self._blame |= self._search.blame
            elif outcome is Outcome.EXCEEDED:
                self._blame = EVERY_SLOT
            if self._next == len(options):
                return self._give_up()
            self._next += 1
            move = self._search.open_option(options[self._next - 1], self._state)
            if not isinstance(move, Outcome):
                return move
            outcome = move
        return outcome

    def _give_up(self) -> Outcome:
        self._search.remember_dead(self._slot, self._state)
        self._search.blame = self._blame & ~(1 << self._slot.number)
        # Beyond the claim the limit is no reason any more: earlier claims may leave other devices.
        return Outcome.EXCEEDED if self._all_exceeded and not self._slot.opens_claim else Outcome.DEAD


class TakenFrame:
    """All devices of an option are taken at once. If that fails, there may be something to try `instead`."""

    __slots__ = ("_before", "_instead", "_option", "_search", "_state")

    def __init__(self, search: Search, option: Option, before: int, state: State, instead: Frame | None = None) -> None:
        self._search = search
        self._option = option
        self._before = before
        self._state = state
        self._instead = instead

    def resume(self, outcome: Outcome | None) -> Move:
        if outcome is None:
            move = self._search.close_option(self._option, self._state)
            if not isinstance(move, Outcome):
                return move
            outcome = move
        search = self._search
        if outcome is not Outcome.FOUND and self._before >= 0:
            del search.picks[self._before :]
            self._before = -1
            search.note_failure()
            had_part = search.blame >> self._option.slot & 1
            if had_part and outcome is Outcome.DEAD:
                if self._instead is not None:
                    return self._instead
                search.blame |= search.causes.of_slot(self._option.slot)
        return outcome


class OrderedFrame:
    """Tries devices one by one where one of them, or a later one, may end in an error."""

    __slots__ = ("_failing", "_left", "_option", "_remaining", "_search", "_state")

    def __init__(
        self, search: Search, option: Option, remaining: int, candidates: int, failing: int, state: State
    ) -> None:
        self._search = search
        self._option = option
        self._remaining = remaining
        self._left = candidates | failing
        self._failing = failing
        self._state = state

    def resume(self, outcome: Outcome | None) -> Move:
        search = self._search
        while outcome is not Outcome.FOUND:
            if outcome is not None:
                search.picks.pop()
                if outcome is Outcome.EXCEEDED:
                    return outcome
            if not self._left:
                return search.dead_end(EVERY_SLOT)
            low = self._left & -self._left
            self._left ^= low
            if self._failing & low:
                raise Stopped(search.failure(self._option, low.bit_length() - 1, self._state))
            move = search.pick(self._option, self._remaining, low, self._state)
            if not isinstance(move, Outcome):
                return move
            outcome = move
        return outcome


class SafeFrame:
    """Tries devices where nothing can end in an error: twins of a device that failed are left out."""

    __slots__ = ("_blame", "_key", "_left", "_narrowed", "_option", "_remaining", "_search", "_state")

    def __init__(
        self,
        search: Search,
        option: Option,
        remaining: int,
        candidates: int,
        state: State,
        *,
        narrowed: bool,
        key: Hashable | None = None,
    ) -> None:
        self._search = search
        self._blame = 0
        self._narrowed = narrowed
        self._key = key
        """Under which to remember it if it fails."""
        self._option = option
        self._remaining = remaining
        self._left = candidates
        self._state = state

    def resume(self, outcome: Outcome | None) -> Move:
        search = self._search
        while outcome is not Outcome.FOUND:
            if outcome is not None:
                failed = search.picks.pop().position
                if outcome is Outcome.EXCEEDED:
                    return outcome
                search.note_failure()
                if not search.blame >> self._option.slot & 1:
                    return self._give_up(search.blame)
                self._blame |= search.blame
                self._left &= ~search.symmetry.twins(failed, self._option, self._state)
                if not self._narrowed:
                    self._narrowed = True
                    self._left = search.narrow(self._option, self._remaining, self._left, self._state, thorough=True)
                    self._blame |= search.blame
            if self._left.bit_count() < self._remaining:
                return self._give_up(self._blame | search.causes.of_slot(self._option.slot))
            low = self._left & -self._left
            self._left ^= low
            move = search.pick(self._option, self._remaining, low, self._state)
            if not isinstance(move, Outcome):
                return move
            outcome = move
        return outcome

    def _give_up(self, blame: int) -> Outcome:
        if self._key is not None:
            self._search.dead.add(self._key)
        return self._search.dead_end(blame)
