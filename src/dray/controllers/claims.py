"""The ResourceClaim controller (KEP-4381, kube-controller-manager).

Two kinds of keys share one queue. A *pod* key makes claims from templates and notes their names in the pod's status;
a *claim* key removes reservations of pods that are gone or done, then the allocation, then the finalizer, and deletes
generated claims that will not be used again.

Claims are made before their name is in the pod's status. A controller that is killed in between finds the claim
again by its owner and its annotation and uses it. A name that is in the status stays there; if, after an answer that
got lost, a second claim was made, it is deleted.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal, NamedTuple

from dray.api.claims import (
    CLAIM_FINALIZER,
    MAX_RESERVED_FOR,
    POD_CLAIM_NAME_ANNOTATION,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from dray.api.codec import to_json
from dray.api.errors import NotFound, StatusError
from dray.api.meta import Json, ObjectKey
from dray.api.pods import Pod, PodResourceClaim, is_terminal, view_pod
from dray.api.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dray.controllers.metrics import ClaimMetrics
from dray.runtime.client import Client, PatchStep, PatchType
from dray.runtime.events import EventRecorder, ObjectReference
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue
from dray.runtime.recent import Recent

MAX_GENERATED_BASE = 63 - 5 - 1
"""Room for the random suffix in the name of a generated claim."""

FIELD_MANAGER = "ResourceClaimController"


class ClaimKey(NamedTuple):
    kind: Literal["pod", "claim"]
    key: ObjectKey


class OwnershipConflict(Exception):
    """A claim of the expected name exists but doesn't belong to the pod."""


