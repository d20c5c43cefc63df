"""The port at which a node gives out logs: HTTPS, for the API server alone.

The API server shows a client certificate of the cluster's authority with a name that nobody else gets. The agent's
own certificate is made at every start; its fingerprint stands in the Node object, which only the agent and
administrators can write, so the API server knows whom it talks to.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import ipaddress
import logging
import re
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dray.node.logs import LogMissing, LogQuery, read_log

log = logging.getLogger(__name__)

READER: Final = "kube-apiserver-kubelet-client"
"""The name in the API server's client certificate."""
FINGERPRINT: Final = "dray.dev/log-certificate"
"""The annotation of a Node with the SHA-256 of its agent's certificate."""
HEADER_LIMIT: Final = 16 * 1024
HEADER_SECONDS: Final = 10.0
_LIFETIME: Final = datetime.timedelta(days=3650)
_PATH: Final = re.compile(r"/containerLogs/([a-z0-9-]+)/([a-z0-9-]+)")


class LogServer:
    """Serves `/containerLogs/<pod uid>/<container>` below `pods_directory`."""

    def __init__(
        self, pods_directory: Path, authority: bytes, address: str, now: Callable[[], datetime.datetime]
    ) -> None:
        certificate, key = _make_certificate(address, now())
        self._pods_directory = pods_directory
        self._address = address
        self._context = _make_context(certificate, key, authority)
        der = x509.load_pem_x509_certificate(certificate).public_bytes(serialization.Encoding.DER)
        self.fingerprint = hashlib.sha256(der).hexdigest()
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> int:
        self._server = await asyncio.start_server(
            self._serve, self._address, port, ssl=self._context, limit=HEADER_LIMIT
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEADER_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(head.decode("latin-1"), writer)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError) as error:
            log.info("a request for logs broke off: %s", error)
        finally:
            writer.close()

    async def _answer(self, head: str, writer: asyncio.StreamWriter) -> None:
        method, _, rest = head.partition(" ")
        url = urlsplit(rest.partition(" ")[0])
        if _common_name(writer) != READER:
            return await _say(writer, "403 Forbidden", "logs are given to the API server only")
        found = _PATH.fullmatch(url.path)
        if method != "GET" or found is None:
            return await _say(writer, "404 Not Found", "there are logs here and nothing else")
        try:
            pieces = read_log(self._pods_directory / found[1] / found[2], _read_query(url.query))
            first = await anext(pieces)
        except ValueError as error:
            return await _say(writer, "400 Bad Request", str(error))
        except LogMissing as missing:
            return await _say(writer, "404 Not Found", str(missing))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n" + first)
        async for piece in pieces:
            writer.write(piece)
            await writer.drain()
        return None


def _read_query(text: str) -> LogQuery:
    values = {name: items[0] for name, items in parse_qs(text).items()}
    return LogQuery(
        follow=values.get("follow") == "true",
        previous=values.get("previous") == "true",
        tail_lines=int(values["tailLines"]) if "tailLines" in values else None,
        limit_bytes=int(values["limitBytes"]) if "limitBytes" in values else None,
    )


async def _say(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


def _common_name(writer: asyncio.StreamWriter) -> str:
    certificate = writer.get_extra_info("peercert") or {}
    for group in certificate.get("subject", ()):
        for name, value in group:
            if name == "commonName":
                return str(value)
    return ""


def _make_context(certificate: bytes, key: bytes, authority: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.decode())
    with tempfile.NamedTemporaryFile() as file:  # Python reads key pairs from files only; this one only we can read
        file.write(certificate + key)
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _make_certificate(address: str, now: datetime.datetime) -> tuple[bytes, bytes]:
    """Self-signed: it is known by its fingerprint. Certificate and key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dray-node")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
