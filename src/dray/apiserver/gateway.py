"""The way in: who asks, may they, is there room; then the registry; then the answer. One ASGI application.

In this order, cheapest first and nothing of the body read before it is known who sends it:
authenticate → impersonate → authorize → admit (overload) → read the body → handle, in time → answer.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from email.utils import formatdate
from typing import Any, Final

from dray.api.errors import BadRequest, InternalError, ServerTimeout, ServiceUnavailable, StatusError
from dray.apiserver.authentication import Authenticator
from dray.apiserver.authorization import forbidden
from dray.apiserver.bodies import ClientGone, Receive, check_depth, read_body
from dray.apiserver.health import ENDPOINTS, Health
from dray.apiserver.http_protocol import CERTIFICATE
from dray.apiserver.impersonation import impersonate
from dray.apiserver.metrics import CONTENT_TYPE as METRICS_TYPE
from dray.apiserver.metrics import Metrics
from dray.apiserver.overload import InFlight, RequestLimits
from dray.apiserver.requests import ApiRequest, Query, RequestInfo, parse_request
from dray.apiserver.responses import ApiResponse, error_response
from dray.apiserver.users import Authorizer

Handler = Callable[[ApiRequest], Awaitable[ApiResponse]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_log: Final = logging.getLogger("dray.apiserver")


class StreamBroken(Exception):
    """A response failed after it had begun. The connection ends without its last chunk, so the client notices."""


class Gateway:
    """An ASGI application around a handler that only sees requests which may proceed."""

    def __init__(
        self,
        handle: Handler,
        *,
        authenticator: Authenticator,
        authorize: Authorizer,
        health: Health,
        metrics: Metrics,
        limits: RequestLimits,
    ) -> None:
        self._handle = handle
        self._authenticator = authenticator
        self._authorize = authorize
        self._health = health
        self._metrics = metrics
        self._limits = limits
        self._in_flight = InFlight(limits)
        self._streams: set[asyncio.Timeout] = set()
        self._stopping = False
        self._date = (0, b"")
        for kind in self._in_flight.counts:
            self._metrics.add_gauge(
                f"apiserver_current_inflight_{kind}",
                f"Requests in progress: {kind}.",
                lambda kind=kind: self._in_flight.counts[kind],  # type: ignore[misc]
            )

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    def end_streams(self) -> None:
        """Ends every watch as if its time were over. New ones are refused."""
        self._stopping = True
        now = asyncio.get_running_loop().time()
        for stream in self._streams:
            stream.reschedule(now)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"can't serve {scope['type']}")
        started = time.perf_counter()
        method, path = scope["method"], scope["raw_path"].decode("latin-1")
        info = RequestInfo(verb=method.lower(), path=path)
        try:
            query = _parse_query(scope["query_string"])
            info = parse_request(method, path, query)
            response = await self._respond(scope, receive, send, info, query)
        except ClientGone:
            return
        except StatusError as error:
            response = error_response(error)
        except StreamBroken:
            return
        except Exception:  # noqa: BLE001 - the last line of defence: one bad request must not end the connection
            _log.exception("%s %s failed", method, path)
            response = error_response(InternalError("Internal error occurred: see the server's log"))
        if response is not None:
            await self._send(response.status, self._headers(response), response.body, send)
        status = 200 if response is None else response.status
        self._metrics.observe(info, status, None if response is None else time.perf_counter() - started)

    async def _respond(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send, info: RequestInfo, query: Query
    ) -> ApiResponse | None:
        """The answer; None if it was a stream, which has been sent."""
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        headers = dict(pairs)
        user = await self._authenticator.authenticate(headers, scope.get(CERTIFICATE))
        user = impersonate(user, pairs, self._authorize)
        asked = info.attributes(user, query)
        decision = self._authorize(asked)
        if not decision.allowed:
            raise forbidden(asked, decision.reason)
        if not info.is_resource_request:
            match info.path.strip("/").split("/", 1)[0]:
                case endpoint if endpoint in ENDPOINTS:
                    return self._health.respond(info.path, query)
                case "metrics":
                    return ApiResponse(200, self._metrics.render(), content_type=METRICS_TYPE)
        with self._in_flight.admit(info.verb):
            try:
                async with asyncio.timeout(self._limits.seconds):
                    body = b""
                    if scope["method"] in _WITH_BODY:
                        body = await read_body(receive, headers.get("content-length", ""), self._limits.body_bytes)
                        check_depth(body, self._limits.json_depth)
                    request = ApiRequest(scope["method"], info, query, user, headers, body)
                    response = await self._handle(request)
            except TimeoutError as error:
                raise ServerTimeout("Timeout: request did not complete within the allotted time") from error
            if isinstance(response.body, bytes):
                return response
            await self._stream(response, response.body, receive, send)
            return None

    async def _stream(self, response: ApiResponse, chunks: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
        """Sends chunks until they end, the client goes, or the server stops."""
        if self._stopping:
            raise ServiceUnavailable("the server is shutting down", headers={"Retry-After": "1"})
        gone = False
        loop = asyncio.get_running_loop()

        async def wait_for_disconnect(stream: asyncio.Timeout) -> None:
            nonlocal gone
            while (await receive())["type"] != "http.disconnect":
                pass
            gone = True
            stream.reschedule(loop.time())

        await send({"type": "http.response.start", "status": response.status, "headers": self._headers(response)})
        watcher: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(None) as stream, aclosing(chunks) as source:  # type: ignore[type-var]
                self._streams.add(stream)
                watcher = asyncio.create_task(wait_for_disconnect(stream))
                async for chunk in source:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except TimeoutError:
            if gone:
                return
        except Exception as error:  # the answer has begun, so all that is left is to cut it off
            _log.exception("a stream failed")
            raise StreamBroken from error
        finally:
            self._streams.discard(stream)
            if watcher is not None:
                watcher.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, status: int, headers: list[tuple[bytes, bytes]], body: Any, send: Send) -> None:
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    def _headers(self, response: ApiResponse) -> list[tuple[bytes, bytes]]:
        now = int(time.time())
        if self._date[0] != now:
            self._date = (now, formatdate(now, usegmt=True).encode())
        headers = [
            (b"content-type", response.content_type.encode()),
            (b"cache-control", b"no-cache, private"),
            (b"date", self._date[1]),
        ]
        headers += [(name.lower().encode(), _header_value(value)) for name, value in response.headers]
        return headers


def _header_value(text: str) -> bytes:
    """Warnings repeat what clients sent; line breaks in there must not become headers."""
    return _CONTROL.sub(" ", text).encode("latin-1", "replace")


def _parse_query(text: bytes) -> Query:
    try:
        return Query(text.decode("latin-1"))
    except ValueError as error:
        raise BadRequest(f"the query can't be understood: {error}") from error
