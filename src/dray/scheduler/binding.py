"""Writes a decision: finalizer, allocation and reservation of each claim, then the binding (PreBind and Bind).

Every write of a claim carries its UID and resourceVersion: a claim that somebody else changed meanwhile is a conflict,
and the pod is tried again from a fresh look. A write whose answer gets lost is followed up until it is known what
became of it, because its devices may be given to others only if it certainly didn't happen.

A claim may be reserved for the pod before we come: by an earlier attempt, or by another scheduler, which may be about
to take it back. Who goes on with such a reservation leaves a mark in the claim first. So either the mark meets a claim
that changed, or the one who takes back does; and who meets a changed claim leaves it alone.

What was written before a failure is taken back as far as the KEP asks (Unreserve): the reservation goes; an allocation
stays and is used or freed later, unless the devices turned out to be of no use.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final

from dray.api.claims import CLAIM_FINALIZER, ResourceClaim
from dray.api.codec import decode_as, decode_served, to_json
from dray.api.errors import NotFound, StatusError
from dray.api.meta import Json
from dray.api.pods import Pod, view_pod
from dray.api.resources import PODS, RESOURCE_CLAIMS
from dray.api.times import format_time
from dray.runtime.certainty import SureStep, get_surely, patch_surely, write_surely
from dray.runtime.client import Client, PatchStep, PatchType
from dray.runtime.clock import Clock
from dray.scheduler.decisions import Decision
from dray.scheduler.podclaims import is_reserved_for

log = logging.getLogger(__name__)


ADOPTED: Final = "dray.dev/adopted"
"""Annotation: changes whenever a scheduler goes on with a reservation that it found."""

ClaimHandler = Callable[[ResourceClaim], None]


class Binder:
    """`written` is told of every claim that was stored as it should be, `noted` of those that were stored in part."""

    def __init__(self, client: Client, clock: Clock, *, written: ClaimHandler, noted: ClaimHandler) -> None:
        self._client = client
        self._clock = clock
        self._written = written
        self._noted = noted

    async def write_claims(
        self, decision: Decision, written: list[ResourceClaim], adopted: list[ResourceClaim]
    ) -> None:
        """All side by side. Raises StatusError; the lists get the claims as they were stored, also then."""
        if len(decision.changes) == 1 and not decision.kept:
            await self._write(*decision.changes[0], decision.pod, written, adopted)
            return
        results = await asyncio.gather(
            *(self._write(before, after, decision.pod, written, adopted) for before, after in decision.changes),
            *(self._adopt(claim, decision.pod, adopted) for claim in decision.kept),
            return_exceptions=True,
        )
        for result in results:
            if result is not None:
                raise result

    async def _write(
        self,
        before: ResourceClaim,
        after: ResourceClaim,
        pod: Pod,
        written: list[ResourceClaim],
        adopted: list[ResourceClaim],
    ) -> None:
        metadata = before.metadata
        steps: list[SureStep] = []
        if after.status.allocation is not None and CLAIM_FINALIZER not in metadata.finalizers:
            finalizers: Json = {"finalizers": [*metadata.finalizers, CLAIM_FINALIZER]}

            def is_protected(found: Json) -> bool:
                claim = decode_as(ResourceClaim, found)
                is_same = claim.metadata.uid == metadata.uid and claim.status == before.status
                return is_same and CLAIM_FINALIZER in claim.metadata.finalizers

            steps.append(SureStep(PatchStep({"metadata": finalizers}), is_protected))
        status = to_json(after.status)
        if before.status.allocation is not None:
            status = {"reservedFor": status["reservedFor"]}

        was_found = False

        def is_done(found: Json) -> bool:
            nonlocal was_found
            claim = decode_as(ResourceClaim, found)
            is_same = claim.metadata.uid == metadata.uid and claim.status.allocation == after.status.allocation
            was_found = is_same and is_reserved_for(claim, pod.metadata.uid)
            return was_found

        steps.append(SureStep(PatchStep({"status": status}, "status"), is_done))
        first = steps[0].step.provided(metadata.uid, metadata.resource_version)
        steps[0] = steps[0]._replace(step=first)
        stored = await patch_surely(
            self._client,
            self._clock,
            RESOURCE_CLAIMS,
            metadata.name,
            steps,
            metadata.namespace,
            halfway=lambda found: self._noted(decode_served(ResourceClaim, found)),
        )
        claim = decode_served(ResourceClaim, stored)
        self._written(claim)
        if was_found:  # another scheduler may have decided the same, and have been the one who wrote
            await self._adopt(claim, pod, adopted)
        else:
            written.append(claim)

    async def _adopt(self, claim: ResourceClaim, pod: Pod, adopted: list[ResourceClaim]) -> None:
        mark = str(uuid.uuid4())
        step = PatchStep({"metadata": {"annotations": {ADOPTED: mark}}})

        def is_done(found: ResourceClaim) -> bool:
            return found.metadata.annotations.get(ADOPTED) == mark and is_reserved_for(found, pod.metadata.uid)

        adopted.append(await self._patch(claim, step, is_done))

    async def bind(self, decision: Decision) -> None:
        """Raises StatusError if it certainly doesn't happen: until then the claims must stay as they are."""
        metadata = decision.pod.metadata
        binding: Json = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": decision.node},
        }

        def send() -> Awaitable[Json]:
            return self._client.create(PODS, binding, metadata.namespace, subresource="binding", name=metadata.name)

        def look() -> Awaitable[Json]:
            return get_surely(self._client, self._clock, PODS, metadata.name, metadata.namespace)

        def is_done(found: Json) -> bool:
            pod = view_pod(found)
            return pod.metadata.uid == metadata.uid and pod.spec.node_name == decision.node

        try:  # of all copies only one finds the pod without a node
            await write_surely(self._clock, f"binding of pod {metadata.key}", send, look, is_done)
        except StatusError:
            if await self._find_node(decision.pod) != decision.node:
                raise

    async def _find_node(self, pod: Pod) -> str:
        """Where the pod is by now; empty if it is nowhere, or gone."""
        metadata = pod.metadata
        try:
            current = view_pod(await get_surely(self._client, self._clock, PODS, metadata.name, metadata.namespace))
        except NotFound:
            return ""
        return current.spec.node_name if current.metadata.uid == metadata.uid else ""

    async def take_back(self, pod: Pod, claims: Iterable[ResourceClaim], *, deallocate: bool) -> None:
        """Remove the reservations for the pod; with `deallocate` also allocations that nobody else uses.

        If somebody else bound the pod meanwhile, everything stays, and so does a claim that somebody else changed: it
        may be them now who rely on it. When this returns, it is certain what became of it: the next attempt must not
        build on a reservation that is yet to go.
        """
        try:
            if await self._find_node(pod):
                return
        except StatusError as error:
            log.info("pod %s: its reservations stay: %s", pod.metadata.key, error)
            return
        for claim in claims:
            try:
                await self._unreserve(claim, pod.metadata.uid, deallocate=deallocate)
            except StatusError as error:
                log.info("pod %s: its reservation of %s stays: %s", pod.metadata.key, claim.metadata.key, error)

    async def _unreserve(self, claim: ResourceClaim, uid: str, *, deallocate: bool) -> None:
        left = [to_json(user) for user in claim.status.reserved_for if user.uid != uid]
        status: Json = {"reservedFor": left or None}
        if deallocate and not left:
            status |= {"allocation": None, "devices": None}
        await self._write_status(claim, status, is_done=lambda found: not is_reserved_for(found, uid))

    async def free(self, claim: ResourceClaim) -> None:
        """Clear an allocation that nobody uses and that stands in a pod's way (PostFilter)."""
        status: Json = {"reservedFor": None, "allocation": None, "devices": None}
        await self._write_status(claim, status, is_done=lambda found: found.status.allocation is None)

    async def _write_status(
        self, claim: ResourceClaim, status: Json, *, is_done: Callable[[ResourceClaim], bool]
    ) -> None:
        with suppress(NotFound):
            await self._patch(claim, PatchStep({"status": status}, "status"), is_done)

    async def _patch(
        self, claim: ResourceClaim, step: PatchStep, is_done: Callable[[ResourceClaim], bool]
    ) -> ResourceClaim:
        metadata = claim.metadata

        def is_written(found: Json) -> bool:
            current = decode_as(ResourceClaim, found)
            return current.metadata.uid == metadata.uid and is_done(current)

        stored = await patch_surely(
            self._client,
            self._clock,
            RESOURCE_CLAIMS,
            metadata.name,
            [SureStep(step.provided(metadata.uid, metadata.resource_version), is_written)],
            metadata.namespace,
            halfway=lambda found: None,
        )
        claim = decode_as(ResourceClaim, stored)
        self._written(claim)
        return claim

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
