"""Whether devices with common attribute values can be found for all open slots of a claim.

Each match constraint of the claim needs an element that all its devices have. We choose an element for one constraint
after the other, and keep only devices that have it, as long as every slot still has enough. That is exact for whole
devices without counters, however many constraints there are, and takes as long as there are combinations of
elements; beyond `TOO_MANY` we don't know, and say yes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dray.allocator.assignment import can_assign
from dray.allocator.constraints import AttributeColumn, iter_bits
from dray.allocator.tables import Option

TOO_MANY: Final = 512


class Want(NamedTuple):
    """A way to fill an open slot: so many devices out of these."""

    option: Option
    needed: int
    devices: int


Wants = list[Want]
"""The ways to fill one slot."""


def find_common(slots: list[Wants], states: Sequence[int] | None, shareable: int) -> int | None:
    """The devices of the first slot's first way with which all can be filled; None if there is no way.

    `states` are those of the claim's constraints; None: no device has been picked for the claim.
    """
    numbers = sorted(
        {number for ways in slots for want in ways for number, column in want.option.columns if column.matches}
    )
    first = slots[0][0].devices
    if not numbers:
        return first
    chooser = _Chooser(slots, numbers, states, shareable)
    chooser.choose(0, slots)
    if chooser.visits > TOO_MANY:
        return first
    return chooser.found or None


class _Chooser:
    def __init__(
        self, slots: list[Wants], numbers: Sequence[int], states: Sequence[int] | None, shareable: int
    ) -> None:
        self._numbers = numbers
        self._shareable = shareable
        self._elements = [_elements(slots, number, states[number] if states else 0) for number in numbers]
        self.found = 0
        """Devices of the first slot that have come up in some way to fill all."""
        self.visits = 0

    def choose(self, place: int, slots: list[Wants]) -> None:
        """Choose elements for the constraints from this place on."""
        if place == len(self._numbers):
            if _has_enough(slots, self._shareable):
                self.found |= slots[0][0].devices
            return
        for element in self._elements[place]:
            self.visits += 1
            if self.visits > TOO_MANY:
                return
            left = _with_element(slots, self._numbers[place], element)
            if left is not None:
                self.choose(place + 1, left)


def _column(want: Want, number: int) -> AttributeColumn | None:
    for other, column in want.option.columns:
        if other == number:
            return column
    return None


def _elements(slots: list[Wants], number: int, bound: int) -> list[int]:
    """The elements that come into question; `bound` are those that all devices so far have, if there are any."""
    if bound:
        return iter_bits(bound)
    columns = [_column(want, number) for ways in slots for want in ways]
    return list(dict.fromkeys(element for column in columns if column is not None for element in column.masks))


def _with_element(slots: list[Wants], number: int, element: int) -> list[Wants] | None:
    """The ways that are left if covered devices must have the element; None if a slot has none left."""
    left: list[Wants] = []
    for ways in slots:
        kept: Wants = []
        for want in ways:
            option, needed, devices = want
            column = _column(want, number)
            if column is None:
                kept.append(want)
                continue
            devices &= column.masks.get(element, 0)
            if devices.bit_count() >= needed:
                kept.append(Want(option, needed, devices))
        if not kept:
            return None
        left.append(kept)
    return left


def _has_enough(slots: list[Wants], shareable: int) -> bool:
    needs: list[int] = []
    devices: list[int] = []
    for ways in slots:
        if any(want.option.admin for want in ways):
            continue
        needs.append(min(want.needed for want in ways))
        union = 0
        for want in ways:
            union |= want.devices
        devices.append(union)
    return can_assign(needs, devices, shareable)
