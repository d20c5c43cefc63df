"""Keeps the driver's ResourceSlices in the cluster equal to what the driver says it has.

Level-triggered: whatever woke it (new devices, somebody deleted a slice), it compares and repairs. Creates and
updates come before deletes, so that a pool that moves to a new generation is never missing more than it must.

It publishes only while it is allowed to. For devices of a node that is while the driver is registered there, because
nobody could prepare them otherwise. Slices that someone deleted are not made again at once: the node agent deletes
them when it starts, and registers the driver a moment later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from dray.api.codec import decode_as, to_json
from dray.api.errors import Forbidden, Invalid, NotFound
from dray.api.meta import Json
from dray.api.resources import NODES, RESOURCE_SLICES
from dray.api.slices import ResourceSlice, ResourceSliceSpec
from dray.driver.metrics import DriverMetrics
from dray.driver.pools import Pool, plan_changes
from dray.runtime.client import Client, PatchType
from dray.runtime.clock import Clock
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue

log = logging.getLogger(__name__)

REPAIR_DELAY = 5.0
TRUSTED_SECONDS = 10.0
"""How long an own write counts that the watch hasn't shown yet."""


class PoolsRefused(Exception):
    """The API server doesn't take the slices; the text says why. They are tried again, but it takes another driver."""


class WrongPool(ValueError):
    """A pool was returned where it can't be published from."""


def _decode_slice(obj: Json) -> ResourceSlice:
    return decode_as(ResourceSlice, obj)


class SlicePublisher:
    """With a node's name it publishes that node's pools, without one those that belong to no node."""

    def __init__(
        self, client: Client, clock: Clock, metrics: DriverMetrics, *, driver_name: str, node_name: str
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._driver_name = driver_name
        self._node_name = node_name
        self._pools: tuple[Pool, ...] | None = None
        self._is_allowed = False
        self._queue: WorkQueue[str] = WorkQueue("slices", clock, longest_delay=30.0)
        self._published = Informer(
            client,
            RESOURCE_SLICES,
            decode=_decode_slice,
            field_selector=f"spec.driver={driver_name},spec.nodeName={node_name}",
            clock=clock,
        )
        self._published.add_handler(self._slice_changed)
        self._own = _OwnWrites(clock)
        self._is_settled = asyncio.Event()
        self._refusal = ""

    def publish(self, pools: Iterable[Pool]) -> None:
        """From now on this is what there is. Raises WrongPool."""
        wanted = tuple(pools)
        for pool in wanted:
            if pool.is_node_local and not self._node_name:
                raise WrongPool(f"pool {pool.name} doesn't say which nodes reach its devices")
            if not pool.is_node_local and self._node_name:
                raise WrongPool(f"pool {pool.name} belongs to no node: return it from cluster_pools()")
        self._pools = wanted
        self._wake()

    def allow(self, is_allowed: bool = True) -> None:
        self._is_allowed = is_allowed
        self._wake()

    def _wake(self) -> None:
        self._is_settled.clear()
        self._queue.add("sync")

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if new is None:
            self._queue.add_after("sync", REPAIR_DELAY)
        else:
            self._queue.add("sync")

    @property
    def is_published(self) -> bool:
        """Whether the cluster has what the driver says it has."""
        return self._is_settled.is_set() and not self._refusal

    async def wait_published(self) -> None:
        """Raises PoolsRefused."""
        await self._is_settled.wait()
        if self._refusal:
            raise PoolsRefused(self._refusal)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._published.run())
            await self._published.wait_synced()
            group.create_task(self._queue.work(self._sync))

    async def _sync(self, key: str) -> float | None:
        if self._pools is None or not self._is_allowed:
            return None
        changes = plan_changes(self._driver_name, self._node_name, self._pools, self._own.over(self._published))
        try:
            for spec in changes.create:
                await self._create(spec)
            for current, spec in changes.update:
                await self._update(current, spec)
        except (Invalid, Forbidden) as error:
            self._settle(str(error))
            raise
        for current in changes.delete:
            await self._delete(current)
        if not changes:
            self._settle("")
        return None

    def _settle(self, refusal: str) -> None:
        if refusal and refusal != self._refusal:
            log.error("driver %s: its slices are refused: %s", self._driver_name, refusal)
        self._refusal = refusal
        self._is_settled.set()

    async def _create(self, spec: ResourceSliceSpec) -> None:
        prefix = f"{spec.node_name or spec.pool.name}-{self._driver_name}-".replace("/", "-").lower()
        metadata: Json = {"generateName": prefix[-200:].lstrip("-.")}
        if spec.node_name:
            node = await self._client.get(NODES, spec.node_name)
            metadata["ownerReferences"] = [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": spec.node_name,
                    "uid": node["metadata"]["uid"],
                    "controller": True,
                }
            ]
        obj = to_json(ResourceSlice(api_version=RESOURCE_SLICES.api_version, kind=RESOURCE_SLICES.kind, spec=spec))
        obj["metadata"] = metadata
        self._own.wrote(_decode_slice(await self._client.create(RESOURCE_SLICES, obj)))
        self._metrics.slice_writes.labels("create").inc()

    async def _update(self, current: ResourceSlice, spec: ResourceSliceSpec) -> None:
        wanted = to_json(ResourceSlice(metadata=current.metadata, spec=spec))
        patch: list[Json] = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": current.metadata.resource_version},
            {"op": "replace", "path": "/spec", "value": wanted["spec"]},
        ]
        written = await self._client.patch(RESOURCE_SLICES, current.metadata.name, patch, patch_type=PatchType.JSON)
        self._own.wrote(_decode_slice(written))
        self._metrics.slice_writes.labels("update").inc()

    async def _delete(self, current: ResourceSlice) -> None:
        try:
            await self._client.delete(RESOURCE_SLICES, current.metadata.name, uid=current.metadata.uid)
        except NotFound:
            return
        self._own.deleted(current.metadata.name)
        self._metrics.slice_writes.labels("delete").inc()


class _OwnWrites:
    """What was written a moment ago and the watch hasn't shown yet, so that it isn't written twice."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._writes: dict[str, tuple[ResourceSlice | None, float]] = {}

    def wrote(self, item: ResourceSlice) -> None:
        self._writes[item.metadata.name] = (item, self._clock.monotonic())

    def deleted(self, name: str) -> None:
        self._writes[name] = (None, self._clock.monotonic())

    def over(self, shown: Iterable[ResourceSlice]) -> list[ResourceSlice]:
        """The slices as they are by all that is known."""
        slices = {item.metadata.name: item for item in shown}
        for name, (item, at) in list(self._writes.items()):
            seen = slices.get(name)
            is_old = self._clock.monotonic() - at > TRUSTED_SECONDS
            if is_old or (seen is None if item is None else seen is not None and _revision(seen) >= _revision(item)):
                del self._writes[name]
            elif item is None:
                slices.pop(name, None)
            else:
                slices[name] = item
        return list(slices.values())


def _revision(item: ResourceSlice) -> int:
    return int(item.metadata.resource_version or 0)
