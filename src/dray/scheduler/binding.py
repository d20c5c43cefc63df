"""Writes a decision: finalizer, allocation and reservation of each claim, then the binding (PreBind and Bind).

Every write of a claim carries its UID and resourceVersion: a claim that somebody else changed meanwhile is a conflict,
and the pod is tried again from a fresh look. What was written before a failure is taken back as far as the KEP asks
(Unreserve): the reservation goes; an allocation that was written stays and is used or freed later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from dray.api.claims import CLAIM_FINALIZER, AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from dray.api.codec import decode_as, to_json
from dray.api.errors import NotFound, StatusError
from dray.api.meta import Json
from dray.api.pods import Pod
from dray.api.resources import PODS, RESOURCE_CLAIMS
from dray.api.times import format_time
from dray.runtime.client import Client, PatchType
from dray.runtime.clock import Clock
from dray.scheduler.podclaims import is_reserved_for

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decision:
    """A pod, its node, and its claims as they were (`before`) and as they shall be (`after`)."""

    pod: Pod
    node: str
    before: tuple[ResourceClaim, ...]
    after: tuple[ResourceClaim, ...]


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


class Binder:
    """`written(claim)` is told of every claim that was stored."""

    def __init__(self, client: Client, clock: Clock, written: Callable[[ResourceClaim], None]) -> None:
        self._client = client
        self._clock = clock
        self._written = written

    async def write_claims(self, decision: Decision) -> tuple[ResourceClaim, ...]:
        """Claims that the pod shares with nobody are written side by side. Raises StatusError."""
        changed = [
            (before, after)
            for before, after in zip(decision.before, decision.after, strict=True)
            if before is not after
        ]
        if len(changed) == 1:
            return (await self._write(*changed[0]),)
        results = await asyncio.gather(*(self._write(*pair) for pair in changed), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return tuple(result for result in results if not isinstance(result, BaseException))

    async def _write(self, before: ResourceClaim, after: ResourceClaim) -> ResourceClaim:
        metadata = before.metadata
        revision = metadata.resource_version
        if after.status.allocation is not None and CLAIM_FINALIZER not in metadata.finalizers:
            patch: Json = {
                "metadata": {
                    "uid": metadata.uid,
                    "resourceVersion": revision,
                    "finalizers": [*metadata.finalizers, CLAIM_FINALIZER],
                }
            }
            protected = await self._client.patch(RESOURCE_CLAIMS, metadata.name, patch, metadata.namespace)
            revision = protected["metadata"]["resourceVersion"]
        status = to_json(after.status)
        if before.status.allocation is not None:
            status = {"reservedFor": status["reservedFor"]}
        patch = {"metadata": {"uid": metadata.uid, "resourceVersion": revision}, "status": status}
        stored = await self._client.patch(
            RESOURCE_CLAIMS, metadata.name, patch, metadata.namespace, subresource="status"
        )
        claim = decode_as(ResourceClaim, stored)
        self._written(claim)
        return claim

    async def bind(self, decision: Decision) -> None:
        metadata = decision.pod.metadata
        binding: Json = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": decision.node},
        }
        await self._client.create(PODS, binding, metadata.namespace, subresource="binding", name=metadata.name)

    async def take_back(self, decision: Decision) -> None:
        """Remove the pod's reservations, so that others aren't locked out. Best effort; the pod's end does it too."""
        uid = decision.pod.metadata.uid
        for claim in decision.before:
            if is_reserved_for(claim, uid):
                continue  # it was there before this attempt
            try:
                await self._unreserve(claim, uid)
            except (StatusError, OSError) as error:
                log.info("claim %s: the reservation was not taken back: %s", claim.metadata.key, error)

    async def _unreserve(self, claim: ResourceClaim, uid: str) -> None:
        metadata = claim.metadata
        try:
            current = decode_as(
                ResourceClaim, await self._client.get(RESOURCE_CLAIMS, metadata.name, metadata.namespace)
            )
        except NotFound:
            return
        if current.metadata.uid != metadata.uid or not is_reserved_for(current, uid):
            return
        left = [to_json(user) for user in current.status.reserved_for if user.uid != uid]
        patch: Json = {
            "metadata": {"uid": metadata.uid, "resourceVersion": current.metadata.resource_version},
            "status": {"reservedFor": left or None},
        }
        stored = await self._client.patch(
            RESOURCE_CLAIMS, metadata.name, patch, metadata.namespace, subresource="status"
        )
        self._written(decode_as(ResourceClaim, stored))

    async def free(self, claim: ResourceClaim) -> None:
        """Clear an allocation that nobody uses and that stands in a pod's way (PostFilter)."""
        metadata = claim.metadata
        patch: Json = {
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "status": {"allocation": None, "devices": None},
        }
        stored = await self._client.patch(
            RESOURCE_CLAIMS, metadata.name, patch, metadata.namespace, subresource="status"
        )
        self._written(decode_as(ResourceClaim, stored))

    async def report(self, pod: Pod, reason: str, message: str) -> None:
        """The PodScheduled condition of a pod that can't be placed."""
        condition: Json = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": format_time(self._clock.now()),
        }
        if pod.metadata.generation:
            condition["observedGeneration"] = pod.metadata.generation
        patch: Json = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(
                PODS,
                pod.metadata.name,
                patch,
                pod.metadata.namespace,
                patch_type=PatchType.STRATEGIC,
                subresource="status",
            )
        except NotFound:
            return
