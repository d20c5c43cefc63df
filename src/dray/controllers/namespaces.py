"""Namespace deletion: everything in it goes, then the namespace itself.

The API server refuses new objects in a namespace that is being deleted, so the content only shrinks. Objects with
finalizers take their time; the namespace is looked at again until nothing is left.
"""

from __future__ import annotations

from dray.api.errors import Conflict, NotFound
from dray.api.meta import Json, ObjectKey
from dray.api.resources import EVENTS, NAMESPACES, OWNABLE_RESOURCES
from dray.runtime.client import Client
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue

FINALIZER = "kubernetes"
LOOK_AGAIN = 0.5

CONTENT = (*(resource for resource in OWNABLE_RESOURCES if resource.namespaced), EVENTS)


class NamespaceController:
    def __init__(self, client: Client, namespaces: Informer[Json], queue: WorkQueue[ObjectKey]) -> None:
        self._client = client
        self._namespaces = namespaces

        def changed(old: Json | None, new: Json | None) -> None:
            if new is not None and "deletionTimestamp" in new["metadata"]:
                queue.add(ObjectKey("", new["metadata"]["name"]))

        namespaces.add_handler(changed)

    async def reconcile(self, key: ObjectKey) -> float | None:
        namespace = self._namespaces.get(key)
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return None
        if not await self._empty(key.name):
            return LOOK_AGAIN
        finalizers = (namespace.get("spec") or {}).get("finalizers") or []
        left = [name for name in finalizers if name != FINALIZER]
        try:
            await self._client.update(NAMESPACES, namespace | {"spec": {"finalizers": left}}, subresource="finalize")
        except NotFound:
            return None
        except Conflict:
            return LOOK_AGAIN
        return None

    async def _empty(self, name: str) -> bool:
        """Ask for the deletion of what is left; true if there was nothing."""
        is_empty = True
        for resource in CONTENT:
            page = await self._client.list(resource, name, limit=1)
            if page.get("items"):
                is_empty = False
                await self._client.delete_collection(resource, name)
        return is_empty
