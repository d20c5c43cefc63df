"""Devices that no part of a search can tell apart, and states that are equal but for such devices.

If a branch that picks a device fails, the branch that picks its twin instead fails too: exchange the two in a solution
of the second, and it would be one of the first. The devices of a request come in order, but of a solution only the
set counts, unless a CEL constraint looks at the order; then only twins that no later request wants are left out.
"""

from __future__ import annotations

from typing import Final

from dray.allocator.situation import Situation, State
from dray.allocator.tables import Option, Slot, Table


class Twins:
    def __init__(self, table: Table, situation: Situation) -> None:
        self._table: Final = table
        self._situation: Final = situation
        self._groups: dict[int, int] | None = None
        self._distinct: tuple[int, ...] = ()

    def of(self, position: int, option: Option, state: State) -> int:
        """The device and its twins."""
        bit = 1 << position
        if self._groups is None:
            self._groups = self._find_groups()
            self._distinct = tuple(dict.fromkeys(self._groups.values()))
        twins = self._groups.get(position, bit)
        if twins == bit:
            return bit
        twins &= state.used if state.used & bit else ~state.used
        if state.shared or state.consumed:
            touched = state.shared
            for other in state.consumed:
                touched |= 1 << other
            if touched & bit:
                return bit
            twins &= ~touched
        if self._table.has_sets:
            # A device that a later request may want too could come at another place in the order.
            later = self._table.later[option.slot]
            return bit if later & bit else twins & ~later
        return twins

    def dead_end_key(self, slot: Slot, state: State) -> object:
        """What the slots from this one on can depend on."""
        if slot.number == 0:
            return None
        relevant = self._table.later[slot.number - 1]
        if self._table.has_sets and not slot.opens_claim:
            return None
        return (
            slot.number,
            self._counted(state.used & relevant),
            self._counted(state.mine & relevant),
            state.total,
            state.constraints,
            state.buckets,
            tuple(sorted((position, tuple(sorted(amounts.items()))) for position, amounts in state.consumed.items())),
        )

    def _counted(self, mask: int) -> object:
        """The mask, but of twins only how many: which of them makes no difference."""
        if not self._groups or self._table.has_sets:
            return mask
        counts: dict[int, int] = {}
        for group in self._distinct:
            if mask & group:
                counts[group] = (mask & group).bit_count()
                mask &= ~group
        return (mask, tuple(counts.items()))

    def _find_groups(self) -> dict[int, int]:
        """By device: the mask of its twins. Devices without twins are left out."""
        table = self._table
        wanted = 0
        for option in table.options:
            wanted |= option.usable
        masks: dict[object, int] = {}
        members: dict[object, list[int]] = {}
        columns = {id(column): column for option in table.options for _, column in option.columns}
        position = 0
        while wanted >> position:
            if wanted >> position & 1:
                key = self._key(position, [column.bits[position] for column in columns.values()])
                masks[key] = masks.get(key, 0) | 1 << position
                members.setdefault(key, []).append(position)
            position += 1
        return {member: masks[key] for key, group in members.items() if len(group) > 1 for member in group}

    def _key(self, position: int, elements: list[int]) -> object:
        table = self._table
        bit = 1 << position
        shares: object = None
        if table.shareable & bit:
            # What a share consumes depends on the class alone.
            shares = table.classes[position]
        return (
            tuple([bool(option.usable & bit) for option in table.options]),
            bool(self._situation.used & bit),
            tuple(elements),
            table.draws.get(position),
            shares,
            table.set_classes(position),
        )
