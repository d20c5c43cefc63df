"""An HTTP server that answers as a test tells it to, badly if need be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from dray.runtime.access import ClusterAccess


class Seen(NamedTuple):
    connection: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]
"""Bytes to send; an empty answer closes the connection."""


def reply(status: int, body: str = "{}", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(text: str) -> bytes:
    return f"{len(text.encode()):x}\r\n{text}\r\n".encode()


class ScriptedServer:
    def __init__(self, answers: list[Answer]) -> None:
        self._answers = answers
        self._connections = 0
        self.seen: list[Seen] = []
        self.access = ClusterAccess("http://unset")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        number = self._connections
        try:
            while request := await _read(number, reader):
                self.seen.append(request)
                answer = self._answers.pop(0)
                if not answer:
                    return
                if isinstance(answer, bytes):
                    writer.write(answer)
                else:
                    await answer(writer)
        except ConnectionError:
            return
        finally:
            writer.close()

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.access = ClusterAccess(f"http://127.0.0.1:{port}")
        return server


async def _read(connection: int, reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(connection, method, path, headers, body)


@asynccontextmanager
async def answering(*answers: Answer) -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(list(answers))
    server = await scripted.start()
    try:
        yield scripted
    finally:
        server.close()