class ClaimController:
    def __init__(
        self,
        client: Client,
        pods: Informer[Pod],
        claims: Informer[ResourceClaim],
        templates: Informer[ResourceClaimTemplate],
        recorder: EventRecorder,
        metrics: ClaimMetrics,
        queue: WorkQueue[ClaimKey],
    ) -> None:
        self._client = client
        self._pods = pods
        self._claims = claims
        self._templates = templates
        self._recorder = recorder
        self._metrics = metrics
        self._queue = queue
        self._made: dict[tuple[str, str], str] = {}
        """Claims made by us that our copy of the cluster doesn't show yet, by pod UID and entry."""
        self._gone: Recent[str] = Recent()
        """UIDs of pods whose end we saw: no need to ask the server for those."""
        pods.add_index("template", lambda pod: _templates_of(pod))
        claims.add_index("owner", lambda claim: [ref.uid for ref in claim.metadata.owner_references if ref.controller])
        pods.add_handler(self._pod_changed)
        claims.add_handler(self._claim_changed)
        templates.add_handler(self._template_changed)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            if _uses_claims(old):
                self._gone.add(old.metadata.uid)
                self._look_at_claims_of(old)
            old = None
        if new is None or not _uses_claims(new):
            return
        if is_terminal(new) or _will_never_run(new):
            self._look_at_claims_of(new)
        if old is None or old.status.resource_claim_statuses != new.status.resource_claim_statuses:
            # Claims may have been seen before the pod that they were made for, or before it said which one it uses.
            for claim in self._claims.by_index("owner", new.metadata.uid):
                if not self._is_in_order(claim):
                    self._queue.add(ClaimKey("claim", claim.metadata.key))
        if _may_need_claims(old, new) and not self._is_served(new):
            self._queue.add(ClaimKey("pod", new.metadata.key))

    def _look_at_claims_of(self, pod: Pod) -> None:
        for name in _claim_names(pod):
            self._queue.add(ClaimKey("claim", ObjectKey(pod.metadata.namespace, name)))

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self._metrics.claim_changed(old, new)
        claim = new or old
        assert claim is not None
        if new is not None and _may_be_released(old, new) and not self._is_in_order(new):
            self._queue.add(ClaimKey("claim", claim.metadata.key))
        if old is not None and new is not None:
            return
        for reference in claim.metadata.owner_references:
            if reference.kind == "Pod" and reference.controller:
                entry = claim.metadata.annotations.get(POD_CLAIM_NAME_ANNOTATION, "")
                made = self._made.pop((reference.uid, entry), None)
                # The claim that we just made goes on in the same work; one of a pod that is gone concerns nobody.
                if reference.uid not in self._gone and (new is None or made != claim.metadata.name):
                    self._queue.add(ClaimKey("pod", ObjectKey(claim.metadata.namespace, reference.name)))

    def _template_changed(self, old: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> None:
        if old is None and new is not None:
            for pod in self._pods.by_index("template", str(new.metadata.key)):
                self._queue.add(ClaimKey("pod", pod.metadata.key))

    async def reconcile(self, item: ClaimKey) -> float | None:
        match item.kind:
            case "pod":
                await self._sync_pod(item.key)
            case "claim":
                await self._sync_claim(item.key)
        return None

    def _is_served(self, pod: Pod) -> bool:
        """Whether, by our copy of the cluster, the pod has a node and all its claims, reserved for it."""
        names = _claim_names(pod)
        if not pod.spec.node_name or len(names) < len(pod.spec.resource_claims):
            return False
        claims = (self._claims.get(ObjectKey(pod.metadata.namespace, name)) for name in names)
        return all(
            claim is not None and any(user.uid == pod.metadata.uid for user in claim.status.reserved_for)
            for claim in claims
        )

    def _is_in_order(self, claim: ResourceClaim) -> bool:
        """Whether, by our copy of the cluster, there is nothing to release or to delete."""
        if claim.metadata.deletion_timestamp is not None:
            return False
        for user in claim.status.reserved_for:
            if not user.api_group and user.resource == "pods":
                pod = self._pods.get(ObjectKey(claim.metadata.namespace, user.name))
                if pod is None or not _is_user(pod, user):
                    return False
        return bool(claim.status.reserved_for) or not (self._owner_is_done(claim) or self._is_surplus(claim))

    # Claims for pods

    async def _sync_pod(self, key: ObjectKey) -> None:
        pod = self._pods.get(key)
        if pod is None or pod.metadata.deletion_timestamp or is_terminal(pod):
            return
        names: dict[str, str] = {}
        failure: Exception | None = None
        for entry in pod.spec.resource_claims:
            if entry.resource_claim_template_name is None:
                continue
            try:
                names[entry.name] = await self._ensure_claim(pod, entry)
            except (StatusError, OwnershipConflict) as error:
                failure = error
                self._metrics.create_failures.inc()
                self._recorder.warning(
                    _reference(pod), "FailedResourceClaimCreation", f"PodResourceClaim {entry.name}: {error}"
                )
        known: dict[str, str | None] = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
        if any(known.get(entry) != name for entry, name in names.items()):
            await self._note_names(pod, {**known, **names})
        if failure is not None and not isinstance(failure, NotFound):  # a missing template wakes the pod itself
            raise failure
        if pod.spec.node_name:
            await self._reserve_for_scheduled(pod)

    async def _reserve_for_scheduled(self, pod: Pod) -> None:
        """Somebody chose the node without a scheduler that knows claims: reserve those that are allocated already."""
        for name in _claim_names(pod):
            claim = self._claims.get(ObjectKey(pod.metadata.namespace, name))
            if claim is None or claim.status.allocation is None or claim.metadata.deletion_timestamp is not None:
                continue
            if any(user.uid == pod.metadata.uid for user in claim.status.reserved_for):
                continue
            if len(claim.status.reserved_for) < MAX_RESERVED_FOR:
                user = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
                await self._write(claim, [_status_step([*claim.status.reserved_for, user], deallocate=False)])

    async def _ensure_claim(self, pod: Pod, entry: PodResourceClaim) -> str:
        """The claim of the entry: the one that the status names, else one that was made before, else a new one."""
        made = {
            claim.metadata.name: claim.metadata.creation_timestamp or ""
            for claim in self._claims.by_index("owner", pod.metadata.uid)
            if claim.metadata.annotations.get(POD_CLAIM_NAME_ANNOTATION) == entry.name
        }
        noted = _noted_name(pod, entry.name)
        if noted and (noted in made or await self._find_noted(pod, noted)):
            return noted
        if made:  # several if the answer to the creation of one got lost
            return min(made, key=lambda name: (made[name], name))
        if (unseen := self._made.get((pod.metadata.uid, entry.name))) is not None:
            if await self._find_noted(pod, unseen):
                return unseen
            del self._made[pod.metadata.uid, entry.name]  # it was deleted before we knew its name
        template_name = entry.resource_claim_template_name
        assert template_name is not None
        template = self._templates.get(ObjectKey(pod.metadata.namespace, template_name))
        if template is None:
            raise NotFound(
                f'resource claim template "{template_name}": '
                f'resourceclaimtemplate.{RESOURCE_CLAIM_TEMPLATES.group} "{template_name}" not found'
            )
        created = await self._client.create(
            RESOURCE_CLAIMS, _claim_from(template, pod, entry.name), pod.metadata.namespace
        )
        self._metrics.creates.inc()
        name = str(created["metadata"]["name"])
        self._made[pod.metadata.uid, entry.name] = name
        return name

    async def _find_noted(self, pod: Pod, name: str) -> bool:
        """Whether the claim that the status names exists, by the server: our copy may not have it yet."""
        try:
            claim = await self._client.get(RESOURCE_CLAIMS, name, pod.metadata.namespace)
        except NotFound:
            return False
        owners = claim["metadata"].get("ownerReferences") or ()
        if not any(owner.get("uid") == pod.metadata.uid and owner.get("controller") for owner in owners):
            raise OwnershipConflict(f'resource claim "{name}" was not created for this pod: it is owned by another')
        return True

    async def _note_names(self, pod: Pod, names: dict[str, str | None]) -> None:
        entries = [entry.name for entry in pod.spec.resource_claims if entry.name in names]
        statuses: list[Json] = []
        for entry in entries:
            status: Json = {"name": entry}
            if names[entry] is not None:
                status["resourceClaimName"] = names[entry]
            statuses.append(status)
        # Only if the pod is as we know it: a name that is noted already must not be replaced by another.
        metadata: Json = {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version}
        patch: Json = {"metadata": metadata, "status": {"resourceClaimStatuses": statuses}}
        await self._client.patch(
            PODS,
            pod.metadata.name,
            patch,
            pod.metadata.namespace,
            patch_type=PatchType.STRATEGIC,
            subresource="status",
            field_manager=FIELD_MANAGER,
        )

    # Claims that are no longer needed

    async def _sync_claim(self, key: ObjectKey) -> None:
        claim = self._claims.get(key)
        if claim is None:
            return
        valid = [user for user in claim.status.reserved_for if await self._still_uses(claim, user)]
        released = len(valid) < len(claim.status.reserved_for)
        is_deleted = claim.metadata.deletion_timestamp is not None
        is_unused = not valid and (released or is_deleted)
        is_protected = CLAIM_FINALIZER in claim.metadata.finalizers
        deallocate = is_unused and is_protected
        steps: list[PatchStep] = []
        if released or (deallocate and claim.status.allocation is not None):
            steps.append(_status_step(valid, deallocate=deallocate))
        if deallocate:
            left = [name for name in claim.metadata.finalizers if name != CLAIM_FINALIZER]
            steps.append(PatchStep({"metadata": {"finalizers": left or None}}))
        if steps:
            await self._write(claim, steps)
        if not valid and not is_deleted and (self._owner_is_done(claim) or self._is_surplus(claim)):
            await self._delete(claim)

    async def _still_uses(self, claim: ResourceClaim, user: ResourceClaimConsumerReference) -> bool:
        """Whether a reservation stands. Consumers that aren't pods are for whoever added them."""
        if user.api_group or user.resource != "pods":
            return True
        if user.uid in self._gone:
            return False
        key = ObjectKey(claim.metadata.namespace, user.name)
        pod = self._pods.get(key)
        if pod is None or pod.metadata.uid != user.uid:
            # Our copy may lag behind a scheduler's: believe only the server that a pod is gone.
            try:
                pod = view_pod(await self._client.get(PODS, key.name, key.namespace))
            except NotFound:
                return False
        return _is_user(pod, user)

    async def _write(self, claim: ResourceClaim, steps: list[PatchStep]) -> None:
        """On condition that the claim is as we know it."""
        metadata = claim.metadata
        steps[0] = steps[0].provided(metadata.uid, metadata.resource_version)
        with suppress(NotFound):
            await self._client.patch_steps(RESOURCE_CLAIMS, metadata.name, steps, metadata.namespace)

    def _owner_is_done(self, claim: ResourceClaim) -> bool:
        """Whether it was made for a pod that is gone, will not run again, or was replaced by another of its name.

        If we never saw that pod, the garbage collector acts.
        """
        for owner in claim.metadata.owner_references:
            if owner.controller and owner.kind == "Pod":
                if owner.uid in self._gone:
                    return True
                pod = self._pods.get(ObjectKey(claim.metadata.namespace, owner.name))
                return pod is not None and (pod.metadata.uid != owner.uid or is_terminal(pod) or _will_never_run(pod))
        return False

    def _is_surplus(self, claim: ResourceClaim) -> bool:
        """Whether it was made for a pod that uses another one: the answer to its creation got lost."""
        entry = claim.metadata.annotations.get(POD_CLAIM_NAME_ANNOTATION)
        owner = next((owner for owner in claim.metadata.owner_references if owner.controller), None)
        if entry is None or owner is None or owner.kind != "Pod":
            return False
        pod = self._pods.get(ObjectKey(claim.metadata.namespace, owner.name))
        if pod is None or pod.metadata.uid != owner.uid:
            return False
        noted = _noted_name(pod, entry)
        return noted is not None and noted != claim.metadata.name

    async def _delete(self, claim: ResourceClaim) -> None:
        with suppress(NotFound):
            await self._client.delete(
                RESOURCE_CLAIMS, claim.metadata.name, claim.metadata.namespace, uid=claim.metadata.uid
            )


def _uses_claims(pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None


def _may_need_claims(old: Pod | None, new: Pod) -> bool:
    """Whether a change of a pod can leave it without a claim, or with one that isn't reserved for it."""
    if old is None or old.spec.node_name != new.spec.node_name or old.metadata.uid != new.metadata.uid:
        return True
    noted = {status.name for status in new.status.resource_claim_statuses}
    return any(e.resource_claim_template_name is not None and e.name not in noted for e in new.spec.resource_claims)


def _may_be_released(old: ResourceClaim | None, new: ResourceClaim) -> bool:
    """Whether a change of a claim can leave it with reservations or an allocation that nobody needs."""
    if old is None or new.metadata.deletion_timestamp is not None:
        return True
    return old.status.reserved_for != new.status.reserved_for or old.metadata.uid != new.metadata.uid


def _status_step(users: list[ResourceClaimConsumerReference], *, deallocate: bool) -> PatchStep:
    status: Json = {"reservedFor": [to_json(user) for user in users] or None}
    if deallocate:
        status |= {"allocation": None, "devices": None}
    return PatchStep({"status": status}, "status")


def _is_user(pod: Pod, user: ResourceClaimConsumerReference) -> bool:
    return pod.metadata.uid == user.uid and not is_terminal(pod) and not _will_never_run(pod)


def _will_never_run(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None and not pod.spec.node_name


def _templates_of(pod: Pod) -> list[str]:
    names = (entry.resource_claim_template_name for entry in pod.spec.resource_claims)
    return [str(ObjectKey(pod.metadata.namespace, name)) for name in names if name is not None]


def _claim_names(pod: Pod) -> list[str]:
    """The claims that the pod uses, as far as they are known."""
    names = [entry.resource_claim_name for entry in pod.spec.resource_claims]
    names += [status.resource_claim_name for status in pod.status.resource_claim_statuses]
    if (extended := pod.status.extended_resource_claim_status) is not None:
        names.append(extended.resource_claim_name)
    return [name for name in names if name]


def _noted_name(pod: Pod, entry: str) -> str | None:
    return next((s.resource_claim_name for s in pod.status.resource_claim_statuses if s.name == entry), None)


def _reference(pod: Pod) -> ObjectReference:
    return ObjectReference("v1", "Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def _claim_from(template: ResourceClaimTemplate, pod: Pod, entry: str) -> Json:
    wanted = template.spec.metadata
    metadata: Json = {
        "generateName": f"{pod.metadata.name}-{entry}"[:MAX_GENERATED_BASE] + "-",
        "annotations": {**wanted.annotations, POD_CLAIM_NAME_ANNOTATION: entry},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.metadata.name,
                "uid": pod.metadata.uid,
                "controller": True,
            }
        ],
    }
    if wanted.labels:
        metadata["labels"] = wanted.labels
    spec: Json = to_json(template.spec.spec)
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": metadata,
        "spec": spec,
    }
