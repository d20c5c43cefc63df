"""The port where a node gives out logs: who is let in, and what they get."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dray.apiserver.certificates import CertificateAuthority, KeyPair
from dray.node.logserver import READER, LogServer

AUTHORITY = CertificateAuthority.create()
LOG = "/containerLogs/uid-1/main"


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    container = tmp_path / "pods" / "uid-1" / "main"
    container.mkdir(parents=True)
    (container / "0.log").write_text("one\ntwo\n")
    (tmp_path / "secret.log").write_text("not for you\n")
    return tmp_path / "pods"


@asynccontextmanager
async def serving(pods: Path) -> AsyncIterator[int]:
    server = LogServer(pods, AUTHORITY.pem, "127.0.0.1", lambda: datetime.datetime.now(datetime.UTC))
    yield await server.start()
    await server.stop()


async def ask(port: int, path: str, pair: KeyPair | None, folder: Path, method: str = "GET") -> tuple[int, str]:
    """Status and body. Raises ssl.SSLError or ConnectionError where the handshake fails."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if pair is not None:
        file = folder / "pair.pem"
        file.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(file)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        writer.write(f"{method} {path} HTTP/1.1\r\nhost: node\r\n\r\n".encode())
        answer = (await reader.read()).decode()
    finally:
        writer.close()
    if not answer:
        raise ConnectionError("hung up without an answer")
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split(" ")[1]), body


async def test_the_api_server_reads_logs(pods: Path, tmp_path: Path) -> None:
    api_server = AUTHORITY.issue_client(READER)
    async with serving(pods) as port:
        assert await ask(port, LOG, api_server, tmp_path) == (200, "one\ntwo\n")
        assert await ask(port, f"{LOG}?tailLines=1", api_server, tmp_path) == (200, "two\n")
        assert (await ask(port, "/containerLogs/uid-1/other", api_server, tmp_path))[0] == 404


@pytest.mark.parametrize(
    ("who", "pair"),
    [
        ("nobody", None),
        ("a reader of another cluster", CertificateAuthority.create().issue_client(READER)),
        ("the server's own serving certificate", AUTHORITY.issue_server(["127.0.0.1"])),
    ],
)
async def test_who_has_no_client_certificate_of_the_cluster_gets_no_connection(
    who: str, pair: KeyPair | None, pods: Path, tmp_path: Path
) -> None:
    async with serving(pods) as port:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await ask(port, LOG, pair, tmp_path)


@pytest.mark.parametrize("user", ["admin", "system:node:node-1", "system:kube-scheduler", f"{READER}-not"])
async def test_other_users_of_the_cluster_are_refused(user: str, pods: Path, tmp_path: Path) -> None:
    async with serving(pods) as port:
        status, body = await ask(port, LOG, AUTHORITY.issue_client(user, ["system:masters"]), tmp_path)
    assert (status, body) == (403, "logs are given to the API server only")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/containerLogs/../secret", 404),
        ("GET", "/containerLogs/uid-1/..", 404),
        ("GET", "/containerLogs/%2e%2e/%2e%2e", 404),
        ("GET", "/etc/passwd", 404),
        ("DELETE", LOG, 404),
        ("GET", f"{LOG}?tailLines=many", 400),
    ],
)
async def test_there_are_logs_of_containers_and_nothing_else(
    method: str, path: str, status: int, pods: Path, tmp_path: Path
) -> None:
    async with serving(pods) as port:
        assert (await ask(port, path, AUTHORITY.issue_client(READER), tmp_path, method))[0] == status
