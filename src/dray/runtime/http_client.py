"""The `Client` over HTTPS: against `dray apiserver`, or any Kubernetes API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import msgspec

from dray.api.errors import BadRequest, error_from_status
from dray.api.meta import Json
from dray.api.resources import Resource
from dray.runtime.access import ClusterAccess
from dray.runtime.client import EventType, PatchType, WatchEvent
from dray.runtime.clock import Clock, SystemClock
from dray.runtime.http_pool import Pool

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class HttpClient:
    """Close it when done, or use it as an async context manager."""

    def __init__(self, access: ClusterAccess, *, agent: str = "dray", clock: Clock | None = None) -> None:
        self._pool = Pool(access, clock or SystemClock(), agent)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._pool.close()

    async def get_raw(self, path: str) -> Json:
        """Any path of the server that answers with JSON, such as discovery."""
        answer: Json = _decode(await self._pool.call("GET", path))
        return answer

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Json:
        return await self.get_raw(_path(resource, namespace, name))

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
        query = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": limit,
            "continue": continue_token,
            "resourceVersion": resource_version,
        }
        return await self.get_raw(_path(resource, namespace) + _query(query))

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
        query = {
            "watch": "true",
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true" if allow_bookmarks else "",
            "timeoutSeconds": timeout_seconds,
        }
        return self._watch(_path(resource, namespace) + _query(query))

    @asynccontextmanager
    async def _watch(self, path: str) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        connection, chunks = await self._pool.stream(path)
        try:
            yield _events(chunks)
        finally:
            connection.close()

    async def create(
        self, resource: Resource, obj: Json, namespace: str = "", *, subresource: str = "", name: str = ""
    ) -> Json:
        namespace = namespace or obj.get("metadata", {}).get("namespace", "")
        path = _path(resource, namespace, name, subresource)
        body = obj if subresource else _typed(resource, obj)
        return await self._write("POST", path, body)

    async def update(self, resource: Resource, obj: Json, *, subresource: str = "") -> Json:
        metadata = obj.get("metadata", {})
        path = _path(resource, metadata.get("namespace", ""), metadata.get("name", ""), subresource)
        return await self._write("PUT", path, _typed(resource, obj))

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
        query = {"fieldManager": field_manager, "force": "true" if force else ""}
        path = _path(resource, namespace, name, subresource) + _query(query)
        body: Any = patch if isinstance(patch, dict) else list(patch)
        return await self._write("PATCH", path, body, patch_type.value)

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
        options: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {field: value for field, value in preconditions.items() if value}
        if preconditions:
            options["preconditions"] = preconditions
        if propagation_policy:
            options["propagationPolicy"] = propagation_policy
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        return await self._write("DELETE", _path(resource, namespace, name), options)

    async def delete_collection(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> None:
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        await self._pool.call("DELETE", _path(resource, namespace) + _query(query))

    async def _write(self, method: str, path: str, body: Any, content_type: str = "application/json") -> Json:
        answer: Json = _decode(await self._pool.call(method, path, _encode(body), content_type))
        return answer


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[WatchEvent]:
    """Lines of JSON out of chunks that know nothing of lines. Raises what an ERROR event says."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if not line:
                continue
            event = _decode(line)
            if event["type"] == "ERROR":
                raise error_from_status(event["object"], int(event["object"].get("code") or 500))
            yield WatchEvent(EventType(event["type"]), event["object"])


def _path(resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    if (subresource or name) and not name:
        raise BadRequest("name must be provided")
    return resource.path(quote(namespace, safe=""), quote(name, safe=""), subresource)


def _query(values: dict[str, Any]) -> str:
    given = {name: value for name, value in values.items() if value not in ("", 0, None)}
    return f"?{urlencode(given)}" if given else ""


def _typed(resource: Resource, obj: Json) -> Json:
    """The object with its type: what comes out of a list has none."""
    if obj.get("kind") and obj.get("apiVersion"):
        return obj
    return {**obj, "kind": resource.kind, "apiVersion": resource.api_version}
