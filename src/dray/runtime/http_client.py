"""The `Client` over HTTPS: to `dray apiserver`, or to any Kubernetes API server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import msgspec

from dray.api.errors import BadRequest, InternalError, ServiceUnavailable, error_from_status
from dray.api.meta import Json
from dray.api.resources import Resource
from dray.runtime.access import ClusterAccess
from dray.runtime.client import EventType, PatchStep, PatchType, WatchEvent
from dray.runtime.clock import Clock, SystemClock
from dray.runtime.http_connection import Connection, ConnectionLost
from dray.runtime.http_pool import DEFAULT_LIMITS, HttpLimits, Pool

WATCH_SECONDS: Final = 300
"""A watch ends after once to twice this time, unless told otherwise: so load finds its way to servers that came back,
and a watch that hangs doesn't do so for ever."""
GRACE_SECONDS: Final = 30


class _Frame(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: Json


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Json).decode
_decode_frame: Final = msgspec.json.Decoder(_Frame).decode

_UNCHECKED: Final = "?fieldValidation=Ignore"
"""Nobody reads warnings about fields that the server doesn't know, so it need not look for them."""


class HttpClient:
    """Close it when done, or use it as an async context manager."""

    def __init__(
        self,
        access: ClusterAccess,
        *,
        agent: str = "dray",
        clock: Clock | None = None,
        limits: HttpLimits = DEFAULT_LIMITS,
    ) -> None:
        """Raises BadAccess. `agent` is who we are in the server's logs and in the fields that we manage."""
        self.access = access
        self._pool = Pool(access, clock or SystemClock(), agent, limits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._pool.close()

    async def get_raw(self, path: str) -> Json:
        """Any path of the server that answers with JSON, such as discovery."""
        return _read(await self._pool.call("GET", path))

    @asynccontextmanager
    async def stream_raw(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Any path whose answer comes in pieces, such as a log that is followed."""
        connection = await self._pool.open_stream(path)
        try:
            yield connection.pieces()
        finally:
            self._pool.close_stream(connection)

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
        seconds = timeout_seconds or round(WATCH_SECONDS * (1 + random.random()))
        query = {
            "watch": "true",
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true" if allow_bookmarks else "",
            "timeoutSeconds": seconds,
        }
        return self._watch(_path(resource, namespace) + _query(query), seconds)

    @asynccontextmanager
    async def _watch(self, path: str, seconds: int) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        connection = await self._pool.open_stream(path)
        timer = asyncio.get_running_loop().call_later(seconds + GRACE_SECONDS, connection.close)
        try:
            yield _events(connection)
        finally:
            timer.cancel()
            self._pool.close_stream(connection)

    async def create(
        self, resource: Resource, obj: Json, namespace: str = "", *, subresource: str = "", name: str = ""
    ) -> Json:
        namespace = namespace or obj.get("metadata", {}).get("namespace", "")
        path = _path(resource, namespace, name, subresource) + _UNCHECKED
        body = obj if subresource else _typed(resource, obj)
        return await self._write("POST", path, body)

    async def update(self, resource: Resource, obj: Json, *, subresource: str = "") -> Json:
        metadata = obj.get("metadata", {})
        path = _path(resource, metadata.get("namespace", ""), metadata.get("name", ""), subresource) + _UNCHECKED
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
        query = {"fieldValidation": "Ignore", "fieldManager": field_manager, "force": "true" if force else ""}
        path = _path(resource, namespace, name, subresource) + _query(query)
        body: Any = patch if isinstance(patch, dict) else list(patch)
        return await self._write("PATCH", path, body, patch_type.value)

    @property
    def joins_steps(self) -> bool:
        return False

    async def patch_steps(self, resource: Resource, name: str, steps: Sequence[PatchStep], namespace: str = "") -> Json:
        stored: Json = {}
        for step in steps:
            if stored:
                step = step.provided(stored["metadata"]["uid"], stored["metadata"]["resourceVersion"])
            stored = await self.patch(resource, name, step.patch, namespace, subresource=step.subresource)
        return stored

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
        return _read(await self._pool.call(method, path, _encode(body), content_type))


def _read(body: bytes) -> Json:
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InternalError(f"the server's answer is not a JSON object: {error}") from None


async def _events(connection: Connection) -> AsyncIterator[WatchEvent]:
    """Lines of JSON, out of pieces that know nothing of lines. Raises what an ERROR event says."""
    rest = b""
    try:
        async for piece in connection.pieces():
            *lines, rest = (rest + piece).split(b"\n") if rest else piece.split(b"\n")
            for line in lines:
                if line:
                    yield _read_event(line)
    except ConnectionLost as error:
        raise ServiceUnavailable(f"the watch broke: {error}") from None


def _read_event(line: bytes) -> WatchEvent:
    try:
        frame = _decode_frame(line)
        if frame.type == "ERROR":
            raise error_from_status(frame.object, int(frame.object.get("code") or 500))
        return WatchEvent(EventType(frame.type), frame.object)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise InternalError(f"the watch sent something that is no event: {error}") from None


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
