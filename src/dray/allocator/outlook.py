"""Looking ahead: can the slots that are still open be filled at all?

All checks are necessary conditions: they say no only if there is no solution below. Each asks for the best case, that
is for every open slot on its own, or for all open slots under one condition taken alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dray.allocator.constraints import AttributeColumn, iter_bits
from dray.allocator.situation import Situation, State
from dray.allocator.tables import Option, Slot, Table
from dray.allocator.twins import later_candidates


class _Want(NamedTuple):
    """A way to fill an open slot: so many devices out of these."""

    option: Option
    needed: int
    devices: int


class Outlook:
    def __init__(self, table: Table, situation: Situation) -> None:
        self._table: Final = table
        self._situation: Final = situation
        self._later: Final = later_candidates(table)
        self._risky: Final = self._find_risky()

    # Where errors may be met

    def is_risky(self, slot: int) -> bool:
        """Whether this slot or a later one may end in an error."""
        return self._risky[slot]

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

    # Whether there is hope

    def is_touched(self, option: Option, bit: int, before: State, after: State) -> bool:
        """Whether the pick changes anything for devices or slots that are still open."""
        return bool(
            bit & self._later[option.slot]
            or before.constraints != after.constraints
            or before.buckets is not after.buckets
            or before.consumed is not after.consumed
        )

    def is_open(self, option: Option, remaining: int, candidates: int, state: State) -> bool:
        """Whether `remaining` of the candidates and everything after that may still be found."""
        slots = self._table.slots
        slot = slots[option.slot]
        open_slots: list[list[_Want]] = [[_Want(option, remaining, candidates)]]
        for later in slots[option.slot + 1 :]:
            wants = self._wants(later, state, same_claim=later.claim == slot.claim)
            if not wants:
                return False
            open_slots.append(wants)
        return (
            self._has_common_elements(slot, open_slots, state)
            and self._has_enough_in_all(open_slots, state)
            and self._has_counters(open_slots, state)
            and self._has_distinct(slot, open_slots, state)
        )

    def _wants(self, slot: Slot, state: State, *, same_claim: bool) -> list[_Want]:
        """The options of the slot that have enough devices."""
        wants: list[_Want] = []
        for option in slot.options:
            mine = state.mine if same_claim else 0
            in_use = mine if option.admin else self._situation.used | state.used
            devices = self._situation.candidates(option, state) & ~in_use
            for number, column in option.columns:
                devices &= column.allowed(state.constraints[number]) if same_claim else column.has
            if option.takes_all:
                if option.count and not option.match & ~devices:
                    wants.append(_Want(option, option.count, devices & option.match))
            elif devices.bit_count() >= option.count:
                wants.append(_Want(option, option.count, devices))
        return wants

    def _has_common_elements(self, slot: Slot, open_slots: list[list[_Want]], state: State) -> bool:
        """Each match constraint needs one element of which every slot that it covers has enough devices."""
        columns: dict[tuple[int, int], list[list[tuple[_Want, AttributeColumn | None]]]] = {}
        claims: dict[int, list[list[_Want]]] = {}
        for wants in open_slots:
            claims.setdefault(self._table.slots[wants[0].option.slot].claim, []).append(wants)
        for claim, slots in claims.items():
            numbers = {
                number for wants in slots for want in wants for number, column in want.option.columns if column.matches
            }
            for number in numbers:
                columns[claim, number] = [
                    [(want, dict(want.option.columns).get(number)) for want in wants] for wants in slots
                ]
        for (claim, number), slots_ in columns.items():
            bound = state.constraints[number] if claim == slot.claim else 0
            if not _has_element(bound, slots_):
                return False
        return True

    def _has_enough_in_all(self, open_slots: list[list[_Want]], state: State) -> bool:
        """Slots that want whole devices can't have more of them than there are in all."""
        if len(open_slots) == 1:
            return True
        table = self._table
        union = needed = 0
        for wants in open_slots:
            devices = 0
            for want in wants:
                devices |= want.devices
            if any(want.option.admin for want in wants) or devices & table.shareable:
                continue
            union |= devices
            needed += min(want.needed for want in wants)
        return needed <= union.bit_count() and self._has_shares(open_slots, state)

    def _has_shares(self, open_slots: list[list[_Want]], state: State) -> bool:
        """Slots that only shareable devices can fill need that many shares in all."""
        shareable = self._table.shareable
        if not shareable:
            return True
        room: dict[int, int] = {}
        needed = 0
        for wants in open_slots:
            if any(want.devices & ~shareable for want in wants):
                continue
            needed += min(want.needed for want in wants)
            for want in wants:
                for position in iter_bits(want.devices):
                    left = self._situation.shares_left(want.option, position, state)
                    room[position] = max(room.get(position, 0), left)
        return needed <= sum(room.values())

    def _has_counters(self, open_slots: list[list[_Want]], state: State) -> bool:
        """Every slot on its own: no counter set can serve more devices than its scarcest counter allows."""
        drawing = self._table.drawing
        if not drawing:
            return True
        return all(
            any(self._most_by_counters(want, state) >= want.needed for want in wants)
            for wants in open_slots
            if not any(want.devices & ~drawing or want.devices & self._table.shareable for want in wants)
        )

    def _most_by_counters(self, want: _Want, state: State) -> int:
        least: dict[int, dict[int, int]] = {}
        members: dict[int, int] = {}
        for position in iter_bits(want.devices):
            draws = self._table.draws[position]
            if len(draws) != 1:
                # Counted once, with its first counter set.
                draws = draws[:1]
            for bucket, draw in draws:
                members[bucket] = members.get(bucket, 0) + 1
                amounts = dict(draw.amounts)
                known = least.get(bucket)
                if known is None:
                    least[bucket] = amounts
                else:
                    least[bucket] = {
                        counter: min(amount, amounts[counter])
                        for counter, amount in known.items()
                        if counter in amounts
                    }
        most = 0
        for bucket, amounts in least.items():
            left = state.buckets[bucket].left
            limits = [left[counter] // amount for counter, amount in amounts.items() if amount > 0]
            most += min([members[bucket], *limits])
        return most

    def _has_distinct(self, slot: Slot, open_slots: list[list[_Want]], state: State) -> bool:
        """A distinct constraint needs as many elements as devices, as every device takes at least one."""
        for wants in open_slots:
            if len(wants) != 1 or self._table.slots[wants[0].option.slot].claim != slot.claim:
                continue
            want = wants[0]
            for number, column in want.option.columns:
                if column.matches:
                    continue
                taken = state.constraints[number] >> 1
                found = sum(
                    1 for element, mask in column.masks.items() if mask & want.devices and not taken >> element & 1
                )
                if found < want.needed:
                    return False
        return True


def _has_element(bound: int, slots: list[list[tuple[_Want, AttributeColumn | None]]]) -> bool:
    elements: dict[int, None] = {}
    if bound:
        elements = dict.fromkeys(iter_bits(bound))
    else:
        for options in slots:
            for _, column in options:
                if column is not None:
                    elements |= dict.fromkeys(column.masks)
    return any(
        all(
            any(
                column is None or (want.devices & column.masks.get(element, 0)).bit_count() >= want.needed
                for want, column in options
            )
            for options in slots
        )
        for element in elements
    )
