"""Whether the counter sets of a node can serve all open slots together.

Counter sets don't depend on each other. So for each one we list what it can give: the *yields*, how many devices for
each slot at once, of which only the largest count. Then the yields of all sets are added up, keeping the largest sums,
until every slot has what it needs. This answers exactly, where counting each slot on its own would not: a GPU can be
four small partitions or one large one, but not both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dray.allocator.counters import Bucket, Draw

Yield = tuple[int, ...]
"""How many devices for each slot."""

TOO_MANY: Final = 4096
"""So many cases are looked at; beyond that we don't know, and say yes."""


class Item(NamedTuple):
    """A device of a counter set, and the slots that may have it."""

    draw: Draw
    slots: tuple[int, ...]


def find_yields(bucket: Bucket, items: Sequence[Item], slots: int) -> tuple[Yield, ...] | None:
    """The largest yields of one counter set; None if there are too many cases."""
    reached: dict[tuple[Bucket, Yield], None] = {(bucket, (0,) * slots): None}
    for item in items:
        more: dict[tuple[Bucket, Yield], None] = {}
        for state, counts in reached:
            if state.admits(item.draw):
                after = state.after(item.draw)
                for slot in item.slots:
                    more[after, (*counts[:slot], counts[slot] + 1, *counts[slot + 1 :])] = None
        reached |= more
        if len(reached) > TOO_MANY:
            return None
    return largest(counts for _, counts in reached)


def can_serve(yields: Iterable[Sequence[Yield]], needs: Yield) -> bool:
    """Whether one yield of each counter set can be chosen so that every slot gets what it needs."""
    sums: tuple[Yield, ...] = ((0,) * len(needs),)
    for choices in yields:
        added = {
            tuple([min(need, one + two) for need, one, two in zip(needs, total, choice, strict=True)])
            for total in sums
            for choice in choices
        }
        sums = largest(added)
        if needs in sums:
            return True
        if len(sums) > TOO_MANY:
            return True
    return needs in sums


def largest(counts: Iterable[Yield]) -> tuple[Yield, ...]:
    """Without those that another one exceeds or equals everywhere."""
    kept: list[Yield] = []
    for each in sorted(set(counts), key=sum, reverse=True):
        if not any(all(one >= two for one, two in zip(other, each, strict=True)) for other in kept):
            kept.append(each)
    return tuple(kept)
