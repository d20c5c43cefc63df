"""The claims of a pod: which they are, and whether the pod can be tried with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dray.api.claims import MAX_RESERVED_FOR, ResourceClaim
from dray.api.meta import ObjectKey
from dray.api.pods import ClaimNotCreated, Pod, UnknownClaimSource, claim_name

FindClaim = Callable[[ObjectKey], ResourceClaim | None]


@dataclass(frozen=True)
class Waiting:
    """The pod can't be tried before this changes (PreEnqueue of the KEP)."""

    reason: str
    claim: ObjectKey | None = None
    """The claim that it waits for; None: the pod itself must change."""


def claim_keys(pod: Pod) -> list[ObjectKey]:
    """The claims that the pod names, as far as they are known."""
    keys = []
    for entry in pod.spec.resource_claims:
        try:
            name = claim_name(pod, entry).name
        except (ClaimNotCreated, UnknownClaimSource):
            continue
        if name is not None:
            keys.append(ObjectKey(pod.metadata.namespace, name))
    return keys


def find_claims(pod: Pod, find: FindClaim) -> list[ResourceClaim] | Waiting:
    """All claims of the pod, in the order of its spec."""
    claims: list[ResourceClaim] = []
    for entry in pod.spec.resource_claims:
        try:
            name, must_check_owner = claim_name(pod, entry)
        except (ClaimNotCreated, UnknownClaimSource) as error:
            return Waiting(str(error))
        if name is None:
            continue
        key = ObjectKey(pod.metadata.namespace, name)
        claim = find(key)
        if claim is None:
            return Waiting(f'resourceclaim "{name}" not found', key)
        if claim.metadata.deletion_timestamp is not None:
            return Waiting(f'resourceclaim "{name}" is being deleted', key)
        if must_check_owner and not _is_owned_by(claim, pod):
            return Waiting(f"ResourceClaim {key} was not created for pod {pod.metadata.key} (pod is not owner)", key)
        if not _can_be_reserved(claim, pod):
            return Waiting(f'resourceclaim "{name}" is in use by as many consumers as it can have', key)
        claims.append(claim)
    return claims


def is_reserved_for(claim: ResourceClaim, pod_uid: str) -> bool:
    return any(user.uid == pod_uid for user in claim.status.reserved_for)


def _is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def _can_be_reserved(claim: ResourceClaim, pod: Pod) -> bool:
    return len(claim.status.reserved_for) < MAX_RESERVED_FOR or is_reserved_for(claim, pod.metadata.uid)
