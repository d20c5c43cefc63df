"""Keeps the driver's ResourceSlices in the cluster equal to what the driver says it has.

Level-triggered: whatever woke it (new devices, somebody deleted a slice), it compares and repairs. Creates and
updates come before deletes, so that a pool that moves to a new generation is never missing more than it must.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from dray.api.codec import decode_as, to_json
from dray.api.errors import NotFound
from dray.api.meta import Json
from dray.api.resources import NODES, RESOURCE_SLICES
from dray.api.slices import ResourceSlice, ResourceSliceSpec
from dray.driver.metrics import DriverMetrics
from dray.driver.pools import Pool, plan_changes
from dray.runtime.client import Client, PatchType
from dray.runtime.clock import Clock
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue


def _decode_slice(obj: Json) -> ResourceSlice:
    return decode_as(ResourceSlice, obj)


class SlicePublisher:
    """`node_name` is empty for a driver that only publishes network-attached devices."""

    def __init__(
        self, client: Client, clock: Clock, metrics: DriverMetrics, *, driver_name: str, node_name: str
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._driver_name = driver_name
        self._node_name = node_name
        self._pools: tuple[Pool, ...] | None = None
        self._queue: WorkQueue[str] = WorkQueue("slices", clock, longest_delay=30.0)
        self._published = Informer(
            client,
            RESOURCE_SLICES,
            decode=_decode_slice,
            field_selector=f"spec.driver={driver_name}",
            clock=clock,
        )
        self._published.add_handler(lambda old, new: self._queue.add("sync"))
        self._in_sync = asyncio.Event()

    def publish(self, pools: Iterable[Pool]) -> None:
        """From now on this is what there is."""
        self._pools = tuple(pools)
        self._in_sync.clear()
        self._queue.add("sync")

    async def wait_published(self) -> None:
        await self._in_sync.wait()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._published.run())
            await self._published.wait_synced()
            group.create_task(self._queue.work(self._sync))

    async def _sync(self, key: str) -> float | None:
        if self._pools is None:
            return None
        changes = plan_changes(self._driver_name, self._node_name, self._pools, self._mine())
        for spec in changes.create:
            await self._create(spec)
        for current, spec in changes.update:
            await self._update(current, spec)
        for current in changes.delete:
            await self._delete(current)
        if not changes:
            self._in_sync.set()
        return None

    def _mine(self) -> list[ResourceSlice]:
        """Slices of this node, and of pools of this driver that no node owns if this instance publishes such pools."""
        shared = {pool.name for pool in self._pools or () if not pool.is_node_local}
        return [
            item
            for item in self._published
            if (item.spec.node_name == self._node_name if item.spec.node_name else item.spec.pool.name in shared)
        ]

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
        await self._client.create(RESOURCE_SLICES, obj)
        self._metrics.slice_writes.labels("create").inc()

    async def _update(self, current: ResourceSlice, spec: ResourceSliceSpec) -> None:
        wanted = to_json(ResourceSlice(metadata=current.metadata, spec=spec))
        await self._client.patch(
            RESOURCE_SLICES,
            current.metadata.name,
            [
                {"op": "test", "path": "/metadata/resourceVersion", "value": current.metadata.resource_version},
                {"op": "replace", "path": "/spec", "value": wanted["spec"]},
            ],
            patch_type=PatchType.JSON,
        )
        self._metrics.slice_writes.labels("update").inc()

    async def _delete(self, current: ResourceSlice) -> None:
        try:
            await self._client.delete(RESOURCE_SLICES, current.metadata.name, uid=current.metadata.uid)
        except NotFound:
            return
        self._metrics.slice_writes.labels("delete").inc()
