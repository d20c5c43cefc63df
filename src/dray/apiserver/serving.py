"""Listens for HTTPS connections and stops in good order."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from dray.apiserver.http_protocol import ConnectionLimits, LimitedProtocol


class CannotListen(Exception):
    """The address can't be bound; the text says which and why."""


class HttpsServer:
    """Serves one ASGI application."""

    def __init__(self, app: Any, context: ssl.SSLContext, limits: ConnectionLimits | None = None) -> None:
        self._limits = limits or ConnectionLimits()
        # Everything but the protocol's own settings is off: we listen, log and stop ourselves.
        self._config = Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=int(self._limits.idle_seconds),
        )
        self._config.load()
        self._context = context
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Begins to listen; returns the port (port 0: any free one)."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: LimitedProtocol(self._config, self._state, self._limits),
                host,
                port,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.header_seconds,
                backlog=1024,
                reuse_address=True,
            )
        except OSError as error:
            why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise CannotListen(f"can't listen on {host} port {port}: {why}") from error
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    @property
    def connections(self) -> int:
        return len(self._state.connections)

    async def stop(self, *, end_streams: Callable[[], None], seconds: float) -> None:
        """Stops listening, lets requests finish for so long, ends streams at once, then closes what is left."""
        if self._server is None:
            return
        self._server.close()
        end_streams()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(set(self._state.tasks), timeout=seconds)
        for task in set(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
        if self._state.tasks:
            await asyncio.wait(set(self._state.tasks), timeout=seconds)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except socket.gaierror:
        return False
    return all(str(address).startswith("127.") or address == "::1" for address in addresses)
