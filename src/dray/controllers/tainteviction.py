"""Evicts pods from tainted devices (NoExecute), when their time of toleration is over.

Taints come from the driver (in ResourceSlices) and from admins (DeviceTaintRule). A reconcile looks at one allocated
claim: for every device in it the untolerated taints say when its pods have to go, the earliest counts. A taint that
is removed before that simply changes the answer of the next look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from dray.api.claims import DeviceRequestAllocationResult, ResourceClaim
from dray.api.devices import DeviceTaint, PoolID
from dray.api.errors import NotFound
from dray.api.meta import ObjectKey
from dray.api.pods import Pod, is_terminal
from dray.api.resources import PODS
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.api.taints import NO_EXECUTE, matching_tolerations
from dray.api.times import parse_time
from dray.controllers.disruption import mark_disrupted
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.events import EventRecorder, ObjectReference
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue

UNSEEN_PAUSE = 1.0
"""Seconds after which to look again for pods of a claim that our copy of the cluster doesn't show: not yet, or not any
more, and then the claim controller is about to remove their reservation."""


class DeviceTaintEviction:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        claims: Informer[ResourceClaim],
        slices: Informer[ResourceSlice],
        rules: Informer[DeviceTaintRule],
        pods: Informer[Pod],
        recorder: EventRecorder,
        queue: WorkQueue[ObjectKey],
    ) -> None:
        self._client = client
        self._clock = clock
        self._claims = claims
        self._slices = slices
        self._rules = rules
        self._pods = pods
        self._recorder = recorder
        self._queue = queue
        claims.add_index("pool", lambda claim: {str(PoolID(r.driver, r.pool)) for r in _results(claim)})
        slices.add_index("pool", lambda item: (str(item.spec.pool_id),))
        claims.add_handler(self._claim_changed)
        slices.add_handler(self._slice_changed)
        rules.add_handler(lambda old, new: self._look_at_all())

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if new is not None and new.status.reserved_for and any(True for _ in self._eviction_times(new)):
            self._queue.add(new.metadata.key)

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        item = new or old
        assert item is not None
        for claim in self._claims.by_index("pool", str(item.spec.pool_id)):
            self._queue.add(claim.metadata.key)

    def _look_at_all(self) -> None:
        for claim in self._claims:
            if claim.status.allocation is not None:
                self._queue.add(claim.metadata.key)

    async def reconcile(self, key: ObjectKey) -> float | None:
        claim = self._claims.get(key)
        if claim is None or claim.status.allocation is None:
            return None
        due = min(self._eviction_times(claim), default=None)
        if due is None:
            return None
        wait = (due - self._clock.now()).total_seconds()
        if wait > 0:
            return wait
        is_complete = True
        for user in claim.status.reserved_for:
            if not user.api_group and user.resource == "pods":
                pod = self._pods.get(ObjectKey(key.namespace, user.name))
                if pod is None or pod.metadata.uid != user.uid:
                    is_complete = False
                else:
                    await self._evict(pod, claim)
        return None if is_complete else UNSEEN_PAUSE

    def _eviction_times(self, claim: ResourceClaim) -> Iterator[datetime]:
        for result in _results(claim):
            for taint in self._taints(result):
                since = parse_time(taint.time_added) if taint.time_added else self._clock.now()
                tolerating = matching_tolerations(taint, result.tolerations)
                if not tolerating:
                    yield since
                    continue
                limits = [toleration.toleration_seconds for toleration in tolerating]
                bounded = [seconds for seconds in limits if seconds is not None]
                if bounded:
                    yield since + timedelta(seconds=max(0, min(bounded)))

    def _taints(self, result: DeviceRequestAllocationResult) -> Iterator[DeviceTaint]:
        """The NoExecute taints of one device, the driver's first."""
        for item in self._slices.by_index("pool", str(PoolID(result.driver, result.pool))):
            for device in item.spec.devices:
                if device.name == result.device:
                    yield from _executing(device.taints)
        for rule in self._rules:
            selector = rule.spec.device_selector
            if selector is not None and (
                selector.driver in (None, result.driver)
                and selector.pool in (None, result.pool)
                and selector.device in (None, result.device)
            ):
                yield from _executing((rule.spec.taint,))

    async def _evict(self, pod: Pod, claim: ResourceClaim) -> None:
        if pod.metadata.deletion_timestamp or is_terminal(pod):
            return
        metadata = pod.metadata
        message = f"Device Taint manager: deleting due to NoExecute taint on a device of claim {claim.metadata.name}"
        try:
            await mark_disrupted(self._client, self._clock, pod, "DeletionByDeviceTaintManager", message)
            await self._client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid)
        except NotFound:
            return
        about = ObjectReference("v1", "Pod", metadata.namespace, metadata.name, metadata.uid)
        self._recorder.normal(about, "DeviceTaintManagerEviction", f"Marking for deletion: {message}")


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation
    return allocation.devices.results if allocation is not None else ()


def _executing(taints: Iterable[DeviceTaint]) -> Iterator[DeviceTaint]:
    return (taint for taint in taints if taint.effect == NO_EXECUTE)
