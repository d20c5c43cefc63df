"""ResourceSlices of deleted nodes: nobody else would remove them, and devices that are gone would be given out.

Slices that name their node as owner are the garbage collector's; this controller is for drivers that don't set one.
"""

from __future__ import annotations

from dray.api.errors import NotFound
from dray.api.meta import ObjectKey
from dray.api.nodes import Node
from dray.api.resources import NODES, RESOURCE_SLICES
from dray.api.slices import ResourceSlice
from dray.runtime.client import Client
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue


class SliceCleanup:
    def __init__(
        self, client: Client, nodes: Informer[Node], slices: Informer[ResourceSlice], queue: WorkQueue[ObjectKey]
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._slices = slices
        slices.add_index("node", lambda item: filter(None, (item.spec.node_name,)))

        def node_changed(old: Node | None, new: Node | None) -> None:
            if old is not None and new is None:
                queue.add(old.metadata.key)

        nodes.add_handler(node_changed)

    async def reconcile(self, key: ObjectKey) -> float | None:
        if self._nodes.get(key) is not None:
            return None
        try:
            await self._client.get(NODES, key.name)
            return None  # a new node of the same name: its driver looks after the slices
        except NotFound:
            pass
        for item in self._slices.by_index("node", key.name):
            try:
                await self._client.delete(RESOURCE_SLICES, item.metadata.name, uid=item.metadata.uid)
            except NotFound:
                continue
        return None
