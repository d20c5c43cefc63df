"""Slots that want whole devices: enough for each, or enough for all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dray.allocator.assignment import can_assign


def test_slots_that_share_their_devices_need_enough_for_all() -> None:
    assert can_assign([2, 2], [0b1111, 0b1111])
    assert not can_assign([2, 3], [0b1111, 0b1111])


def test_two_slots_can_be_short_although_there_is_enough_in_all() -> None:
    assert not can_assign([2, 2, 1], [0b000111, 0b000111, 0b111000])
    assert can_assign([2, 1, 1], [0b000111, 0b000111, 0b111000])


def test_a_slot_gives_way_to_another_that_has_no_choice() -> None:
    assert can_assign([1, 1, 1], [0b111, 0b011, 0b001])
    assert not can_assign([1, 2, 1], [0b111, 0b011, 0b001])


def test_shareable_devices_serve_every_slot_once() -> None:
    assert can_assign([2, 2], [0b11, 0b11], shareable=0b11)
    assert not can_assign([3, 1], [0b11, 0b11], shareable=0b11)
    assert can_assign([2, 1], [0b11, 0b11], shareable=0b01)
    assert not can_assign([2, 2], [0b11, 0b11], shareable=0b01)


def assign_by_trying(needs: list[int], masks: list[int]) -> bool:
    if not needs:
        return True
    if needs[0] == 0:
        return assign_by_trying(needs[1:], masks[1:])
    return any(
        assign_by_trying([needs[0] - 1, *needs[1:]], [mask & ~(1 << device) for mask in masks])
        for device in range(6)
        if masks[0] >> device & 1
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 63)), max_size=4))
def test_it_agrees_with_trying_everything(slots: list[tuple[int, int]]) -> None:
    needs, masks = [need for need, _ in slots], [mask for _, mask in slots]
    assert can_assign(needs, masks) == assign_by_trying(needs, masks)
