"""One HTTP/1.1 connection, as little of it as a Kubernetes client needs: keep-alive, one request at a time, streams.

A response is read whole, unless a stream is asked for: then its body comes in pieces, and the socket isn't read while
too much of it waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

import httptools

_WAITING_BYTES: Final = 1 << 20
"""What may wait in a stream before reading pauses."""

_KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 3))
"""A peer that vanished without a word is noticed after a minute. Linux' names; others have some of them."""


class ConnectionLost(OSError):
    """The connection ended before the response did."""


class HttpResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    """Names in lower case; of several with one name the last."""
    body: bytes


class Connection(asyncio.Protocol):
    """Not for concurrent use."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser: Any = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        """Of whoever waits for the response; in a stream for its head, then for the next piece."""
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._is_stream = False
        self._is_complete = True
        self._is_paused = False
        self._lost: ConnectionLost | None = None
        self.idle_since = 0.0

    @classmethod
    async def open(cls, host: str, port: int, context: ssl.SSLContext | None, server_name: str = "") -> Connection:
        """Raises OSError, which TLS errors are, too."""
        name = (server_name or host) if context is not None else None
        loop = asyncio.get_running_loop()
        transport, connection = await loop.create_connection(cls, host, port, ssl=context, server_hostname=name)
        _keep_alive(transport.get_extra_info("socket"))
        return connection

    @property
    def is_usable(self) -> bool:
        """Whether a request can be sent now."""
        return self._is_complete and self._lost is None and not self._open_transport.is_closing()

    @property
    def _open_transport(self) -> asyncio.Transport:
        assert self._transport is not None  # set before `open` returns
        return self._transport

    def close(self) -> None:
        self._lost = self._lost or ConnectionLost("the connection was closed")
        self._open_transport.abort()

    async def request(self, data: bytes) -> HttpResponse:
        """Raises ConnectionLost."""
        self._begin(data, is_stream=False)
        try:
            await self._wait()
        except BaseException:
            self.close()  # the rest of the response would be taken for the next one
            raise
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        response = HttpResponse(self._parser.get_status_code(), self._headers, body)
        self.idle_since = self._loop.time()
        return response

    async def stream(self, data: bytes) -> HttpResponse:
        """The head of the response; `pieces` gives its body. The connection must be closed after it."""
        self._begin(data, is_stream=True)
        try:
            await self._wait()
        except BaseException:
            self.close()
            raise
        return HttpResponse(self._parser.get_status_code(), self._headers, b"")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body of a stream, as it comes. Raises ConnectionLost if it doesn't end as it should."""
        while True:
            if not self._pieces:
                if self._is_complete:
                    return
                await self._wait()
                continue
            data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            self._waiting = 0
            if self._is_paused:
                self._is_paused = False
                self._open_transport.resume_reading()
            yield data

    def _begin(self, data: bytes, *, is_stream: bool) -> None:
        if self._lost is not None:
            raise self._lost
        self._headers = {}
        self._pieces = []
        self._is_stream = is_stream
        self._is_complete = False
        self._open_transport.write(data)

    async def _wait(self) -> None:
        if self._lost is not None:
            raise self._lost
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._is_complete:  # nobody asked anything: whatever this is, the connection can't be trusted
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionLost(f"the response can't be understood: {error}"))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionLost(f"the connection was lost: {exc}" if exc else "the server closed the connection"))

    def _fail(self, error: ConnectionLost) -> None:
        self._lost = self._lost or error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(self._lost)

    # httptools' callbacks

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._is_stream:
            self._wake()

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        if self._is_stream:
            self._waiting += len(body)
            if self._waiting > _WAITING_BYTES and not self._is_paused:
                self._is_paused = True
                self._open_transport.pause_reading()
            self._wake()

    def on_message_complete(self) -> None:
        self._is_complete = True
        if not self._parser.should_keep_alive():
            self._lost = ConnectionLost("the server closed the connection")
        self._wake()


def _keep_alive(sock: socket.socket | None) -> None:
    if sock is None:
        return
    with contextlib.suppress(OSError):  # a courtesy of the system, not a condition
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE:
            if (option := getattr(socket, name, None)) is not None:
                sock.setsockopt(socket.IPPROTO_TCP, option, value)
