"""Decisions that are made but not yet seen in the cluster: claims and pods as they will be.

The cluster's news about an object may be older than what we decided or wrote. So while a decision is under way, news
about its objects doesn't replace it, and afterwards only news that is newer than our own write does. Nothing that
is in flight is ever given out twice.
"""

from __future__ import annotations

from dray.api.claims import ResourceClaim
from dray.api.meta import ObjectKey


class ClaimCache:
    """Claims as the scheduler believes them to be."""

    def __init__(self) -> None:
        self._seen: dict[ObjectKey, ResourceClaim] = {}
        self._assumed: dict[ObjectKey, ResourceClaim] = {}
        self._in_flight: dict[ObjectKey, str] = {}

    def get(self, key: ObjectKey) -> ResourceClaim | None:
        return self._assumed.get(key) or self._seen.get(key)

    def is_in_flight(self, key: ObjectKey) -> bool:
        return key in self._in_flight

    def observe(self, claim: ResourceClaim) -> ResourceClaim:
        """News from the cluster. Returns what is believed from now on."""
        key = claim.metadata.key
        self.note(claim)
        claim = self._seen[key]
        assumed = self._assumed.get(key)
        if assumed is None:
            return claim
        if assumed.metadata.uid != claim.metadata.uid:  # deleted and made again: our decision was about the old one
            self.forget(key)
            return claim
        if key in self._in_flight:
            # Somebody else allocated it: our write can only fail, and theirs must not be hidden from us until then.
            is_over = claim.status.allocation is not None and claim.status.allocation != assumed.status.allocation
        else:
            is_over = _is_at_least(claim, assumed)
        if not is_over:
            return assumed
        del self._assumed[key]
        return claim

    def note(self, claim: ResourceClaim) -> None:
        """What the cluster says of a claim, from an event or in an answer: the newer counts."""
        seen = self._seen.get(claim.metadata.key)
        if seen is None or seen.metadata.uid != claim.metadata.uid or _is_at_least(claim, seen):
            self._seen[claim.metadata.key] = claim

    def observe_gone(self, key: ObjectKey) -> None:
        self._seen.pop(key, None)
        self.forget(key)

    def assume(self, claim: ResourceClaim, pod_uid: str) -> None:
        """From now on the claim is as given, until it is written or given up."""
        self._assumed[claim.metadata.key] = claim
        self._in_flight[claim.metadata.key] = pod_uid

    def written(self, claim: ResourceClaim) -> None:
        """Our write went through: this is the claim until the cluster tells something newer."""
        key = claim.metadata.key
        self._in_flight.pop(key, None)
        seen = self._seen.get(key)
        if seen is None or (seen.metadata.uid == claim.metadata.uid and _is_at_least(seen, claim)):
            self._assumed.pop(key, None)
        else:
            self._assumed[key] = claim

    def forget(self, key: ObjectKey) -> ResourceClaim | None:
        """Give the decision up. Returns what the cluster last said."""
        self._assumed.pop(key, None)
        self._in_flight.pop(key, None)
        return self._seen.get(key)


def _is_at_least(claim: ResourceClaim, other: ResourceClaim) -> bool:
    """Revisions of one resource are ordered numbers."""
    return int(claim.metadata.resource_version or 0) >= int(other.metadata.resource_version or 0)
