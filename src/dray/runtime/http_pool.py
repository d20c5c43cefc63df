"""Connections to one server, opened as needed and used again; requests that failed for want of luck are tried again.

What may be repeated: a request that was refused (429, or a connection that never came about) has certainly done
nothing, so any of those; a GET does nothing anyway, so also after 5xx and broken connections. A write whose answer got
lost may have happened. It fails, and whoever wants it looks again before deciding anew.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections import deque
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

import dray
from dray.api.errors import ServerTimeout, ServiceUnavailable, StatusError, error_from_status
from dray.api.meta import Json
from dray.runtime.access import BadAccess, ClusterAccess, make_tls_context
from dray.runtime.clock import Clock
from dray.runtime.credentials import KeyPair, NoCredentials
from dray.runtime.http_connection import Connection, HttpResponse

_BROKEN: Final = frozenset({500, 502, 503, 504})
_SPACE: Final = frozenset("\r\n")


@dataclass(frozen=True, slots=True)
class HttpLimits:
    connections: int = 32
    """Requests under way at the same time; watches don't count. More wait for their turn."""
    idle_seconds: float = 30.0
    """Kept open without a request; less than any server waits, so that it doesn't hang up while we send."""
    connect_seconds: float = 10.0
    request_seconds: float = 30.0
    tries: int = 5
    first_delay: float = 0.1
    longest_delay: float = 10.0


DEFAULT_LIMITS: Final = HttpLimits()


class _NotSent(Exception):
    """The request certainly didn't reach the server."""


class Pool:
    def __init__(self, access: ClusterAccess, clock: Clock, agent: str, limits: HttpLimits = DEFAULT_LIMITS) -> None:
        self._access = access
        self._clock = clock
        self._limits = limits
        parts = urlsplit(access.server)
        self._is_tls = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if self._is_tls else 80)
        self._prefix = parts.path.rstrip("/")
        lines = [
            f"Host: {parts.netloc}",
            f"User-Agent: {agent}/{dray.__version__}",
            "Accept: application/json",
            *(f"{name}: {value}" for name, value in access.impersonate),
        ]
        self._head = "".join(f"{line}\r\n" for line in lines)
        self._idle: deque[Connection] = deque()
        self._streams: set[Connection] = set()
        self._room = asyncio.Semaphore(limits.connections)
        self._key_pair: KeyPair | None = None
        # Made now, so that a certificate that can't be used is told at the start.
        self._context: ssl.SSLContext | None = make_tls_context(access) if self._is_tls else None
        self._is_closed = False

    async def close(self) -> None:
        self._is_closed = True
        for connection in (*self._idle, *self._streams):
            connection.close()
        self._idle.clear()

    async def call(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
        """The body of a good answer. Raises StatusError: the server's own, or one of ours if there was no answer."""
        was_refused = False
        tries = 1
        while True:
            retry_after: str | None = None
            try:
                response = await self._send(method, path, body, content_type)
            except (_NotSent, TimeoutError, OSError) as error:
                problem = self._no_answer(error)
                may_repeat = method == "GET" or isinstance(error, _NotSent)
            else:
                if response.status < 300:
                    return response.body
                problem = read_error(response)
                retry_after = response.headers.get("retry-after")
                may_repeat = response.status == 429 or (method == "GET" and response.status in _BROKEN)
                if response.status == 401 and not was_refused and self._access.credentials.refused():
                    was_refused = True
                    continue
            if not may_repeat or tries >= self._limits.tries or self._is_closed:
                raise problem
            await self._wait(tries, retry_after)
            tries += 1

    async def open_stream(self, path: str) -> Connection:
        """A response without end, on a connection of its own, which the caller gives to `close_stream`.

        Raises StatusError. Never repeated: who follows something knows best where to go on.
        """
        try:
            async with asyncio.timeout(self._limits.request_seconds):
                data = await self._encode("GET", path, b"", "")
                connection = await self._open()
                self._streams.add(connection)
                head = await connection.stream(data)
                if head.status == 200:
                    return connection
                try:
                    text = b"".join([piece async for piece in connection.pieces()])
                finally:
                    self.close_stream(connection)
        except (_NotSent, TimeoutError, OSError) as error:
            raise self._no_answer(error) from None
        if head.status == 401:
            self._access.credentials.refused()
        raise read_error(head._replace(body=text))

    def close_stream(self, connection: Connection) -> None:
        self._streams.discard(connection)
        connection.close()

    async def _send(self, method: str, path: str, body: bytes, content_type: str) -> HttpResponse:
        """Raises _NotSent, TimeoutError, OSError."""
        data = await self._encode(method, path, body, content_type)
        async with self._room:
            connection = self._take_idle() or await self._open()
            async with asyncio.timeout(self._limits.request_seconds):
                response = await connection.request(data)
            if connection.is_usable and not self._is_closed:
                self._idle.append(connection)
            else:
                connection.close()
            return response

    def _take_idle(self) -> Connection | None:
        """The one used last, so that those which aren't needed any more grow old."""
        oldest = asyncio.get_running_loop().time() - self._limits.idle_seconds
        while self._idle and self._idle[0].idle_since <= oldest:
            self._idle.popleft().close()
        while self._idle:
            if (connection := self._idle.pop()).is_usable:
                return connection
            connection.close()
        return None

    async def _open(self) -> Connection:
        """Raises _NotSent."""
        if self._is_closed:
            raise _NotSent("the client is closed")
        try:
            if self._is_tls and (pair := await self._access.credentials.key_pair()) is not self._key_pair:
                self._context = make_tls_context(self._access, pair)
                self._key_pair = pair
            async with asyncio.timeout(self._limits.connect_seconds):
                return await Connection.open(self._host, self._port, self._context, self._access.server_name)
        except TimeoutError:
            raise _NotSent(f"no connection within {self._limits.connect_seconds:g} s") from None
        except (OSError, BadAccess) as error:
            raise _NotSent(str(error)) from None

    async def _encode(self, method: str, path: str, body: bytes, content_type: str) -> bytes:
        if not _SPACE.isdisjoint(path):
            raise ValueError(f"not a path: {path!r}")
        lines = f"{method} {self._prefix}{path} HTTP/1.1\r\n{self._head}"
        try:
            authorization = await self._access.credentials.authorization()
        except NoCredentials as error:
            raise _NotSent(str(error)) from None
        if authorization is not None:
            lines += f"Authorization: {authorization}\r\n"
        if method != "GET":
            lines += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        return f"{lines}\r\n".encode("latin-1") + body

    async def _wait(self, tries: int, retry_after: str | None) -> None:
        delay = min(self._limits.first_delay * 2.0 ** (tries - 1), self._limits.longest_delay)
        if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
            delay = max(delay, min(float(retry_after), self._limits.longest_delay))
        await self._clock.sleep(delay * (1.0 + random.random() / 4))  # so that many clients don't come back at once

    def _no_answer(self, error: Exception) -> StatusError:
        if isinstance(error, TimeoutError) and not error.args:
            return ServerTimeout(f"{self._access.server}: no answer within {self._limits.request_seconds:g} s")
        return ServiceUnavailable(f"{self._access.server}: {error}")


def read_error(response: HttpResponse) -> StatusError:
    """What a bad answer says: a Status, or whatever a proxy in between made up."""
    try:
        status: Any = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return error_from_status(status, response.status)
    text = response.body.decode(errors="replace").strip()[:500]
    plain: Json = {"message": text or f"HTTP status {response.status}"}
    return error_from_status(plain, response.status)
