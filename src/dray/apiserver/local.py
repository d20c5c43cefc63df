"""The `Client` of components in the server's own process: the same registry, without HTTP in between.

What `list` and `watch` return is shared by all readers of the process; nobody may change it. The answers to other calls
are the caller's own, unless it wants the answers to its writes shared, too, which is quicker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from dray.api.errors import NotFound
from dray.api.meta import Json
from dray.api.resources import Resource
from dray.apiserver import refusals
from dray.apiserver.deletion import delete_collection, delete_object
from dray.apiserver.fitting import fit_object
from dray.apiserver.listing import list_page
from dray.apiserver.options import DeleteOptions, ListOptions, WriteOptions, read_fields, read_labels
from dray.apiserver.patching import patch_object, patch_step
from dray.apiserver.records import Record, encode_json
from dray.apiserver.registry import Registry
from dray.apiserver.requests import Query
from dray.apiserver.resources import find_row
from dray.apiserver.schemas import type_of
from dray.apiserver.service_accounts import TokenIssuer
from dray.apiserver.subresources import SUCCESS, bind, evict, finalize_namespace, request_token
from dray.apiserver.targets import Caller, Target
from dray.apiserver.users import ADMIN, UserInfo
from dray.apiserver.watching import watch_objects
from dray.runtime.client import PatchStep, PatchType, WatchEvent


class LocalClient:
    """`user` is what admission and status authorization see; requests themselves are not authorized.

    With `shares_answers`, what writes return is shared as well.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        user: UserInfo = ADMIN,
        agent: str = "dray",
        token_issuer: TokenIssuer | None = None,
        shares_answers: bool = False,
    ) -> None:
        self._registry = registry
        self._caller = Caller(user, agent, tracked=False)
        self._token_issuer = token_issuer
        self._shares_answers = shares_answers
        self._options = WriteOptions(field_validation="Ignore")

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Json:
        with refusals.store_errors:
            record = await self._registry.get(_target(resource, namespace, name))
        return record.to_own_json(resource.version)

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
        target = _target(resource, namespace)
        options = ListOptions(
            labels=read_labels(label_selector),
            fields=read_fields(field_selector, target.row, target.version),
            limit=limit,
            continue_token=continue_token,
            resource_version=resource_version,
        )
        with refusals.store_errors:
            page = await list_page(self._registry, target, options)
        metadata: Json = {"resourceVersion": str(page.revision)}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        if page.remaining:
            metadata["remainingItemCount"] = page.remaining
        return {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": metadata,
            "items": [record.to_json(resource.version) for record in page.records],
        }

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
        target = _target(resource, namespace)
        options = ListOptions(
            labels=read_labels(label_selector),
            fields=read_fields(field_selector, target.row, target.version),
            resource_version=resource_version,
            allow_bookmarks=allow_bookmarks,
            timeout_seconds=timeout_seconds,
        )
        return self._watch(target, options)

    @asynccontextmanager
    async def _watch(self, target: Target, options: ListOptions) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        async with watch_objects(self._registry, target, options) as batches:

            async def events() -> AsyncIterator[WatchEvent]:
                async for batch in batches:
                    for kind, record in batch.events:
                        yield WatchEvent(kind, record.to_json(target.version))

            yield events()

    async def create(
        self, resource: Resource, obj: Json, namespace: str = "", *, subresource: str = "", name: str = ""
    ) -> Json:
        target = _target(resource, namespace or obj.get("metadata", {}).get("namespace", ""), name, subresource)
        with refusals.store_errors:
            if subresource:
                return await self._create_subresource(target, obj)
            written = await self._registry.create(target, _typed(resource, obj), self._options, self._caller)
        return self._answer(written.record, resource)

    async def _create_subresource(self, target: Target, obj: Json) -> Json:
        part = target.row.subresource(target.subresource)
        if part is None or "create" not in part.verbs:
            raise NotFound("the server could not find the requested resource", details={})
        body = fit_object(obj, type_of(part.group, part.version or "v1", part.kind), [])
        match target.subresource:
            case "binding":
                await bind(self._registry, target, body, self._options, self._caller)
            case "eviction":
                await evict(self._registry, target, body, self._caller, Query())
            case _:
                return await request_token(self._registry, target, body, self._token_issuer)
        return dict(SUCCESS)

    async def update(self, resource: Resource, obj: Json, *, subresource: str = "") -> Json:
        metadata = obj.get("metadata", {})
        target = _target(resource, metadata.get("namespace", ""), metadata.get("name", ""), subresource)
        body = _typed(resource, obj)
        with refusals.store_errors:
            if subresource == "finalize":
                data = encode_json(body)
                written = await finalize_namespace(self._registry, target, data, self._options, self._caller)
            else:
                written = await self._registry.update(target, body, self._options, self._caller)
        return self._answer(written.record, resource)

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
    ) -> Json:
        target = _target(resource, namespace, name, subresource)
        options = WriteOptions(field_manager=field_manager, field_validation="Ignore", force=force)
        body: Any = patch if isinstance(patch, dict) else list(patch)
        with refusals.store_errors:
            written = await patch_object(self._registry, target, patch_type, body, options, self._caller)
        return self._answer(written.record, resource)

    @property
    def joins_steps(self) -> bool:
        return True

    async def patch_steps(self, resource: Resource, name: str, steps: Sequence[PatchStep], namespace: str = "") -> Json:
        warnings: list[str] = []
        parts = [
            patch_step(
                self._registry,
                _target(resource, namespace, name, step.subresource),
                PatchType.MERGE,
                step.patch,
                self._options,
                warnings,
            )
            for step in steps
        ]
        with refusals.store_errors:
            written = await self._registry.modify(parts, self._options, self._caller, verb="patch")
        return self._answer(written.record, resource)

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
    ) -> Json:
        options = DeleteOptions(
            grace_period_seconds=grace_period_seconds,
            uid=uid or None,
            resource_version=resource_version or None,
            propagation_policy=propagation_policy,
        )
        with refusals.store_errors:
            deleted = await delete_object(self._registry, _target(resource, namespace, name), options, self._caller)
        return self._answer(deleted.record, resource)

    async def delete_collection(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> None:
        target = _target(resource, namespace)
        listing = ListOptions(
            labels=read_labels(label_selector), fields=read_fields(field_selector, target.row, target.version)
        )
        with refusals.store_errors:
            await delete_collection(self._registry, target, listing, DeleteOptions(), self._caller)

    def _answer(self, record: Record, resource: Resource) -> Json:
        return record.to_json(resource.version) if self._shares_answers else record.to_own_json(resource.version)


def _target(resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> Target:
    """Raises NotFound if the server has no such resource, or the subresource doesn't exist."""
    row = find_row(resource.group, resource.version, resource.plural)
    if row is None or (subresource and row.subresource(subresource) is None):
        raise NotFound("the server could not find the requested resource", details={})
    return Target(row, resource.version, namespace if row.namespaced else "", name, subresource)


def _typed(resource: Resource, obj: Json) -> Json:
    """The object with its type: what comes out of a list has none."""
    if obj.get("kind") and obj.get("apiVersion"):
        return obj
    return {**obj, "kind": resource.kind, "apiVersion": resource.api_version}
