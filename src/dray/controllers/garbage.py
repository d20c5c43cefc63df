"""The garbage collector: objects go when all their owners are gone.

It keeps a graph of owner references by UID, built from informers on every resource that may own or be owned.

- *Background* (the default): the owner goes first; each dependent is looked at when its owner vanishes and is deleted
  if no owner is left. References to owners that are gone are removed if another owner still lives.
- *Foreground*: the owner has the finalizer `foregroundDeletion` and stays until no dependent with
  `blockOwnerDeletion` is left.
- *Orphan*: the owner has the finalizer `orphan`; its dependents lose their reference to it, then the finalizer goes.

The graph may lag behind the cluster, so before a dependent is deleted its owner is read from the API server, unless we
saw its end, and the deletion carries the dependent's UID and resourceVersion: an object changed meanwhile is looked at
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from dray.api.errors import NotFound
from dray.api.meta import Json
from dray.api.resources import OWNABLE_RESOURCES, Resource
from dray.runtime.client import Client, PatchType
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue
from dray.runtime.recent import Recent

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
HELD_PAUSE = 0.1
"""Seconds before a dependent with finalizers is looked at. It can't go at once, and who holds it is likely to write it
now, because of the same owner: a deletion at the same time would only be a conflict."""


class Node(NamedTuple):
    """An object in the graph."""

    resource: Resource
    obj: Json

    @property
    def metadata(self) -> Json:
        metadata: Json = self.obj["metadata"]
        return metadata

    @property
    def uid(self) -> str:
        return str(self.metadata["uid"])

    @property
    def owners(self) -> list[Json]:
        return self.metadata.get("ownerReferences") or []

    def is_waiting_for(self, finalizer: str) -> bool:
        return "deletionTimestamp" in self.metadata and finalizer in (self.metadata.get("finalizers") or ())


class GarbageCollector:
    def __init__(self, client: Client, informers: Iterable[Informer[Json]], queue: WorkQueue[str]) -> None:
        self._client = client
        self._queue = queue
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, set[str]] = {}
        self._gone: Recent[str] = Recent()
        """UIDs of objects whose end we saw."""
        self._resources = {(r.api_version, r.kind): r for r in OWNABLE_RESOURCES}
        for informer in informers:
            self._follow(informer)

    def _follow(self, informer: Informer[Json]) -> None:
        resource = informer.resource

        def changed(old: Json | None, new: Json | None) -> None:
            if old is not None and (new is None or new["metadata"]["uid"] != old["metadata"]["uid"]):
                self._forget(old)
            if new is not None:
                self._remember(Node(resource, new))

        informer.add_handler(changed)

    def _remember(self, node: Node) -> None:
        previous = self._nodes.get(node.uid)
        if previous is not None:
            if previous.owners == node.owners and "deletionTimestamp" not in node.metadata:
                self._nodes[node.uid] = node  # by far the most frequent change: nothing that matters here
                return
            for owner in previous.owners:
                self._dependents.get(owner["uid"], set()).discard(node.uid)
        self._nodes[node.uid] = node
        for owner in node.owners:
            self._dependents.setdefault(owner["uid"], set()).add(node.uid)
        if "deletionTimestamp" in node.metadata or not all(map(self._is_alive, node.owners)):
            self._queue.add(node.uid)
        if "deletionTimestamp" in node.metadata:
            self._look_at_neighbours(node)

    def _is_alive(self, reference: Json) -> bool:
        owner = self._nodes.get(reference["uid"])
        return owner is not None and not owner.is_waiting_for(FOREGROUND)

    def _forget(self, obj: Json) -> None:
        node = self._nodes.pop(obj["metadata"]["uid"], None)
        if node is None:
            return
        self._gone.add(node.uid)
        self._look_at_neighbours(node, HELD_PAUSE)
        for owner in node.owners:
            siblings = self._dependents.get(owner["uid"])
            if siblings is not None:
                siblings.discard(node.uid)
                if not siblings:
                    del self._dependents[owner["uid"]]

    def _look_at_neighbours(self, node: Node, held_pause: float = 0) -> None:
        for dependent in self._dependents.get(node.uid, ()):
            is_held = bool(self._nodes[dependent].metadata.get("finalizers"))
            self._queue.add_after(dependent, held_pause * is_held)
        for owner in node.owners:
            if owner["uid"] in self._nodes:
                self._queue.add(owner["uid"])

    async def reconcile(self, uid: str) -> float | None:
        node = self._nodes.get(uid)
        if node is None:
            return None
        if node.is_waiting_for(ORPHAN):
            await self._orphan_dependents(node)
        elif node.is_waiting_for(FOREGROUND):
            await self._finish_foreground(node)
        elif node.owners and "deletionTimestamp" not in node.metadata:
            await self._collect(node)
        return None

    async def _orphan_dependents(self, node: Node) -> None:
        for uid in list(self._dependents.get(node.uid, ())):
            if (dependent := self._nodes.get(uid)) is not None:
                await self._drop_owners(dependent, {node.uid})
        await self._remove_finalizer(node, ORPHAN)

    async def _finish_foreground(self, node: Node) -> None:
        """Dependents see their owner's wait themselves; here the owner is released when none blocks it any more."""
        for uid in self._dependents.get(node.uid, ()):
            dependent = self._nodes[uid]
            if any(owner["uid"] == node.uid and owner.get("blockOwnerDeletion") for owner in dependent.owners):
                return
        await self._remove_finalizer(node, FOREGROUND)

    async def _collect(self, node: Node) -> None:
        alive, waiting, gone = [], [], []
        for owner in node.owners:
            found = await self._find_owner(node, owner)
            if found is None:
                gone.append(owner)
            elif found.is_waiting_for(FOREGROUND):
                waiting.append(owner)
            else:
                alive.append(owner)
        if alive:
            if gone or waiting:
                await self._drop_owners(node, {owner["uid"] for owner in gone + waiting})
            return
        if waiting and self._dependents.get(node.uid):
            policy = "Foreground"
        elif ORPHAN in (node.metadata.get("finalizers") or ()):
            policy = "Orphan"
        else:
            policy = "Background"
        await self._delete(node, policy)

    async def _find_owner(self, node: Node, reference: Json) -> Node | None:
        known = self._nodes.get(reference["uid"])
        if known is not None:
            return known
        if reference["uid"] in self._gone:
            return None
        resource = self._resources.get((reference["apiVersion"], reference["kind"]))
        if resource is None:  # an owner of a kind that we don't follow: never collect what we can't judge
            return Node(node.resource, {"metadata": {"uid": reference["uid"]}})
        namespace = node.metadata.get("namespace", "") if resource.namespaced else ""
        try:
            found = await self._client.get(resource, reference["name"], namespace)
        except NotFound:
            return None
        return Node(resource, found) if found["metadata"]["uid"] == reference["uid"] else None

    async def _delete(self, node: Node, policy: str) -> None:
        """A conflict means that our copy is old: the queue tries again a little later."""
        with suppress(NotFound):
            await self._client.delete(
                node.resource,
                node.metadata["name"],
                node.metadata.get("namespace", ""),
                uid=node.uid,
                resource_version=node.metadata["resourceVersion"],
                propagation_policy=policy,
            )

    async def _drop_owners(self, node: Node, uids: set[str]) -> None:
        left = [owner for owner in node.owners if owner["uid"] not in uids]
        await self._patch_metadata(node, {"ownerReferences": left or None})

    async def _remove_finalizer(self, node: Node, finalizer: str) -> None:
        left = [name for name in node.metadata.get("finalizers", ()) if name != finalizer]
        await self._patch_metadata(node, {"finalizers": left or None})

    async def _patch_metadata(self, node: Node, changes: Json) -> None:
        metadata = {"uid": node.uid, "resourceVersion": node.metadata["resourceVersion"], **changes}
        with suppress(NotFound):
            await self._client.patch(
                node.resource,
                node.metadata["name"],
                {"metadata": metadata},
                node.metadata.get("namespace", ""),
                patch_type=PatchType.MERGE,
            )
