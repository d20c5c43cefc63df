"""What is in use on a node when a search starts, and how a search changes that with every pick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from dray.allocator.counters import Bucket
from dray.allocator.shapes import Occupancy
from dray.allocator.tables import Option, Table

Consumption = Mapping[int, Mapping[str, int]]
"""By device: consumed capacity, in nano units."""


NOTHING: Final[Mapping[str, int]] = {}
UNLIMITED: Final = 1 << 30

MOST_CLOSED: Final = 1 << 16
"""So many states of counter sets are remembered per table."""


class State:
    """What the picks so far have changed. Never changed itself."""

    __slots__ = ("blocked", "buckets", "constraints", "consumed", "mine", "shared", "tight", "total", "used")

    def __init__(
        self,
        used: int,
        mine: int,
        total: int,
        constraints: tuple[int, ...],
        shared: int,
        buckets: tuple[Bucket, ...],
        blocked: int,
        consumed: Consumption,
        tight: tuple[int, ...],
    ) -> None:
        self.used = used
        """Devices picked as a whole."""
        self.mine = mine
        """... of these, by the claim at hand."""
        self.total = total
        """How many devices the claim at hand has so far."""
        self.constraints = constraints
        self.shared = shared
        """Shareable devices with at least one share, from before or picked."""
        self.buckets = buckets
        self.blocked = blocked
        """Devices that the counters don't admit."""
        self.consumed = consumed
        self.tight = tight
        """By capacity profile: devices that haven't enough capacity left."""

    def in_next_claim(self, constraints: int) -> State:
        return State(
            self.used, 0, 0, (0,) * constraints, self.shared, self.buckets, self.blocked, self.consumed, self.tight
        )


