"""Connections to one server, opened as needed and used again; requests that failed for want of luck are tried again."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

import dray
from dray.api.errors import ServiceUnavailable, StatusError, Unauthorized, error_from_status
from dray.api.meta import Json
from dray.runtime.access import ClusterAccess, make_tls_context
from dray.runtime.clock import Clock
from dray.runtime.credentials import KeyPair, NoCredentials
from dray.runtime.http_connection import Connection, ConnectionLost, HttpResponse

MAX_CONNECTIONS: Final = 64
MAX_TRIES: Final = 6
_FIRST_DELAY: Final = 0.1
_LONGEST_DELAY: Final = 10.0
_REPEATABLE: Final = frozenset({"GET", "PUT", "DELETE"})
"""Doing these twice does what doing them once does; a second delete may find nothing."""

_BUSY: Final = frozenset({429, 503})
"""The server says that it did nothing."""

_BROKEN: Final = frozenset({500, 502, 504})


class Pool:
    def __init__(self, access: ClusterAccess, clock: Clock, agent: str) -> None:
        self._access = access
        self._clock = clock
        self._credentials = access.credentials
        parts = urlsplit(access.server)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._prefix = parts.path.rstrip("/")
        self._head = f"Host: {parts.netloc}\r\nUser-Agent: {agent}/{dray.__version__}\r\nAccept: application/json\r\n"
        self._idle: list[Connection] = []
        self._room = asyncio.Semaphore(MAX_CONNECTIONS)
        self._context: tuple[KeyPair | None, ssl.SSLContext] | None = None
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def call(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
        """The body of a good answer. Raises StatusError: the server's own, or ServiceUnavailable if it is away."""
        renewed = False
        for attempt in range(1, MAX_TRIES + 1):
            last = attempt == MAX_TRIES
            try:
                response = await self._send(method, path, body, content_type)
            except NoCredentials as error:
                raise Unauthorized(str(error)) from error
            except (ConnectionLost, OSError) as error:
                # A request that may have reached the server is repeated only if that does no harm.
                unsent = isinstance(error, OSError)
                if last or not (unsent or method in _REPEATABLE):
                    raise self._away(error) from error
                await self._wait(attempt, None)
                continue
            if response.status < 300:
                return response.body
            if response.status == 401 and not renewed and self._credentials.refused():
                renewed = True
                continue
            again = response.status in _BUSY or (response.status in _BROKEN and method == "GET")
            if last or not again:
                raise error_of(response)
            await self._wait(attempt, response.headers.get("retry-after"))
        raise AssertionError("the last attempt returns or raises")

    async def stream(self, path: str) -> tuple[Connection, AsyncIterator[bytes]]:
        """A watch, on a connection of its own, which the caller closes. Raises StatusError."""
        try:
            connection = await self._open()
            head, chunks = await connection.stream(await self._encode("GET", path, b"", ""))
        except NoCredentials as error:
            raise Unauthorized(str(error)) from error
        except (ConnectionLost, OSError) as error:
            raise self._away(error) from error
        if head.status != 200:
            body = b"".join([chunk async for chunk in chunks])
            raise error_of(head._replace(body=body))
        return connection, chunks

    async def _send(self, method: str, path: str, body: bytes, content_type: str) -> HttpResponse:
        data = await self._encode(method, path, body, content_type)
        async with self._room:
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_usable:
                    continue
                try:
                    return await self._use(connection, data)
                except ConnectionLost as error:
                    # The server closes idle connections when it likes: then it hasn't seen the request. After a
                    # request that may not be repeated we can't be sure of that, so only a fresh connection is tried.
                    if not error.clean or method not in _REPEATABLE:
                        raise
            return await self._use(await self._open(), data)

    async def _use(self, connection: Connection, data: bytes) -> HttpResponse:
        response = await connection.request(data)
        if connection.is_usable and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()
        return response

    async def _open(self) -> Connection:
        if self._closed:
            raise ConnectionLost("the client is closed", clean=True)
        pair = await self._credentials.key_pair()
        if self._context is None or self._context[0] is not pair:
            self._context = (pair, make_tls_context(self._access, pair))
        return await Connection.open(self._host, self._port, self._context[1], self._access.server_name)

    async def _encode(self, method: str, path: str, body: bytes, content_type: str) -> bytes:
        lines = [f"{method} {self._prefix}{path} HTTP/1.1\r\n", self._head]
        authorization = await self._credentials.authorization()
        if authorization:
            lines.append(f"Authorization: {authorization}\r\n")
        lines.extend(f"{name}: {value}\r\n" for name, value in self._access.impersonate)
        if body:
            lines.append(f"Content-Type: {content_type}\r\n")
        if body or method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(body)}\r\n")
        lines.append("\r\n")
        return "".join(lines).encode() + body

    async def _wait(self, attempt: int, retry_after: str | None) -> None:
        delay = min(_FIRST_DELAY * 2 ** (attempt - 1), _LONGEST_DELAY)
        # Some spread, so that many clients don't come back at once.
        delay *= 0.5 + random.random()
        if retry_after is not None and retry_after.isdigit():
            delay = max(delay, min(float(retry_after), _LONGEST_DELAY))
        await self._clock.sleep(delay)

    def _away(self, error: Exception) -> ServiceUnavailable:
        return ServiceUnavailable(f"no answer from {self._access.server}: {error}")


def error_of(response: HttpResponse) -> StatusError:
    try:
        status: Any = msgspec.json.decode(response.body)
    except msgspec.DecodeError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = response.body.decode(errors="replace").strip()[:500]
        plain: Json = {"message": text or f"HTTP {response.status}"}
        return error_from_status(plain, response.status)
    return error_from_status(status, response.status)
