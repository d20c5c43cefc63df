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
from typing import Any, NamedTuple, Protocol

from dray.api.errors import NotFound
from dray.api.meta import Json, OwnerReference
from dray.api.resources import OWNABLE_RESOURCES, Resource
from dray.api.views import ViewMeta, view_meta
from dray.runtime.client import Client, PatchType
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue
from dray.runtime.recent import Recent

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
HELD_PAUSE = 0.1
"""Seconds before a dependent with finalizers is looked at. It can't go at once, and who holds it is likely to write it
now, because of the same owner: a deletion at the same time would only be a conflict."""


class Meta(Protocol):
    """What the graph is made of."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def deletion_timestamp(self) -> str | None: ...
    @property
    def owner_references(self) -> tuple[OwnerReference, ...]: ...
    @property
    def finalizers(self) -> tuple[str, ...]: ...


class Owned(Protocol):
    """An object of any kind, typed."""

    @property
    def metadata(self) -> Meta: ...


class Node(NamedTuple):
    """An object in the graph."""

    resource: Resource
    metadata: Meta

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def owners(self) -> tuple[OwnerReference, ...]:
        return self.metadata.owner_references

    @property
    def is_deleted(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def is_waiting_for(self, finalizer: str) -> bool:
        return self.is_deleted and finalizer in self.metadata.finalizers


class GarbageCollector:
    def __init__(self, client: Client, informers: Iterable[Informer[Any]], queue: WorkQueue[str]) -> None:
        self._client = client
        self._queue = queue
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, set[str]] = {}
        self._gone: Recent[str] = Recent()
        """UIDs of objects whose end we saw."""
        self._resources = {(r.api_version, r.kind): r for r in OWNABLE_RESOURCES}
        for informer in informers:
            self._follow(informer)

    def _follow(self, informer: Informer[Owned]) -> None:
        resource = informer.resource

        def changed(old: Owned | None, new: Owned | None) -> None:
            if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
                self._forget(old.metadata.uid)
            if new is not None:
                self._remember(Node(resource, new.metadata))

        informer.add_handler(changed)

    def _remember(self, node: Node) -> None:
        previous = self._nodes.get(node.uid)
        if previous is not None:
            if previous.owners == node.owners and not node.is_deleted:
                self._nodes[node.uid] = node  # by far the most frequent change: nothing that matters here
                return
            for owner in previous.owners:
                self._dependents.get(owner.uid, set()).discard(node.uid)
                if owner not in node.owners and owner.uid in self._nodes:
                    self._queue.add(owner.uid)  # it may have waited for this one to go
        self._nodes[node.uid] = node
        for owner in node.owners:
            self._dependents.setdefault(owner.uid, set()).add(node.uid)
        if node.is_deleted or not all(map(self._is_alive, node.owners)):
            self._queue.add(node.uid)
        if node.is_deleted:
            self._look_at_neighbours(node)

    def _is_alive(self, reference: OwnerReference) -> bool:
        owner = self._nodes.get(reference.uid)
        return owner is not None and not owner.is_waiting_for(FOREGROUND)

    def _forget(self, uid: str) -> None:
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        self._gone.add(node.uid)
        self._look_at_neighbours(node, HELD_PAUSE)
        for owner in node.owners:
            siblings = self._dependents.get(owner.uid)
            if siblings is not None:
                siblings.discard(node.uid)
                if not siblings:
                    del self._dependents[owner.uid]

    def _look_at_neighbours(self, node: Node, held_pause: float = 0) -> None:
        for dependent in self._dependents.get(node.uid, ()):
            is_held = bool(self._nodes[dependent].metadata.finalizers)
            self._queue.add_after(dependent, held_pause * is_held)
        for owner in node.owners:
            if owner.uid in self._nodes:
                self._queue.add(owner.uid)

    async def reconcile(self, uid: str) -> float | None:
        node = self._nodes.get(uid)
        if node is None:
            return None
        if node.is_waiting_for(ORPHAN):
            await self._orphan_dependents(node)
        elif node.is_waiting_for(FOREGROUND):
            await self._finish_foreground(node)
        elif node.owners and not node.is_deleted:
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
            if any(owner.uid == node.uid and owner.block_owner_deletion for owner in dependent.owners):
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
                await self._drop_owners(node, {owner.uid for owner in gone + waiting})
            return
        if waiting and self._dependents.get(node.uid):
            policy = "Foreground"
        elif ORPHAN in node.metadata.finalizers:
            policy = "Orphan"
        else:
            policy = "Background"
        await self._delete(node, policy)

    async def _find_owner(self, node: Node, reference: OwnerReference) -> Node | None:
        known = self._nodes.get(reference.uid)
        if known is not None:
            return known
        if reference.uid in self._gone:
            return None
        resource = self._resources.get((reference.api_version, reference.kind))
        if resource is None:  # an owner of a kind that we don't follow: never collect what we can't judge
            return Node(node.resource, ViewMeta(uid=reference.uid))
        namespace = node.metadata.namespace if resource.namespaced else ""
        try:
            found = view_meta(await self._client.get(resource, reference.name, namespace)).metadata
        except NotFound:
            return None
        return Node(resource, found) if found.uid == reference.uid else None

    async def _delete(self, node: Node, policy: str) -> None:
        """A conflict means that our copy is old: the queue tries again a little later."""
        metadata = node.metadata
        with suppress(NotFound):
            await self._client.delete(
                node.resource,
                metadata.name,
                metadata.namespace,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
                propagation_policy=policy,
            )

    async def _drop_owners(self, node: Node, uids: set[str]) -> None:
        """References are taken from the object itself, not from our view of it: that may not know all their fields."""
        with suppress(NotFound):
            found = await self._client.get(node.resource, node.metadata.name, node.metadata.namespace)
            owners = found["metadata"].get("ownerReferences") or ()
            left = [owner for owner in owners if owner["uid"] not in uids]
            metadata = {"uid": node.uid, "resourceVersion": found["metadata"]["resourceVersion"]}
            await self._patch(node, {**metadata, "ownerReferences": left or None})

    async def _remove_finalizer(self, node: Node, finalizer: str) -> None:
        left = [name for name in node.metadata.finalizers if name != finalizer]
        metadata = {"uid": node.uid, "resourceVersion": node.metadata.resource_version}
        with suppress(NotFound):
            await self._patch(node, {**metadata, "finalizers": left or None})

    async def _patch(self, node: Node, metadata: Json) -> None:
        name, namespace = node.metadata.name, node.metadata.namespace
        await self._client.patch(node.resource, name, {"metadata": metadata}, namespace, patch_type=PatchType.MERGE)
