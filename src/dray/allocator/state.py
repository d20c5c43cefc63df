"""What is in use: devices, shares of devices, and consumed capacity, per pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from dray.allocator.layers import Layered
from dray.allocator.pools import Pool
from dray.api.claims import AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from dray.api.devices import DeviceID, PoolID, SharedDeviceID
from dray.api.meta import ObjectKey
from dray.api.quantities import Quantity

Consumed = Mapping[str, int]
"""Consumed capacity of one device: nano units by capacity name."""


@dataclass(frozen=True, slots=True)
class AllocatedState:
    """All that is in use, as one value."""

    devices: frozenset[DeviceID] = frozenset()
    """In use as a whole, by claims without admin access."""
    shares: frozenset[SharedDeviceID] = frozenset()
    capacity: Mapping[DeviceID, Mapping[str, Quantity]] = field(default_factory=dict)
    """Consumed by all shares of the device together."""

    @classmethod
    def of_claims(cls, claims: Iterable[ResourceClaim]) -> AllocatedState:
        """What the allocations of these claims keep in use. Admin access keeps nothing in use."""
        devices: set[DeviceID] = set()
        shares: set[SharedDeviceID] = set()
        capacity: dict[DeviceID, dict[str, Quantity]] = {}
        for claim in claims:
            for result in _holding(claim.status.allocation):
                if result.share_id is None:
                    devices.add(result.device_id)
                    continue
                shares.add(result.shared_device_id)
                consumed = capacity.setdefault(result.device_id, {}) if result.consumed_capacity else {}
                for name, quantity in result.consumed_capacity.items():
                    consumed[name] = consumed[name] + quantity if name in consumed else quantity
        return cls(frozenset(devices), frozenset(shares), capacity)


@dataclass(frozen=True, slots=True)
class PoolUse:
    """What is in use of one pool, by device name. Never changed: a change makes a new one."""

    devices: Mapping[str, int] = field(default_factory=dict)
    """In use as a whole; how many allocations say so."""
    shares: Mapping[str, int] = field(default_factory=dict)
    """How many shares there are."""
    capacity: Mapping[str, Consumed] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.devices or self.shares or self.capacity)

    def is_allocated(self, name: str) -> bool:
        return name in self.devices or name in self.shares or name in self.capacity


UNUSED: Final = PoolUse()


class Usage:
    """What is in use in the whole cluster: changed by claims that come and go; forkable."""

    def __init__(self) -> None:
        self._pools: Layered[PoolID, PoolUse] = Layered()
        self._claims: Layered[ObjectKey, AllocationResult] = Layered()

    def fork(self) -> Usage:
        other = Usage()
        other._pools = self._pools.fork()
        other._claims = self._claims.fork()
        return other

    def of(self, pool: Pool) -> PoolUse:
        return self._pools.get(pool.id) or UNUSED

    def of_id(self, id: PoolID) -> PoolUse:
        return self._pools.get(id) or UNUSED

    def allocation(self, key: ObjectKey) -> AllocationResult | None:
        return self._claims.get(key)

    def allocations(self) -> Iterable[tuple[ObjectKey, AllocationResult]]:
        return self._claims.items()

    def apply(self, key: ObjectKey, allocation: AllocationResult | None) -> set[PoolID]:
        """From now on the claim holds this allocation, and not the one it held before. Returns the pools touched."""
        old = self._claims.get(key)
        if old == allocation:
            return set()
        touched = self._change(old, -1) | self._change(allocation, +1)
        if allocation is None:
            self._claims.discard(key)
        else:
            self._claims[key] = allocation
        return touched

    def hold(self, allocation: AllocationResult) -> set[PoolID]:
        """Keep an allocation in use that no claim is known for, as simulations do."""
        return self._change(allocation, +1)

    def load(self, state: AllocatedState) -> None:
        """Add what a whole state says is in use."""
        pools: dict[tuple[str, str], tuple[dict[str, int], dict[str, int], dict[str, Consumed]]] = {}
        for driver, pool, name in state.devices:
            pools.setdefault((driver, pool), ({}, {}, {}))[0][name] = 1
        for driver, pool, name, _ in state.shares:
            shares = pools.setdefault((driver, pool), ({}, {}, {}))[1]
            shares[name] = shares.get(name, 0) + 1
        for (driver, pool, name), consumed in state.capacity.items():
            nano = {capacity: quantity.nano for capacity, quantity in consumed.items()}
            pools.setdefault((driver, pool), ({}, {}, {}))[2][name] = nano
        for key, parts in pools.items():
            self._pools[PoolID(*key)] = PoolUse(*parts)

    def _change(self, allocation: AllocationResult | None, sign: int) -> set[PoolID]:
        by_pool: dict[PoolID, list[DeviceRequestAllocationResult]] = {}
        for result in _holding(allocation):
            by_pool.setdefault(PoolID(result.driver, result.pool), []).append(result)
        for id, results in by_pool.items():
            changed = _changed(self._pools.get(id) or UNUSED, results, sign)
            if changed.is_empty:
                self._pools.discard(id)
            else:
                self._pools[id] = changed
        return set(by_pool)


def _holding(allocation: AllocationResult | None) -> Iterable[DeviceRequestAllocationResult]:
    return (result for result in allocation.devices.results if not result.admin_access) if allocation else ()


def _changed(use: PoolUse, results: list[DeviceRequestAllocationResult], sign: int) -> PoolUse:
    devices, shares, capacity = dict(use.devices), dict(use.shares), dict(use.capacity)
    for result in results:
        name = result.device
        if result.share_id is None:
            _count(devices, name, sign)
            continue
        _count(shares, name, sign)
        if result.consumed_capacity:
            consumed = dict(capacity.get(name, {}))
            for capacity_name, quantity in result.consumed_capacity.items():
                consumed[capacity_name] = consumed.get(capacity_name, 0) + sign * quantity.nano
            capacity[name] = consumed
        if name not in shares:
            capacity.pop(name, None)
    return PoolUse(devices, shares, capacity)


def _count(counts: dict[str, int], name: str, sign: int) -> None:
    counts[name] = counts.get(name, 0) + sign
    if counts[name] == 0:
        del counts[name]
