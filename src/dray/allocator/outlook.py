"""Looking ahead: can the slots that are still open be filled at all, and with which of the devices at hand?

Every check is a necessary condition: it leaves out a device, or says no, only if no solution lies there. Each looks at
the best case: at every open slot on its own, or at all open slots under one condition taken alone.
"""

from __future__ import annotations

from typing import Final

from dray.allocator.assignment import can_assign
from dray.allocator.common import Want, Wants, find_common
from dray.allocator.constraints import iter_bits
from dray.allocator.counters import Bucket
from dray.allocator.packing import Item, Yield, can_serve, find_yields
from dray.allocator.situation import Situation, State
from dray.allocator.tables import Option, Slot, Table

MOST_YIELDS: Final = 1 << 14
"""So many are remembered per table."""


class Outlook:
    def __init__(self, table: Table, situation: Situation, end: int) -> None:
        """Slots from `end` on aren't looked at."""
        self._table: Final = table
        self._situation: Final = situation
        self._end: Final = end
        self.risky: Final = self._find_risky() if table.can_fail else [False] * (len(table.slots) + 1)
        """Whether a slot or a later one may end in an error."""
        self.missing: int | None = None
        """The slot that there was no hope for when candidates were last narrowed, if it was a single one."""

    def _find_risky(self) -> list[bool]:
        risky = [False] * (len(self._table.slots) + 1)
        for slot in reversed(self._table.slots):
            risky[slot.number] = risky[slot.number + 1] or any(map(self._may_fail, slot.options))
        return risky

    def _may_fail(self, option: Option) -> bool:
        if option.takes_all:
            return bool(option.columns)
        looked_at = -1 if option.admin else ~self._situation.used
        return bool(option.failing & looked_at) or any(
            column.failed & option.usable & looked_at for _, column in option.columns
        )

    def narrow(self, option: Option, remaining: int, candidates: int, state: State, *, thorough: bool) -> int:
        """Those of the candidates with which everything that is still open may be found; 0 if there is no hope.

        Counters and shares take long to count, so that is done only when it should be `thorough`.
        """
        table = self._table
        slot = table.slots[option.slot]
        is_last = slot.number + 1 == self._end
        if is_last and not option.columns and not candidates & (table.drawing | table.shareable):
            return candidates
        self.missing = None
        open_slots: list[Wants] = [[Want(option, remaining, candidates)]]
        for later in table.slots[slot.number + 1 : self._end]:
            wants = self._wants(later, state, same_claim=later.claim == slot.claim)
            if not wants:
                self.missing = later.number
                return 0
            open_slots.append(wants)
        if not self._has_enough_in_all(open_slots) or not self._has_distinct(slot, open_slots, state):
            return 0
        if thorough and not (
            self._has_shares(open_slots, state)
            and self._has_counters(open_slots, state)
            and self._has_amounts(open_slots, state)
        ):
            return 0
        return self._with_common_elements(slot, open_slots, state)

    def _wants(self, slot: Slot, state: State, *, same_claim: bool) -> Wants:
        """The options of the slot that have enough devices."""
        wants: Wants = []
        for option in slot.options:
            in_use = (state.mine if same_claim else 0) if option.admin else self._situation.used | state.used
            devices = self._situation.candidates(option, state) & ~in_use
            for number, column in option.columns:
                devices &= column.allowed(state.constraints[number]) if same_claim else column.has
            if option.takes_all:
                if option.count and not option.match & ~devices:
                    wants.append(Want(option, option.count, devices & option.match))
            elif devices.bit_count() >= option.count:
                wants.append(Want(option, option.count, devices))
        return wants

    def _with_common_elements(self, slot: Slot, open_slots: list[Wants], state: State) -> int:
        """The match constraints of a claim need one element each, with which every slot has enough devices."""
        by_claim: dict[int, list[Wants]] = {}
        for wants in open_slots:
            by_claim.setdefault(self._table.slots[wants[0].option.slot].claim, []).append(wants)
        candidates = open_slots[0][0].devices
        for claim, slots in by_claim.items():
            states = state.constraints if claim == slot.claim else None
            narrowed = find_common(slots, states, self._table.shareable)
            if narrowed is None:
                return 0
            if claim == slot.claim:
                candidates &= narrowed
        return candidates

    def _has_enough_in_all(self, open_slots: list[Wants]) -> bool:
        """Every slot may have enough on its own, but not all at once."""
        if len(open_slots) == 1:
            return True
        needs: list[int] = []
        devices: list[int] = []
        for wants in open_slots:
            if any(want.option.admin for want in wants):
                continue
            needs.append(min(want.needed for want in wants))
            devices.append(_all_devices(wants))
        return can_assign(needs, devices, self._table.shareable)

    def _has_shares(self, open_slots: list[Wants], state: State) -> bool:
        """Slots that only shareable devices can fill need that many shares in all."""
        shareable = self._table.shareable
        if not shareable or len(open_slots) == 1:
            return True
        room: dict[int, int] = {}
        seen: set[tuple[int, int]] = set()
        needed = 0
        for wants in open_slots:
            if any(want.devices & ~shareable for want in wants):
                continue
            needed += min(want.needed for want in wants)
            for want in wants:
                kind = (want.option.profile, want.devices)
                if kind in seen:
                    continue
                seen.add(kind)
                for position in iter_bits(want.devices):
                    left = self._situation.shares_left(want.option, position, state)
                    room[position] = max(room.get(position, 0), left)
        return needed <= sum(room.values())

    def _has_amounts(self, open_slots: list[Wants], state: State) -> bool:
        """What all slots draw or consume at least, counted together by name, must be there in all."""
        table = self._table
        if len(open_slots) == 1 or not (table.drawing or table.shareable):
            return True
        demand: dict[str, int] = {}
        supply: dict[str, dict[object, int]] = {}
        for wants in open_slots:
            least: dict[str, int] | None = None
            for want in wants:
                for position in iter_bits(want.devices):
                    amounts: dict[str, int] = {}
                    for name, source, amount, left in self._situation.amounts(want.option, position, state):
                        amounts[name] = amounts.get(name, 0) + amount
                        supply.setdefault(name, {})[source] = left
                    taken = {name: amount * want.needed for name, amount in amounts.items()}
                    least = taken if least is None else _least(least, taken)
            for name, amount in (least or {}).items():
                demand[name] = demand.get(name, 0) + amount
        return all(amount <= sum(max(left, 0) for left in supply[name].values()) for name, amount in demand.items())

    def _has_counters(self, open_slots: list[Wants], state: State) -> bool:
        """Slots that only partitions can fill need counter sets that serve all of them together."""
        table = self._table
        if not table.drawing:
            return True
        wants = [
            wants[0]
            for wants in open_slots
            if len(wants) == 1 and not wants[0].option.admin and not wants[0].devices & ~table.single_drawing
        ]
        if not wants:
            return True
        wanted = 0
        for want in wants:
            wanted |= want.devices
        yields: list[tuple[Yield, ...]] = []
        for number, bucket in enumerate(state.buckets):
            if table.drawer_masks[number] & wanted:
                found = self._yields(number, bucket, wants)
                if found is None:
                    return True
                yields.append(found)
        return can_serve(yields, tuple([want.needed for want in wants]))

    def _yields(self, number: int, bucket: Bucket, wants: Wants) -> tuple[Yield, ...] | None:
        """Counter sets that look the same yield the same."""
        table = self._table
        items: list[Item] = []
        for position, draw in table.drawers[number]:
            slots = tuple([slot for slot, want in enumerate(wants) if want.devices >> position & 1])
            if slots:
                items.append(Item(draw._replace(bucket=0), slots))
        key = (bucket, tuple(items), len(wants))
        if key not in table.yields:
            if len(table.yields) >= MOST_YIELDS:
                table.yields.clear()
            table.yields[key] = find_yields(bucket, items, len(wants))
        return table.yields[key]

    def _has_distinct(self, slot: Slot, open_slots: list[Wants], state: State) -> bool:
        """A distinct constraint needs as many elements as devices, as every device takes at least one."""
        needed: dict[tuple[int, int], int] = {}
        elements: dict[tuple[int, int], int] = {}
        for wants in open_slots:
            claim = self._table.slots[wants[0].option.slot].claim
            for number, _ in wants[0].option.columns:
                columns = [dict(want.option.columns).get(number) for want in wants]
                if any(column is None or column.matches for column in columns):
                    continue
                key = (claim, number)
                needed[key] = needed.get(key, 0) + min(want.needed for want in wants)
                for want, column in zip(wants, columns, strict=True):
                    assert column is not None
                    for element, mask in column.masks.items():
                        if mask & want.devices:
                            elements[key] = elements.get(key, 0) | 1 << element
        for (claim, number), count in needed.items():
            taken = state.constraints[number] >> 1 if claim == slot.claim else 0
            if (elements.get((claim, number), 0) & ~taken).bit_count() < count:
                return False
        return True


def _all_devices(wants: Wants) -> int:
    devices = 0
    for want in wants:
        devices |= want.devices
    return devices


def _least(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: min(amount, other[name]) for name, amount in one.items() if name in other}
