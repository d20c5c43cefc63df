"""Logs of nodes in other processes: fetched from the port that the node's agent serves.

Where that is, the Node object says (`status.addresses`, `status.daemonEndpoints`), and by which certificate the agent
is known (an annotation). To the agent the server proves itself with a client certificate of the cluster's authority.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import tempfile
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import urlencode

from dray.api.errors import BadRequest, NotFound, ServiceUnavailable
from dray.api.meta import Json
from dray.apiserver.certificates import CertificateAuthority
from dray.apiserver.pod_logs import LogRequest
from dray.apiserver.registry import Registry
from dray.apiserver.resources import find_row
from dray.apiserver.targets import Target

READER: Final = "kube-apiserver-kubelet-client"
FINGERPRINT: Final = "dray.dev/log-certificate"
CONNECT_SECONDS: Final = 5.0
CHUNK: Final = 64 * 1024


class NodeLogProxy:
    def __init__(self, registry: Registry, authority: CertificateAuthority) -> None:
        self._registry = registry
        self._context = _client_context(authority)

    async def read(self, request: LogRequest) -> AsyncIterator[bytes]:
        reader, writer = await self._connect(await self._find_node(request.node))
        try:
            writer.write(_head(request))
            await writer.drain()
            status, length = await _read_head(reader)
            if status != 200:
                text = (await reader.read(min(length, CHUNK))).decode(errors="replace")
                raise NotFound(text, details={}) if status == 404 else BadRequest(text)
            yield b""
            while data := await reader.read(CHUNK):
                yield data
        finally:
            writer.close()

    async def _find_node(self, name: str) -> Json:
        row = find_row("", "v1", "nodes")
        assert row is not None
        return (await self._registry.get(Target(row, "v1", "", name))).obj

    async def _connect(self, node: Json) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        name, status = node["metadata"]["name"], node.get("status") or {}
        port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or 0
        addresses = [item["address"] for item in status.get("addresses") or () if item.get("type") == "InternalIP"]
        wanted = (node["metadata"].get("annotations") or {}).get(FINGERPRINT, "")
        if not port or not addresses or not wanted:
            raise BadRequest(f"node {name} does not say where its logs can be had")
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(addresses[0], port, ssl=self._context)
        except (OSError, TimeoutError) as error:
            raise ServiceUnavailable(f"node {name} can't be reached at {addresses[0]}:{port}: {error}") from error
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if hashlib.sha256(certificate or b"").hexdigest() != wanted:
            writer.close()
            raise ServiceUnavailable(f"whoever answers at {addresses[0]}:{port} is not node {name}")
        return reader, writer


def _head(request: LogRequest) -> bytes:
    query = {"follow": str(request.follow).lower(), "previous": str(request.previous).lower()}
    if request.tail_lines is not None:
        query["tailLines"] = str(request.tail_lines)
    if request.limit_bytes is not None:
        query["limitBytes"] = str(request.limit_bytes)
    path = f"/containerLogs/{request.pod_uid}/{request.container}?{urlencode(query)}"
    return f"GET {path} HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n".encode()


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, int]:
    """Status, and the length of the body if it is known."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ConnectionError) as error:
        raise ServiceUnavailable(f"the node's agent broke off: {error}") from error
    first, *lines = head.split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
    return int(first.split(" ")[1]), int(fields.get("content-length", "0"))


def _client_context(authority: CertificateAuthority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the agent is known by its fingerprint, which is checked after connecting
    pair = authority.issue_client(READER)
    with tempfile.NamedTemporaryFile() as file:  # Python reads key pairs from files only; this one only we can read
        file.write(pair.certificate + pair.key)
        file.flush()
        context.load_cert_chain(file.name)
    return context
