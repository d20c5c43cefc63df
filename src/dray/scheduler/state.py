"""Keeps the picture of the cluster and the queue up to date: what each event changes, and whom it can help.

Handlers run in the event loop, one after the other, and cost what changed. An event that can't help a waiting pod
wakes nobody:

| event | helps pods that wait for |
|---|---|
| a claim is deallocated or deleted, a slice comes, changes or goes, a taint rule changes | devices |
| a class comes or changes | devices |
| a claim comes or changes | that claim |
| a pod leaves a node, a node gets larger | room |
| a node comes, or its labels, taints or schedulability change | nodes |
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from typing import NamedTuple

from dray.api.claims import ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.features import FeatureGates
from dray.api.meta import ObjectKey
from dray.api.nodes import Node
from dray.api.pods import DEFAULT_SCHEDULER, Pod, is_terminal
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.placement.overlaps import find_overlap
from dray.placement.picture import Picture
from dray.placement.pods import PodFacts, read_pod
from dray.runtime.clock import Clock
from dray.scheduler.assumptions import ClaimCache
from dray.scheduler.confirmations import Confirmations, DevicesTaken
from dray.scheduler.decisions import Decision
from dray.scheduler.podclaims import Waiting, claim_keys, find_claims, is_reserved_for
from dray.scheduler.queue import QueuedPod, SchedulingQueue, Wake

DEVICES = Wake("devices")
ROOM = Wake("room")
NODES = Wake("nodes")

DYNAMIC_RESOURCES = "DynamicResources"
"""Kubernetes' name of the plugin for claims; in metrics and messages."""


def claim_wake(key: ObjectKey) -> Wake:
    return Wake("claim", str(key))


class AssumedPod(NamedTuple):
    uid: str
    node: str


