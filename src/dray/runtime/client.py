"""The one seam between components and a cluster.

Objects are plain JSON, so that fields we don't know survive; `dray.api` has the typed views. Every failure is a
`dray.api.errors.StatusError`. Implementations: in-process (apiserver), HTTPS (runtime).
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from dray.api.meta import Json
from dray.api.resources import Resource


class EventType(enum.StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(NamedTuple):
    type: EventType
    object: Json


class PatchType(enum.StrEnum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class PatchStep(NamedTuple):
    """A merge patch of an object, or of a subresource of it."""

    patch: Json
    subresource: str = ""

    def provided(self, uid: str, resource_version: str) -> PatchStep:
        """The same on condition that the object is this one, and as it was at this revision."""
        metadata = {**self.patch.get("metadata", {}), "uid": uid, "resourceVersion": resource_version}
        return PatchStep({**self.patch, "metadata": metadata}, self.subresource)


class Client(Protocol):
    async def get(self, resource: Resource, name: str, namespace: str = "") -> Json: ...

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
    ) -> Json:
        """One page as a List object; an empty namespace means all."""
        ...

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        allow_bookmarks: bool = True,
        timeout_seconds: int | None = None,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Events after `resource_version`. Raises Expired if that revision is gone: list again."""
        ...

    async def create(
        self, resource: Resource, obj: Json, namespace: str = "", *, subresource: str = "", name: str = ""
    ) -> Json:
        """With `subresource` and `name`: pods/binding, pods/eviction, serviceaccounts/token."""
        ...

    async def update(self, resource: Resource, obj: Json, *, subresource: str = "") -> Json:
        """Replaces; conflicts unless `metadata.resourceVersion` is current (or empty)."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Json | Sequence[Json],
        namespace: str = "",
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> Json: ...

    @property
    def joins_steps(self) -> bool:
        """Whether the steps of `patch_steps` are one write."""
        ...

    async def patch_steps(self, resource: Resource, name: str, steps: Sequence[PatchStep], namespace: str = "") -> Json:
        """Patches that build on each other, as one write if the server lets us, else as one write each.

        `uid` and `resourceVersion` of the first are conditions for all: nobody may write in between. When a later
        step of several writes fails, the earlier ones are done.
        """
        ...

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation_policy: str = "",
        grace_period_seconds: int | None = None,
    ) -> Json: ...

    async def delete_collection(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> None: ...
