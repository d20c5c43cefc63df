"""Devices and counter sets that a search can't tell apart, and states that are equal but for such exchanges.

**Twins.** If a branch that picks a device fails, a branch that picks its twin instead fails too: exchange the two in a
solution of the second, and it is one of the first. Two kinds of devices are twins:
devices that every option, constraint, counter and share treats alike; and devices at the same place of two counter sets
that look the same and are in the same state (two GPUs with the same partitions, the same of them in use), for then
the sets can be exchanged as a whole. Within a request devices are picked in order, and an exchange must not put a
device before those already picked; it doesn't, because the devices of both sets come in the same relative order.

**Dead ends.** What failed once fails again if all it depends on is as it was. The key of a state says how many twins
are left, not which, and lists counter sets without their names; so a dead end covers all its mirror images.

An expression over a set of devices (KEP-5254) may look at their order. Then only twins are left out that no later
request wants, and dead ends are remembered only between claims.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from dray.allocator.constraints import iter_bits
from dray.allocator.situation import Situation, State
from dray.allocator.tables import Option, Slot, Table


class _Members(NamedTuple):
    """The devices that draw from one counter set, and from no other."""

    kind: int
    """Counter sets of the same kind look the same; -1: unlike any other."""
    positions: tuple[int, ...]
    mask: int

    def relative(self, mask: int) -> int:
        """The part of the mask that belongs to the members, as a mask over their places."""
        mask &= self.mask
        first, last = self.positions[0], self.positions[-1]
        if last - first + 1 == len(self.positions):
            return mask >> first
        found = 0
        for place, position in enumerate(self.positions):
            found |= (mask >> position & 1) << place
        return found


class Symmetry:
    """Built when a search first fails; searches that succeed at once never need it."""

    def __init__(self, table: Table, situation: Situation) -> None:
        self._table: Final = table
        self._situation: Final = situation
        self._is_ready = False
        self._kinds: dict[int, int] = {}
        """By device: a number for how it is treated."""
        self._groups: dict[int, int] = {}
        """By kind: its devices."""
        self._sets: list[_Members] = []
        """By counter set."""
        self._in_sets = 0
        """Devices of counter sets that have a likeness."""

    def twins(self, position: int, option: Option, state: State) -> int:
        """The device and its twins."""
        self._prepare()
        bit = 1 << position
        table = self._table
        twins = self._alike(position, state)
        if bit & self._in_sets:
            home = self._sets[table.draws[position][0][0]]
            look = self._look(table.draws[position][0][0], state)
            place = home.positions.index(position)
            for number, other in enumerate(self._sets):
                if other.kind == home.kind and other is not home and self._look(number, state) == look:
                    twins |= self._alike(other.positions[place], state)
        if table.has_sets:
            later = table.later[option.slot]
            return bit if later & bit else twins & ~later
        return twins

    def key(self, slot: Slot, option: Option | None, remaining: int, candidates: int, state: State) -> Hashable | None:
        """What the search from here on depends on; None if it isn't worth remembering.

        At the start of a slot without option and candidates; else for the `remaining` devices of an option.
        """
        if self._table.has_sets and (option is not None or not slot.opens_claim):
            return None
        self._prepare()
        relevant = self._table.later[slot.number]
        if option is None:
            for each in slot.options:
                relevant |= each.usable
        used, mine = state.used & relevant, state.mine & relevant
        touched = state.shared
        for position in state.consumed:
            touched |= 1 << position
        plain = ~(self._in_sets | touched)
        return (
            slot.number,
            None if option is None else option.number,
            remaining,
            state.total,
            state.constraints,
            self._counted(used & plain, mine & plain, candidates & plain),
            tuple(sorted(self._look_of_share(position, candidates, state) for position in iter_bits(touched))),
            tuple(
                sorted(
                    (members.kind if members.kind >= 0 else ~number, *self._look(number, state, candidates))
                    for number, members in enumerate(self._sets)
                )
            ),
        )

    # What tells devices apart

    def _alike(self, position: int, state: State) -> int:
        """The device, and devices of its kind that are in the same state."""
        bit = 1 << position
        twins = self._groups[self._kinds[position]] if position in self._kinds else bit
        if twins == bit:
            return bit
        twins &= state.used if state.used & bit else ~state.used
        if not (state.shared or state.consumed):
            return twins
        mine = state.consumed.get(position)
        found = bit
        for other in iter_bits(twins):
            if state.consumed.get(other) == mine and (state.shared >> other & 1) == (state.shared >> position & 1):
                found |= 1 << other
        return found

    def _look(self, number: int, state: State, candidates: int = 0) -> tuple[object, ...]:
        """All that is special about a counter set at the moment."""
        members = self._sets[number]
        bucket = state.buckets[number]
        groups = tuple(sorted(bucket.groups)) if bucket.groups is not None else ("",)
        if members.kind < 0:
            return (bucket.left, groups, 0, 0, 0)
        relative = members.relative
        return (bucket.left, groups, relative(state.used), relative(state.mine), relative(candidates))

    def _look_of_share(self, position: int, candidates: int, state: State) -> tuple[object, ...]:
        amounts = tuple(sorted(state.consumed.get(position, {}).items()))
        bits = (state.shared >> position & 1, state.used >> position & 1, candidates >> position & 1)
        return (self._kinds.get(position, ~position), bits, amounts)

    def _counted(self, used: int, mine: int, candidates: int) -> Hashable:
        """Of each kind, how many are used and how many are candidates."""
        if self._table.has_sets:
            return (used, mine, candidates)
        counts: list[tuple[int, int, int, int]] = []
        for kind, group in self._groups.items():
            if group & (used | candidates):
                counts.append(
                    (kind, (group & used).bit_count(), (group & mine).bit_count(), (group & candidates).bit_count())
                )
        return tuple(counts)

    # Preparation

    def _prepare(self) -> None:
        if self._is_ready:
            return
        self._is_ready = True
        table = self._table
        wanted = 0
        for option in table.options:
            wanted |= option.usable
        columns = list({id(column): column for option in table.options for _, column in option.columns}.values())
        numbers: dict[Hashable, int] = {}
        traits: dict[int, Hashable] = {}
        for position in iter_bits(wanted):
            traits[position] = self._traits(position, tuple([column.bits[position] for column in columns]))
            key = (traits[position], table.draws.get(position))
            kind = self._kinds[position] = numbers.setdefault(key, len(numbers))
            self._groups[kind] = self._groups.get(kind, 0) | 1 << position
        self._sets = self._find_sets(wanted, traits)
        for members in self._sets:
            if members.kind >= 0:
                self._in_sets |= members.mask

    def _traits(self, position: int, elements: tuple[int, ...]) -> Hashable:
        """How a device is treated by everything but counters."""
        table = self._table
        bit = 1 << position
        return (
            tuple([bool(option.usable & bit) for option in table.options]),
            elements,
            bool(self._situation.used & bit),
            # What a share consumes depends on the class alone.
            table.classes[position] if table.shareable & bit else None,
            table.set_classes(position) if table.has_sets else None,
        )

    def _find_sets(self, wanted: int, traits: dict[int, Hashable]) -> list[_Members]:
        numbers: dict[Hashable, int] = {}
        found: list[_Members] = []
        for drawers in self._table.drawers:
            positions = tuple(sorted(position for position, _ in drawers if wanted >> position & 1))
            mask = sum(1 << position for position in positions)
            kind = -1
            if positions and not mask & self._table.shareable and not self._table.has_sets:
                draws = [self._table.draws[position] for position in positions]
                if all(len(each) == 1 for each in draws):
                    look = tuple(
                        (traits[position], each[0][1].amounts, each[0][1].groups)
                        for position, each in zip(positions, draws, strict=True)
                    )
                    kind = numbers.setdefault(look, len(numbers))
            found.append(_Members(kind, positions, mask))
        return found