class Situation:
    """A table together with what is in use."""

    def __init__(self, table: Table, occupancies: Sequence[Occupancy]) -> None:
        self.table: Final = table
        used = shared = 0
        consumed: dict[int, Mapping[str, int]] = {}
        buckets: list[Bucket] = []
        for occupancy, offset in zip(occupancies, table.offsets, strict=False):
            used |= occupancy.used << offset
            shared |= occupancy.shared << offset
            for position, amounts in occupancy.consumed:
                consumed[offset + position] = dict(amounts)
            buckets.extend(occupancy.buckets)
        self.used: Final = used
        self._overdrawn: Final = self._find_overdrawn(buckets)
        self.start: Final = State(
            0, 0, 0, (), shared & table.shareable, tuple(buckets), self._find_blocked(buckets), consumed, ()
        )
        if consumed:
            self.start.tight = tuple(self._find_tight(profile, consumed) for profile in range(len(table.profiles)))
        else:
            self.start.tight = (0,) * len(table.profiles)

    def in_use(self, option: Option, state: State) -> int:
        """Admin access ignores what others use, but not what its own claim has picked."""
        return state.mine if option.admin else self.used | state.used

    def is_blocked(self, state: State) -> int:
        """Devices whose counters don't suffice. Another share of a device draws no counters again."""
        return state.blocked & ~state.shared

    def candidates(self, option: Option, state: State) -> int:
        """Devices that the option could take now, but for being in use and for constraints."""
        return option.usable & ~(state.blocked & ~state.shared) & ~state.tight[option.profile]

    def after(self, option: Option, position: int, state: State) -> State:
        """The state once the option has picked the device, which must be possible."""
        bit = 1 << position
        constraints = state.constraints
        if option.columns:
            changed = list(constraints)
            for number, column in option.columns:
                changed[number] = column.after(changed[number], position)
            constraints = tuple(changed)
        buckets, blocked = state.buckets, state.blocked
        if bit & self.table.drawing & ~state.shared:
            buckets, blocked = self._drawn(position, buckets)
        if not bit & self.table.shareable:
            return State(
                state.used | bit, state.mine | bit, state.total + 1, constraints, state.shared, buckets, blocked,
                state.consumed, state.tight,
            )  # fmt: skip
        consumed, tight = self._consumed(option, position, state)
        return State(
            state.used, state.mine, state.total + 1, constraints, state.shared | bit, buckets, blocked, consumed, tight
        )

    def after_all(self, positions: int, count: int, state: State) -> State:
        """The state once whole devices are picked that draw no counters and don't change any constraint."""
        return State(
            state.used | positions, state.mine | positions, state.total + count, state.constraints, state.shared,
            state.buckets, state.blocked, state.consumed, state.tight,
        )  # fmt: skip

    # Counters

    def _find_overdrawn(self, buckets: Sequence[Bucket]) -> int:
        """A counter below zero blocks every device of its pool that draws counters."""
        blocked = 0
        offsets = self.table.bucket_offsets
        for pool, (first, last) in enumerate(pairwise(offsets)):
            if any(left < 0 for bucket in buckets[first:last] for left in bucket.left):
                low, high = self.table.offsets[pool], self.table.offsets[pool + 1]
                blocked |= self.table.drawing & ((1 << high) - (1 << low))
        return blocked

    def _find_blocked(self, buckets: Sequence[Bucket]) -> int:
        blocked = self._overdrawn
        for number, bucket in enumerate(buckets):
            blocked |= self._blocked_by(number, bucket)
        return blocked

    def _blocked_by(self, number: int, bucket: Bucket) -> int:
        closed = self.table.closed
        found = closed.get((number, bucket))
        if found is None:
            found = 0
            for position, draw in self.table.drawers[number]:
                if not bucket.admits(draw):
                    found |= 1 << position
            if len(closed) >= MOST_CLOSED:
                closed.clear()
            closed[number, bucket] = found
        return found

    def _drawn(self, position: int, buckets: tuple[Bucket, ...]) -> tuple[tuple[Bucket, ...], int]:
        changed = list(buckets)
        for number, draw in self.table.draws[position]:
            changed[number] = changed[number].after(draw)
        return tuple(changed), self._find_blocked(changed)

    # Capacity

    def _find_tight(self, profile: int, consumed: Consumption) -> int:
        tight = 0
        for position, amounts in consumed.items():
            need = self.table.need(profile, position)
            if need is not None and not need.fits_beside(amounts):
                tight |= 1 << position
        return tight

    def _consumed(self, option: Option, position: int, state: State) -> tuple[Consumption, tuple[int, ...]]:
        table = self.table
        need = table.need(option.profile, position)
        assert need is not None, "a shareable device is picked only with the capacity that it needs"
        amounts = dict(state.consumed.get(position, NOTHING))
        for name, amount, _ in need.amounts:
            amounts[name] = amounts.get(name, 0) + amount
        tight = state.tight
        for profile in range(len(tight)):
            other = need if profile == option.profile else table.need(profile, position)
            if other is not None and not tight[profile] >> position & 1 and not other.fits_beside(amounts):
                tight = (*tight[:profile], tight[profile] | 1 << position, *tight[profile + 1 :])
        return {**state.consumed, position: amounts}, tight

    def amounts(self, option: Option, position: int, state: State) -> Iterator[tuple[str, object, int, int]]:
        """What picking the device takes at least: (name, from where, how much, how much is left there).

        Shares of a device draw its counters only once, so one more may draw nothing.
        """
        table = self.table
        bit = 1 << position
        if bit & table.drawing & ~table.shareable:
            for bucket, draw in table.draws[position]:
                left = state.buckets[bucket].left
                for counter, amount in draw.amounts:
                    yield table.counter_names[bucket][counter], bucket, amount, left[counter]
        if bit & table.shareable:
            need = table.need(option.profile, position)
            used = state.consumed.get(position, NOTHING)
            for name, amount, limit in need.amounts if need is not None else ():
                yield f"capacity {name}", position, amount, limit - used.get(name, 0)

    def shares_left(self, option: Option, position: int, state: State) -> int:
        """How many more times the option's capacity fits into the device."""
        need = self.table.need(option.profile, position)
        if need is None:
            return 0
        used = state.consumed.get(position, NOTHING)
        left = UNLIMITED
        for name, amount, limit in need.amounts:
            if amount:
                left = min(left, (limit - used.get(name, 0)) // amount)
        return max(left, 0)
