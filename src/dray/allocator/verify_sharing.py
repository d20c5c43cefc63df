"""For the checker: rules that hold for all claims together, because devices, counters and capacity are used up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dray.allocator.state import AllocatedState
from dray.allocator.verify_capacity import format_nano
from dray.allocator.verify_claims import Use
from dray.allocator.verify_pools import PoolView, Published
from dray.allocator.verify_rules import Rule, Violation
from dray.api.devices import Device, DeviceID, PoolID
from dray.api.features import FeatureGates

FOR_ITSELF = "for itself alone"


def check_sharing(
    uses: Sequence[Use], before: AllocatedState, views: Mapping[PoolID, PoolView], gates: FeatureGates
) -> Iterator[Violation]:
    """`views`: the pools of these uses, as seen from where they were allocated."""
    by_device: dict[DeviceID, list[Use]] = defaultdict(list)
    for use in uses:
        by_device[use.result.device_id].append(use)
    for device, users in by_device.items():
        yield from _check_device(device, users, before)
        if "DRAConsumableCapacity" in gates:
            yield from _check_capacity(device, users, before)
    if "DRAPartitionableDevices" not in gates:
        return
    by_pool: dict[PoolID, list[Use]] = defaultdict(list)
    for use in _first_uses(uses, before, gates):
        by_pool[PoolID(use.result.driver, use.result.pool)].append(use)
    in_use = before.devices | {DeviceID(*share[:3]) for share in before.shares} | before.capacity.keys()
    for pool, users in by_pool.items():
        view = views[pool]
        earlier = [
            device for name, device in view.everywhere.items() if DeviceID(pool.driver, pool.pool, name) in in_use
        ]
        yield from _check_counters(users, earlier, view)
        if "DRADeviceCompatibilityGroups" in gates:
            yield from _check_groups(users, earlier)


def _check_device(device: DeviceID, users: list[Use], before: AllocatedState) -> Iterator[Violation]:
    holders: dict[str, Use] = {}
    """By share ID, or for itself alone."""
    shared_before = {share.share_id for share in before.shares if DeviceID(*share[:3]) == device}
    for use in users:
        share = use.result.share_id or FOR_ITSELF
        # With admin access a device can be had that others have, but not twice in the same claim.
        rivals = [other for other in holders.values() if use.claim == other.claim or not other.is_admin]
        if use.is_admin:
            rivals = [other for other in rivals if use.claim == other.claim]
        elif device in before.devices:
            yield _violation(Rule.IN_USE, use, "is in use already")
        elif share in shared_before or (share == FOR_ITSELF and shared_before):
            yield _violation(Rule.IN_USE, use, "is shared by others already")
        for other in rivals:
            theirs = other.result.share_id or FOR_ITSELF
            if FOR_ITSELF in (share, theirs) or share == theirs:
                yield _violation(Rule.IN_USE, use, f"claim {other.claim}, request {other.result.request} has it too")
        holders.setdefault(f"{share} {use.claim} {use.result.request}", use)


def _check_capacity(device: DeviceID, users: list[Use], before: AllocatedState) -> Iterator[Violation]:
    published = next((use.published for use in users if use.published is not None), None)
    if published is None or not published.device.allow_multiple_allocations:
        return
    consumed = {name: quantity.nano for name, quantity in before.capacity.get(device, {}).items()}
    for use in users:
        for name, quantity in use.result.consumed_capacity.items():
            consumed[name] = consumed.get(name, 0) + quantity.nano
            available = published.device.capacity.get(name)
            if available is not None and consumed[name] > available.value.nano:
                detail = f"{name}: {format_nano(consumed[name])} consumed, the device has {available.value}"
                yield _violation(Rule.CAPACITY, use, detail)


def _first_uses(uses: Iterable[Use], before: AllocatedState, gates: FeatureGates) -> Iterator[Use]:
    """Uses that draw on counters: a further share of a device doesn't."""
    shared = {DeviceID(*share[:3]) for share in before.shares} | before.capacity.keys()
    for use in uses:
        if use.published is None:
            continue
        if "DRAConsumableCapacity" in gates and use.published.device.allow_multiple_allocations:
            if use.result.device_id in shared:
                continue
            shared.add(use.result.device_id)
        if use.published.device.consumes_counters:
            yield use


def _check_counters(users: list[Use], earlier: list[Device], view: PoolView) -> Iterator[Violation]:
    consumed: dict[tuple[str, str], int] = defaultdict(int)
    for device in [*earlier, *(each.device for _, each in _known(users))]:
        for use in device.consumes_counters:
            for name, counter in use.counters.items():
                consumed[use.counter_set, name] += counter.value.nano
    for (counter_set, name), amount in consumed.items():
        available = view.counters.get(counter_set, {}).get(name)
        if available is not None and amount > available.value.nano:
            blamed = [each for each, published in _known(users) if _draws_on(published.device, counter_set)] or users
            detail = f"{counter_set}/{name}: {format_nano(amount)} consumed, there are {available.value}"
            yield _violation(Rule.COUNTERS, blamed[-1], detail)


def _known(users: list[Use]) -> list[tuple[Use, Published]]:
    return [(use, use.published) for use in users if use.published is not None]


def _draws_on(device: Device, counter_set: str) -> bool:
    return any(use.counter_set == counter_set for use in device.consumes_counters)


def _check_groups(users: list[Use], earlier: list[Device]) -> Iterator[Violation]:
    members: dict[str, list[frozenset[str]]] = defaultdict(list)
    for device in earlier:
        for counter_set, groups in _groups(device):
            members[counter_set].append(groups)
    # What was allocated while the slices said something else is no fault of the new ones.
    broken = {counter_set for counter_set, groups in members.items() if not _go_together(groups)}
    for use, published in _known(users):
        for counter_set, groups in _groups(published.device):
            members[counter_set].append(groups)
            if counter_set not in broken and not _go_together(members[counter_set]):
                broken.add(counter_set)
                detail = (
                    f"in {counter_set}, its groups ({', '.join(sorted(groups)) or 'none'}) don't go with the others"
                )
                yield _violation(Rule.COMPATIBILITY, use, detail)


def _groups(device: Device) -> list[tuple[str, frozenset[str]]]:
    return [(use.counter_set, frozenset(use.compatibility_groups)) for use in device.consumes_counters]


def _go_together(groups: list[frozenset[str]]) -> bool:
    """Devices without groups among themselves; devices with groups if they have one in common."""
    return not any(groups) or bool(frozenset.intersection(*groups))


def _violation(rule: Rule, use: Use, detail: str) -> Violation:
    return Violation(rule, use.claim, detail, use.result.request, use.result.device_id)
