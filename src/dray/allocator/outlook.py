"""Looking ahead: can the slots that are still open be filled at all, and with which of the devices at hand?

Every check is a necessary condition: it leaves out a device, or says no, only if no solution lies there. Each looks at
the best case: at every open slot on its own, or at all open slots under one condition taken alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dray.allocator.constraints import AttributeColumn, iter_bits
from dray.allocator.situation import Situation, State
from dray.allocator.tables import Option, Slot, Table


class Want(NamedTuple):
    """A way to fill an open slot: so many devices out of these."""

    option: Option
    needed: int
    devices: int


Wants = list[Want]
"""The ways to fill one slot."""


class Outlook:
    def __init__(self, table: Table, situation: Situation) -> None:
        self._table: Final = table
        self._situation: Final = situation
        self.risky: Final = self._find_risky() if table.can_fail else [False] * (len(table.slots) + 1)
        """Whether a slot or a later one may end in an error."""

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

    def narrow(self, option: Option, remaining: int, candidates: int, state: State) -> int:
        """Those of the candidates with which everything that is still open may be found; 0 if there is no hope."""
        table = self._table
        slot = table.slots[option.slot]
        is_last = slot.number + 1 == len(table.slots)
        if is_last and not option.columns and not candidates & (table.drawing | table.shareable):
            return candidates
        open_slots: list[Wants] = [[Want(option, remaining, candidates)]]
        for later in table.slots[slot.number + 1 :]:
            wants = self._wants(later, state, same_claim=later.claim == slot.claim)
            if not wants:
                return 0
            open_slots.append(wants)
        if (
            self._has_enough_in_all(open_slots)
            and self._has_shares(open_slots, state)
            and self._has_counters(open_slots, state)
            and self._has_distinct(slot, open_slots, state)
        ):
            return self._with_common_elements(slot, open_slots, state)
        return 0

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
        """Each match constraint needs one element of which every slot that it covers has enough devices."""
        by_claim: dict[int, list[Wants]] = {}
        for wants in open_slots:
            by_claim.setdefault(self._table.slots[wants[0].option.slot].claim, []).append(wants)
        candidates = open_slots[0][0].devices
        for claim, slots in by_claim.items():
            numbers = {
                number for wants in slots for want in wants for number, column in want.option.columns if column.matches
            }
            for number in numbers:
                bound = state.constraints[number] if claim == slot.claim else 0
                elements = _viable_elements(number, bound, slots)
                if not elements:
                    return 0
                own = dict(open_slots[0][0].option.columns).get(number) if claim == slot.claim else None
                if own is not None:
                    with_elements = 0
                    for element in elements:
                        with_elements |= own.masks.get(element, 0)
                    candidates &= with_elements
        return candidates

    def _has_enough_in_all(self, open_slots: list[Wants]) -> bool:
        """Slots that want whole devices can't have more of them than there are in all."""
        if len(open_slots) == 1:
            return True
        union = needed = 0
        for wants in open_slots:
            devices = 0
            for want in wants:
                devices |= want.devices
            if any(want.option.admin for want in wants) or devices & self._table.shareable:
                continue
            union |= devices
            needed += min(want.needed for want in wants)
        return needed <= union.bit_count()

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

    def _has_counters(self, open_slots: list[Wants], state: State) -> bool:
        """Every slot on its own: no counter set can serve more devices than its scarcest counter allows."""
        table = self._table
        if not table.drawing:
            return True
        return all(
            any(self._most_by_counters(want, state) >= want.needed for want in wants)
            for wants in open_slots
            if not any(want.devices & ~table.drawing or want.devices & table.shareable for want in wants)
        )

    def _most_by_counters(self, want: Want, state: State) -> int:
        """A device that draws from several counter sets is counted with the first one."""
        least: dict[int, dict[int, int]] = {}
        members: dict[int, int] = {}
        for position in iter_bits(want.devices):
            bucket, draw = self._table.draws[position][0]
            known = least.get(bucket)
            if known is None:
                least[bucket] = dict(draw.amounts)
                members[bucket] = 1
                continue
            members[bucket] += 1
            amounts = dict(draw.amounts)
            for counter in known:
                known[counter] = min(known[counter], amounts.get(counter, 0))
        most = 0
        for bucket, needed in least.items():
            left = state.buckets[bucket].left
            most += min(
                [members[bucket], *(left[counter] // amount for counter, amount in needed.items() if amount > 0)]
            )
        return most

    def _has_distinct(self, slot: Slot, open_slots: list[Wants], state: State) -> bool:
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


def _viable_elements(number: int, bound: int, slots: list[Wants]) -> list[int]:
    """The elements of which every slot has enough devices; `bound` are those that all devices so far have, if any."""
    columns: list[list[tuple[Want, AttributeColumn | None]]] = [
        [(want, dict(want.option.columns).get(number)) for want in wants] for wants in slots
    ]
    elements: dict[int, None] = dict.fromkeys(iter_bits(bound))
    if not bound:
        for ways in columns:
            for _, column in ways:
                if column is not None:
                    elements |= dict.fromkeys(column.masks)
    return [
        element
        for element in elements
        if all(
            any(
                column is None or (want.devices & column.masks.get(element, 0)).bit_count() >= want.needed
                for want, column in ways
            )
            for ways in columns
        )
    ]
