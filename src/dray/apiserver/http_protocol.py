"""One HTTP connection: uvicorn's, with limits for clients who dawdle or flood.

- Request headers must be complete in time and not too big.
- A body that nobody reads (the answer was sent early) is discarded up to a limit.
- A client who doesn't take its response is cut off; so a watcher who stops reading can't hold memory.
- The verified client certificate travels to the application in the scope.
- What is written in one turn of the event loop leaves in one piece: a response's head and body make one TLS record
  and one system call.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

CERTIFICATE: Final = "dray.certificate"
"""The key in the ASGI scope under which the peer's certificate is, as `ssl` describes it."""

_BIG: Final = 64 << 10
# Strangers' nonsense is no news; errors of our own are.
_log: Final = logging.getLogger("dray.apiserver.connections")
_log.setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    connections: int = 10_000
    """At a time; more are closed at once."""
    header_seconds: float = 10.0
    """To finish the headers, from the connection's start or the request's first byte."""
    header_bytes: int = 256 << 10
    write_seconds: float = 30.0
    """For a client to take what is waiting for it."""
    discarded_bytes: int = 256 << 20
    idle_seconds: float = 90.0
    """Between requests. Go clients keep idle connections for 90 seconds."""


class CoalescingTransport(asyncio.Transport):
    """Gathers small writes until the event loop's next turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._gathered: list[bytes] = []

    def write(self, data: Any) -> None:
        if len(data) >= _BIG:  # not worth a copy
            self._flush()
            self._transport.write(data)
            return
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered.append(data)

    def _flush(self) -> None:
        if self._gathered:
            data = self._gathered[0] if len(self._gathered) == 1 else b"".join(self._gathered)
            self._gathered.clear()
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._gathered.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)


class LimitedProtocol(HttpToolsProtocol):
    def __init__(self, config: Config, state: ServerState, limits: ConnectionLimits) -> None:
        super().__init__(config, state, {})
        self.logger = _log
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._reading_headers = False
        self._unparsed = 0
        self._discarded = 0
        self._certificate: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(CoalescingTransport(transport, self.loop))
        if len(self.connections) > self._limits.connections:
            self.transport.abort()
            return
        ssl_object = transport.get_extra_info("ssl_object")
        self._certificate = None if ssl_object is None else ssl_object.getpeercert() or None
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_write_timer()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._reading_headers and not self.transport.is_closing():
            if self._timer is None:  # most requests come whole and never need one
                self._start_timer()
            self._unparsed += len(data)
            if self._unparsed > self._limits.header_bytes:
                self._refuse(431)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[CERTIFICATE] = self._certificate  # type: ignore[typeddict-unknown-key]
        self._reading_headers = True
        self._unparsed = 0
        self._discarded = 0

    def on_headers_complete(self) -> None:
        self._reading_headers = False
        self._stop_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.cycle.response_complete:
            self._discarded += len(body)
            if self._discarded > self._limits.discarded_bytes:
                self.transport.abort()
        super().on_body(body)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self._limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_write_timer()
        super().resume_writing()

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self._limits.header_seconds, self._refuse, 408)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _refuse(self, status: int) -> None:
        """Ends the connection. A request that is being answered on it (pipelining) goes with it."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(STATUS_LINE[status] + b"connection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()
        else:
            self.transport.abort()
