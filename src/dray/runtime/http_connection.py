"""HTTP/1.1 over TLS, as little of it as a Kubernetes client needs: keep-alive, one request at a time, streams.

A response is read completely, unless a stream is asked for; then its body comes in chunks, and the socket isn't read
while too many of them wait.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

import httptools

_STREAM_BUFFER: Final = 64
"""Chunks that may wait in a stream before reading pauses."""


class ConnectionLost(Exception):
    """The connection ended before the response did. `clean`: nothing of the response had come."""

    def __init__(self, text: str, *, clean: bool) -> None:
        super().__init__(text)
        self.clean = clean


class HttpResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    """Names in lower case; of several with one name the last."""
    body: bytes


class Connection(asyncio.Protocol):
    """One connection. Not for concurrent use."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._status: asyncio.Future[None] | None = None
        self._done: asyncio.Future[None] | None = None
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._stream: asyncio.Queue[bytes | None] | None = None
        self._began = False
        self._lost = False
        self._paused = False

    @classmethod
    async def open(cls, host: str, port: int, context: ssl.SSLContext, server_name: str) -> Connection:
        """Raises OSError (which TLS errors are, too)."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, host, port, ssl=context, server_hostname=server_name or host)
        return connection

    @property
    def is_usable(self) -> bool:
        return not self._lost and self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        self._lost = True
        if self._transport is not None:
            self._transport.abort()

    async def request(self, data: bytes) -> HttpResponse:
        """Raises ConnectionLost."""
        self._begin(data)
        assert self._done is not None
        try:
            await self._done
        except asyncio.CancelledError:
            self.close()  # the rest of the response would be taken for the next one
            raise
        return self._response()

    async def stream(self, data: bytes) -> tuple[HttpResponse, AsyncIterator[bytes]]:
        """The head of a response, and its body as it comes. The connection is closed after it."""
        self._stream = asyncio.Queue()
        self._begin(data)
        assert self._status is not None
        try:
            await self._status
        except asyncio.CancelledError:
            self.close()
            raise
        return self._response(), self._chunks(self._stream)

    def _response(self) -> HttpResponse:
        return HttpResponse(self._parser.get_status_code(), self._headers, b"".join(self._parts))

    def _begin(self, data: bytes) -> None:
        if not self.is_usable or self._transport is None:
            raise ConnectionLost("the connection is closed", clean=True)
        loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._parts = {}, []
        self._began = False
        self._status, self._done = loop.create_future(), loop.create_future()
        self._transport.write(data)

    async def _chunks(self, queue: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
        try:
            while (chunk := await queue.get()) is not None:
                if self._paused and queue.qsize() < _STREAM_BUFFER // 2 and self._transport is not None:
                    self._paused = False
                    self._transport.resume_reading()
                yield chunk
        finally:
            self.close()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._parser is None:  # nobody asked anything: whatever this is, the connection can't be trusted
            self.close()
            return
        self._began = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"the response can't be understood: {error}")
            self.close()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._fail(f"the connection was lost: {exc}" if exc else "the server closed the connection")

    def _fail(self, text: str) -> None:
        error = ConnectionLost(text, clean=not self._began)
        for future in (self._status, self._done):
            if future is not None and not future.done():
                future.set_exception(error)
                future.exception()  # whoever waits gets it; nobody may be waiting
        if self._stream is not None:
            self._stream.put_nowait(None)

    # httptools callbacks

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._status is not None and not self._status.done():
            self._status.set_result(None)

    def on_body(self, body: bytes) -> None:
        if self._stream is None:
            self._parts.append(body)
            return
        self._stream.put_nowait(body)
        if self._stream.qsize() >= _STREAM_BUFFER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if not self._parser.should_keep_alive():
            self._lost = True
        if self._done is not None and not self._done.done():
            self._done.set_result(None)
        if self._stream is not None:
            self._stream.put_nowait(None)
