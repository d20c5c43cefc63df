"""Whether what a claim holds is its alone.

Several schedulers may give away the same device at the same time, in different claims: no conflict at the API server.
But all see the claims change in one order. So a scheduler that sees its own write has seen every earlier one, and
if something was given away twice by then, the later one gives it back.
"""

from __future__ import annotations

from collections.abc import Iterator

from dray.allocator.counters import CounterLayout
from dray.allocator.pools import Pool
from dray.allocator.state import PoolUse
from dray.api.claims import DeviceRequestAllocationResult, ResourceClaim
from dray.api.devices import PoolID
from dray.placement.picture import Picture


def find_overlap(picture: Picture, claim: ResourceClaim, node: str | None = None) -> str | None:
    """What the claim holds that others hold as well, in words, by all that is known now.

    With a node, capacity and counters as seen from there must suffice, too. That is for new allocations: what was
    given out before a driver took something away stays as it is.
    """
    if claim.status.allocation is None:
        return None
    results = [result for result in claim.status.allocation.devices.results if not result.admin_access]
    pools: dict[PoolID, list[DeviceRequestAllocationResult]] = {}
    for result in results:
        pools.setdefault(PoolID(result.driver, result.pool), []).append(result)
    for id, held in pools.items():
        use = picture.index.usage.of_id(id)
        if (problem := next(_held_twice(use, held), None)) is not None:
            return problem
        pool = None if node is None else _find_pool(picture, node, id)
        if pool is not None and (problem := next(_overdrawn(pool, use, held), None)) is not None:
            return problem
    return None


def _held_twice(use: PoolUse, results: list[DeviceRequestAllocationResult]) -> Iterator[str]:
    for result in results:
        holders = use.devices.get(result.device, 0)
        if holders > 1 or (holders and result.device in use.shares):
            yield f"device {result.device_id} was given to another claim as well"


def _find_pool(picture: Picture, node: str, id: PoolID) -> Pool | None:
    for reached in picture.index.inventory.reach(node).pools:
        if reached.pool.id == id:
            return reached.pool
    return None


def _overdrawn(pool: Pool, use: PoolUse, results: list[DeviceRequestAllocationResult]) -> Iterator[str]:
    draws_on_counters = False
    for result in results:
        position = pool.positions.get(result.device)
        if position is None:
            continue
        device = pool.devices[position]
        draws_on_counters = draws_on_counters or bool(device.consumes_counters)
        for name, consumed in use.capacity.get(result.device, {}).items():
            available = device.capacity.get(name)
            if available is not None and consumed > available.value.nano:
                yield f"{name} of device {result.device_id} was given to other claims as well"
    if draws_on_counters:
        buckets = CounterLayout.of(pool.counter_sets).buckets(pool, use)
        for counter_set, bucket in zip(pool.counter_sets, buckets, strict=True):
            if bucket.is_overdrawn:
                yield f"counters of {counter_set.name} in pool {pool.id} were given to other claims as well"
