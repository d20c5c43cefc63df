"""Shared counters of partitionable devices, and the groups of devices that may draw from one counter set together.

The state of one counter set is a `Bucket`: what is left of each counter, and which compatibility groups all devices
agree on that draw from it. A device may be taken if each of its buckets admits it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from dray.allocator.pools import Pool
from dray.allocator.state import PoolUse
from dray.api.devices import CounterSet, DeviceCounterConsumption

Groups = frozenset[str] | None
"""Groups that all devices of a counter set share; the empty set: they are all without groups; None: no device yet."""

_NOTHING_IN_COMMON: Final = frozenset({""})
"""Groups of devices that shouldn't have been allocated together: no device goes with them."""


class Draw(NamedTuple):
    """What one device takes from one counter set."""

    bucket: int
    """Position of the counter set within its pool."""
    amounts: tuple[tuple[int, int], ...]
    """(position of the counter within its set, nano units)."""
    groups: frozenset[str]


class Bucket(NamedTuple):
    left: tuple[int, ...]
    groups: Groups

    def admits(self, draw: Draw) -> bool:
        return self.has_room(draw) and shares_groups(self.groups, draw.groups)

    def has_room(self, draw: Draw) -> bool:
        left = self.left
        return all(amount <= left[counter] for counter, amount in draw.amounts)

    @property
    def is_overdrawn(self) -> bool:
        """Whether devices were allocated together that shouldn't have been."""
        return any(amount < 0 for amount in self.left) or self.groups == _NOTHING_IN_COMMON

    def after(self, draw: Draw) -> Bucket:
        left = list(self.left)
        for counter, amount in draw.amounts:
            left[counter] -= amount
        return Bucket(tuple(left), joined_groups(self.groups, draw.groups))


def shares_groups(present: Groups, groups: frozenset[str]) -> bool:
    """A device without groups goes only with devices without groups; others need a group in common."""
    return present is None or not (present or groups) or not present.isdisjoint(groups)


def joined_groups(present: Groups, groups: frozenset[str]) -> Groups:
    if present is None:
        return groups
    return (present & groups or _NOTHING_IN_COMMON) if present and groups else present


class CounterLayout(NamedTuple):
    """The counter sets of a pool: their names, the counters in each, and how much of each there is."""

    sets: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]

    @classmethod
    def of(cls, counter_sets: Sequence[CounterSet]) -> CounterLayout:
        return cls(
            tuple(
                (each.name, tuple(sorted((name, counter.value.nano) for name, counter in each.counters.items())))
                for each in counter_sets
            )
        )

    def draws(self, consumes: Sequence[DeviceCounterConsumption]) -> tuple[Draw, ...]:
        """What a device takes; its counters exist, or the pool would be invalid."""
        names = {name: position for position, (name, _) in enumerate(self.sets)}
        draws: list[Draw] = []
        for consumption in consumes:
            bucket = names[consumption.counter_set]
            counters = {name: position for position, (name, _) in enumerate(self.sets[bucket][1])}
            amounts = tuple((counters[name], counter.value.nano) for name, counter in consumption.counters.items())
            draws.append(Draw(bucket, amounts, frozenset(consumption.compatibility_groups)))
        return tuple(draws)

    def buckets(self, pool: Pool, use: PoolUse) -> tuple[Bucket, ...]:
        """What is left after all allocated devices of the pool, also those that only other nodes reach."""
        buckets = [Bucket(tuple(amount for _, amount in counters), None) for _, counters in self.sets]
        if use.is_empty:
            return tuple(buckets)
        for consumes in _allocated(pool, use):
            for draw in self.draws(consumes):
                buckets[draw.bucket] = buckets[draw.bucket].after(draw)
        return tuple(buckets)

    def describe(self, buckets: Sequence[Bucket]) -> Mapping[str, Mapping[str, int]]:
        """What is left, by name."""
        return {
            name: {counter: left for (counter, _), left in zip(counters, bucket.left, strict=True)}
            for (name, counters), bucket in zip(self.sets, buckets, strict=True)
        }


def _allocated(pool: Pool, use: PoolUse) -> list[Sequence[DeviceCounterConsumption]]:
    return [
        device.consumes_counters
        for slice_ in (*pool.slices, *pool.elsewhere)
        for device in slice_.spec.devices
        if device.consumes_counters and use.is_allocated(device.name)
    ]