class SchedulerState:
    def __init__(self, clock: Clock, gates: FeatureGates, scheduler_name: str) -> None:
        self.queue = SchedulingQueue(clock)
        self.claims = ClaimCache()
        self.picture = Picture(gates, make_id=lambda: str(uuid.uuid4()))
        self._clock = clock
        self._scheduler_name = scheduler_name
        self._claim_news = asyncio.Event()
        self._pending: dict[ObjectKey, Pod] = {}
        self._facts: dict[ObjectKey, PodFacts] = {}
        self._users: dict[ObjectKey, dict[ObjectKey, None]] = {}
        """Pending pods by the claims that they name, in the order in which they came."""
        self._assumed_pods: dict[ObjectKey, AssumedPod] = {}
        """Pods that we decided on, until the cluster shows it."""
        self.confirmations = Confirmations()

    def pending(self, key: ObjectKey) -> tuple[Pod, PodFacts] | None:
        pod = self._pending.get(key)
        return None if pod is None else (pod, self._facts[key])

    def is_busy(self, pod: ObjectKey, claims: Iterable[ResourceClaim]) -> list[ObjectKey] | None:
        """The claims whose fate is being decided; None if that of the pod is."""
        if pod in self._assumed_pods:
            return None
        keys = (claim.metadata.key for claim in claims)
        return [key for key in keys if self.claims.is_in_flight(key) or self.confirmations.get(key) is not None]

    # Pods

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
            self.pod_changed(old, None)
            old = None
        pod = new or old
        assert pod is not None
        if new is None or is_terminal(new):
            self._pod_left(pod)
        elif new.spec.node_name:
            self._pod_is_bound(new)
        elif self._is_ours(new):
            self._pod_is_pending(old, new)

    def _is_ours(self, pod: Pod) -> bool:
        return (pod.spec.scheduler_name or DEFAULT_SCHEDULER) == self._scheduler_name

    def _pod_left(self, pod: Pod) -> None:
        key = pod.metadata.key
        self._stop_pending(key)
        if self._assumed_pods.pop(key, None) is not None or pod.spec.node_name:
            self.picture.remove_pod(key)
            self.queue.happened(ROOM)

    def _pod_is_bound(self, pod: Pod) -> None:
        key = pod.metadata.key
        self._stop_pending(key)
        decided = AssumedPod(pod.metadata.uid, pod.spec.node_name)
        if self._assumed_pods.pop(key, None) != decided:  # else the picture has it
            self.picture.apply_pod(read_pod(pod))

    def _pod_is_pending(self, old: Pod | None, new: Pod) -> None:
        key = new.metadata.key
        if new.metadata.deletion_timestamp is not None:
            self._stop_pending(key)
            return
        known = self._pending.get(key)
        self._pending[key] = new
        if known is not None and known.spec == new.spec and known.status == new.status:
            return
        if known is not None and not _is_worth_a_try(known, new):
            return
        if known is None or known.spec != new.spec:
            self._facts[key] = read_pod(new)
        for claim in claim_keys(new):
            self._users.setdefault(claim, {})[key] = None
        if key not in self._assumed_pods:
            self.enqueue(key)

    def _stop_pending(self, key: ObjectKey) -> None:
        self.queue.remove(key)
        pod = self._pending.pop(key, None)
        self._facts.pop(key, None)
        if pod is None:
            return
        for claim in claim_keys(pod):
            users = self._users.get(claim)
            if users is not None:
                users.pop(key, None)
                if not users:
                    del self._users[claim]

    def enqueue(self, key: ObjectKey) -> None:
        """Put a pending pod where it belongs (PreEnqueue): gated, or ready to be tried."""
        pod = self._pending[key]
        queued = self.queue.get(key) or QueuedPod(
            key, pod.metadata.uid, pod.spec.priority or 0, pod.metadata.creation_timestamp or ""
        )
        if pod.spec.scheduling_gates:
            self.queue.gate(queued, "SchedulingGates", "scheduling gates")
            return
        found = find_claims(pod, self.claims.get)
        if isinstance(found, Waiting):
            self.queue.gate(queued, DYNAMIC_RESOURCES, found.reason)
            return
        self.queue.add(queued)

    # Decisions

    def assume(self, facts: PodFacts, decision: Decision) -> None:
        self._assumed_pods[facts.key] = AssumedPod(facts.uid, decision.node)
        self.picture.apply_pod(facts._replace(node_name=decision.node))
        for before, after in decision.changes:
            self.confirmations.expect(
                after.metadata.key, facts.uid, decision.node if before.status.allocation is None else None
            )
            self.claims.assume(after, facts.uid)
            self.picture.apply_claim(after)

    def give_up(self, decision: Decision) -> None:
        """Roll a decision back: the devices and the room are free again, for others too.

        What was written is in the cluster, and stays until the cluster says otherwise.
        """
        pod = decision.pod.metadata
        if self._assumed_pods.get(pod.key) == AssumedPod(pod.uid, decision.node):
            del self._assumed_pods[pod.key]
            self.picture.remove_pod(pod.key)
        for _, claim in decision.changes:
            key = claim.metadata.key
            if self.claims.is_in_flight(key):
                self._believe(key, self.claims.forget(key))
        self._settled(decision)
        self.queue.happened(DEVICES, ROOM)

    async def wait_confirmed(self, decision: Decision) -> None:
        """Until the cluster shows what was written. Raises DevicesTaken if others were faster."""
        for before, after in zip(decision.before, decision.after, strict=True):
            if before is after and (overlap := find_overlap(self.picture, after)) is not None:
                raise DevicesTaken(overlap)
        await self.confirmations.wait(after.metadata.key for _, after in decision.changes)
        self._settled(decision)

    def _settled(self, decision: Decision) -> None:
        """Others that wait for the same claims can go on."""
        keys = [after.metadata.key for _, after in decision.changes]
        self.confirmations.drop(keys)
        self.queue.happened(*map(claim_wake, keys))

    def claim_written(self, claim: ResourceClaim) -> None:
        key = claim.metadata.key
        self.claims.written(claim)
        self._believe(key, self.claims.get(key))
        self.queue.happened(claim_wake(key))

    # Everything else

    async def wait_claim_news(self, seconds: float) -> None:
        """Until any claim changed, or the time is over."""
        news = asyncio.ensure_future(self._claim_news.wait())
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait((news, sleeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
            sleeping.cancel()

    def claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new or old
        assert claim is not None
        key = claim.metadata.key
        if new is None:
            self.claims.observe_gone(key)
            self._believe(key, None)
        else:
            self._believe(key, self.claims.observe(new))
        self._confirm(key, new)
        if old is not None and old.status.allocation is not None and (new is None or new.status.allocation is None):
            self.queue.happened(DEVICES)
        self._claim_news.set()
        self._claim_news = asyncio.Event()
        self.queue.happened(claim_wake(key))
        for pod in list(self._users.get(key, ())):
            if self.queue.is_gated(pod):
                self.enqueue(pod)

    def _confirm(self, key: ObjectKey, claim: ResourceClaim | None) -> None:
        expected = self.confirmations.get(key)
        if expected is None:
            return
        if claim is None:
            self.confirmations.seen(key, f"claim {key} is gone")
        elif claim.status.allocation is not None and is_reserved_for(claim, expected.pod_uid):
            self.confirmations.seen(key, find_overlap(self.picture, claim, expected.node))

    def _believe(self, key: ObjectKey, claim: ResourceClaim | None) -> None:
        if claim is None:
            self.picture.remove_claim(key)
        else:
            self.picture.apply_claim(claim)

    def slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if new is None:
            assert old is not None
            self.picture.remove_slice(old.metadata.name)
        elif old is None or old.spec != new.spec:
            self.picture.apply_slice(new)
        else:
            return
        self.queue.happened(DEVICES)  # also when one goes: its pool may be whole without it

    def class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        if new is None:
            assert old is not None
            self.picture.remove_class(old.metadata.name)
        else:
            self.picture.apply_class(new)
            self.queue.happened(DEVICES)

    def rule_changed(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        if new is None:
            assert old is not None
            self.picture.remove_rule(old.metadata.name)
        else:
            self.picture.apply_rule(new)
        self.queue.happened(DEVICES)

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            assert old is not None
            self.picture.remove_node(old.metadata.name)
            return
        self.picture.apply_node(new)
        if old is None or old.metadata.labels != new.metadata.labels or old.spec != new.spec:
            self.queue.happened(NODES, ROOM, DEVICES)
        elif old.status.allocatable != new.status.allocatable:
            self.queue.happened(ROOM)


def _is_worth_a_try(old: Pod, new: Pod) -> bool:
    """Whether the change of a pending pod can matter; its condition, which we write ourselves, can't."""
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.status.resource_claim_statuses != new.status.resource_claim_statuses
    )
