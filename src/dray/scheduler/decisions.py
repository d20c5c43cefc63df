"""What was decided for a pod: its node, and its claims as they were and as they shall be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from dray.api.claims import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from dray.api.pods import Pod
from dray.scheduler.podclaims import is_reserved_for


@dataclass(frozen=True)
class Decision:
    pod: Pod
    node: str
    before: tuple[ResourceClaim, ...]
    after: tuple[ResourceClaim, ...]

    @cached_property
    def changes(self) -> tuple[tuple[ResourceClaim, ResourceClaim], ...]:
        """The claims that have to be written."""
        pairs = zip(self.before, self.after, strict=True)
        return tuple((before, after) for before, after in pairs if before is not after)

    @cached_property
    def kept(self) -> tuple[ResourceClaim, ...]:
        """The claims that are reserved for the pod already, by an earlier attempt or by another scheduler."""
        pairs = zip(self.before, self.after, strict=True)
        return tuple(after for before, after in pairs if before is after)


def make_decision(
    pod: Pod, node: str, claims: Sequence[ResourceClaim], allocations: Sequence[AllocationResult], now: str
) -> Decision:
    """`allocations` are for the claims without one, in their order."""
    user = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
    given = iter(allocations)
    after = []
    for claim in claims:
        status = claim.status
        if status.allocation is None:
            allocation = next(given)
            if any(result.binding_conditions for result in allocation.devices.results):
                allocation = replace(allocation, allocation_timestamp=now)
            status = replace(status, allocation=allocation)
        if not is_reserved_for(claim, pod.metadata.uid):
            status = replace(status, reserved_for=(*status.reserved_for, user))
        after.append(claim if status is claim.status else replace(claim, status=status))
    return Decision(pod, node, tuple(claims), tuple(after))
