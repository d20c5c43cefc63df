"""Whether slots that want whole devices can all have enough at once.

A device goes to one slot only, so it isn't enough that every slot has enough devices on its own. By Hall's theorem it
can be told by a flow from slots to devices; devices that the same slots want are one node of it.
"""

from __future__ import annotations

from collections.abc import Sequence


def can_assign(needs: Sequence[int], devices: Sequence[int], shareable: int = 0) -> bool:
    """Whether every slot can have as many of its devices (a mask) as it needs. Shareable ones serve every slot once."""
    wanting: list[tuple[int, int]] = []
    union = total = 0
    for need, mask in zip(needs, devices, strict=True):
        rest = need - (mask & shareable).bit_count()
        if rest > 0:
            whole = mask & ~shareable
            if whole.bit_count() < rest:
                return False
            wanting.append((rest, whole))
            union |= whole
            total += rest
    if len(wanting) < 2:
        return True
    if total > union.bit_count():
        return False
    # Of two slots that is all there is to it; and slots that want no device in common don't get in each other's way.
    if len(wanting) == 2 or sum([whole.bit_count() for _, whole in wanting]) == union.bit_count():
        return True
    return _Flow(wanting).is_enough()


class _Flow:
    def __init__(self, wanting: Sequence[tuple[int, int]]) -> None:
        self._needs = [need for need, _ in wanting]
        self._groups = _split([mask for _, mask in wanting])
        self._given: list[dict[int, int]] = [{} for _ in wanting]
        """By slot: how many devices of each group it has."""
        self._left = [count for _, count in self._groups]

    def is_enough(self) -> bool:
        for slot in range(len(self._needs)):
            while self._needs[slot] > 0:
                if not self._take(slot, set()):
                    return False
                self._needs[slot] -= 1
        return True

    def _take(self, slot: int, asked: set[int]) -> bool:
        """Give the slot one more device; other slots may have to change one of theirs for another."""
        for group, (slots, _) in enumerate(self._groups):
            if not slots >> slot & 1 or group in asked:
                continue
            asked.add(group)
            if self._left[group] > 0:
                self._left[group] -= 1
                self._given[slot][group] = self._given[slot].get(group, 0) + 1
                return True
            for other, given in enumerate(self._given):
                if given.get(group, 0) > 0 and self._take(other, asked):
                    given[group] -= 1
                    self._given[slot][group] = self._given[slot].get(group, 0) + 1
                    return True
        return False


def _split(masks: Sequence[int]) -> list[tuple[int, int]]:
    """The devices by who wants them: (slots as a mask, number of devices)."""
    parts: list[tuple[int, int]] = []
    for number, mask in enumerate(masks):
        split: list[tuple[int, int]] = []
        for slots, devices in parts:
            if devices & mask:
                split.append((slots | 1 << number, devices & mask))
            if devices & ~mask:
                split.append((slots, devices & ~mask))
            mask &= ~devices
        if mask:
            split.append((1 << number, mask))
        parts = split
    return [(slots, devices.bit_count()) for slots, devices in parts]
