"""The HTTPS shell with a handler of a few lines: who gets in, and what dawdlers and floods get."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from dray.api.errors import NotFound
from dray.apiserver.authentication import Authenticator
from dray.apiserver.authorization import AccessControl
from dray.apiserver.certificates import LOCAL_NAMES, CertificateAuthority, KeyPair, server_context
from dray.apiserver.default_roles import iter_default_bindings, iter_default_roles
from dray.apiserver.gateway import Gateway
from dray.apiserver.health import Health
from dray.apiserver.http_protocol import ConnectionLimits
from dray.apiserver.metrics import Metrics
from dray.apiserver.overload import RequestLimits
from dray.apiserver.requests import ApiRequest
from dray.apiserver.responses import ApiResponse
from dray.apiserver.service_accounts import TokenIssuer
from dray.apiserver.serving import CannotListen, HttpsServer
from dray.apiserver.tokens import ADMIN_USER, MASTERS, TokenFile
from dray.store.memory import MemoryStore

PODS = "/api/v1/namespaces/default/pods"


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """A client that says exactly what it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def head(self) -> Reply:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        return Reply(int(lines[0].split()[1]), headers, b"")

    async def reply(self) -> Reply:
        reply = await self.head()
        reply.body = await self.reader.readexactly(int(reply.headers["content-length"]))
        return reply

    async def chunk(self) -> bytes:
        size = int(await self.reader.readline(), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def is_closed(self) -> bool:
        with contextlib.suppress(ConnectionError):
            return await self.reader.read() == b""
        return True


Handle = Callable[[ApiRequest], Awaitable[ApiResponse]]


@dataclass
class Shell:
    folder: Path
    handle: Handle
    requests: RequestLimits = field(default_factory=RequestLimits)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)

    async def start(self) -> None:
        self.authority = CertificateAuthority.load_or_create(self.folder)
        self.authority.serving_pair(self.folder, LOCAL_NAMES)
        store = MemoryStore()
        for obj in (*iter_default_roles(), *iter_default_bindings()):
            plural = obj["kind"].lower() + "s"
            name = obj["metadata"]["name"]
            await store.put(f"/registry/rbac.authorization.k8s.io/{plural}/{name}", msgspec.json.encode(obj))
        self.tokens = TokenFile(self.folder / "tokens.csv")
        self.access = AccessControl(store)
        await self.access.start()
        issuer = TokenIssuer.load_or_create(self.folder / "sa.key", time.time)
        self.gateway = Gateway(
            lambda request: self.handle(request),
            authenticator=Authenticator(store, self.tokens, issuer),
            authorize=self.access,
            health=Health(live={"ping": lambda: True}, ready={"open": lambda: not self.gateway.is_stopping}),
            metrics=Metrics(),
            limits=self.requests,
        )
        self.server = HttpsServer(self.gateway, server_context(self.folder, self.authority), self.connections)
        self.port = await self.server.start("127.0.0.1", 0)
        self.admin = self.tokens.ensure(ADMIN_USER, (MASTERS,))

    async def stop(self, seconds: float = 5.0) -> None:
        await self.server.stop(end_streams=self.gateway.end_streams, seconds=seconds)
        await self.access.stop()

    async def connect(self, certificate: KeyPair | None = None) -> Connection:
        context = ssl.create_default_context(cadata=self.authority.pem.decode())
        if certificate is not None:
            file = self.folder / "client.pem"
            await asyncio.to_thread(file.write_bytes, certificate.certificate + certificate.key)
            context.load_cert_chain(file)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname="localhost")
        return Connection(reader, writer)

    def request(self, method: str, path: str, *headers: str, body: bytes = b"", token: str | None = "") -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
        if token is not None:
            lines.append(f"Authorization: Bearer {token or self.admin}")
        return "\r\n".join([*lines, "", ""]).encode() + body

    async def ask(self, method: str, path: str, *headers: str, body: bytes = b"", token: str | None = "") -> Reply:
        connection = await self.connect()
        connection.send(self.request(method, path, *headers, body=body, token=token))
        return await connection.reply()


async def echo(request: ApiRequest) -> ApiResponse:
    """Says who asked for what."""
    info = request.info
    said = [request.user.name, *request.user.groups, info.verb, info.resource, info.name, str(len(request.body))]
    return ApiResponse(200, " ".join(said).encode())


MakeShell = Callable[..., Awaitable[Shell]]


@pytest.fixture
async def make_shell(tmp_path: Path) -> AsyncIterator[MakeShell]:
    shells: list[Shell] = []

    async def make(handle: Handle = echo, **limits: RequestLimits | ConnectionLimits) -> Shell:
        shell = Shell(tmp_path, handle, **limits)  # type: ignore[arg-type]
        await shell.start()
        shells.append(shell)
        return shell

    yield make
    for shell in shells:
        await shell.stop()


@pytest.fixture
async def shell(make_shell: MakeShell) -> Shell:
    return await make_shell()


async def test_a_token_tells_who_asks(shell: Shell) -> None:
    reply = await shell.ask("GET", f"{PODS}/a")
    assert (reply.status, reply.body) == (200, b"kubernetes-admin system:masters system:authenticated get pods a 0")


async def test_a_client_certificate_tells_who_asks(shell: Shell) -> None:
    connection = await shell.connect(shell.authority.issue_client("carol", [MASTERS]))
    connection.send(shell.request("GET", f"{PODS}/a", token=None))
    assert (await connection.reply()).body == b"carol system:masters system:authenticated get pods a 0"


async def test_a_client_certificate_of_another_authority_is_refused(shell: Shell) -> None:
    with pytest.raises((ConnectionError, ssl.SSLError, asyncio.IncompleteReadError)):
        connection = await shell.connect(CertificateAuthority.create().issue_client("carol", [MASTERS]))
        connection.send(shell.request("GET", f"{PODS}/a", token=None))
        await connection.reply()


async def test_a_wrong_token_is_401(shell: Shell) -> None:
    reply = await shell.ask("GET", PODS, token="wrong")
    assert reply.status == 401
    assert msgspec.json.decode(reply.body) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


@pytest.mark.parametrize("header", ["Authorization: Basic YTpi", "Authorization: Bearer", "Authorization: nonsense"])
async def test_other_kinds_of_credentials_are_401(shell: Shell, header: str) -> None:
    assert (await shell.ask("GET", PODS, header, token=None)).status == 401


async def test_nobody_may_list_pods(shell: Shell) -> None:
    reply = await shell.ask("GET", PODS, token=None)
    status = msgspec.json.decode(reply.body)
    assert (reply.status, status["reason"]) == (403, "Forbidden")
    assert status["message"] == (
        'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" '
        'in the namespace "default"'
    )
    assert status["details"] == {"kind": "pods"}


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz?verbose"])
async def test_nobody_may_ask_for_health(shell: Shell, path: str) -> None:
    reply = await shell.ask("GET", path, token=None)
    assert reply.status == 200
    assert reply.body.startswith(b"ok" if "verbose" not in path else b"[+]ping ok\n[+]open ok")


async def test_metrics_count_requests_but_not_made_up_resources(shell: Shell) -> None:
    await shell.ask("GET", f"{PODS}/a")

    async def refuse(request: ApiRequest) -> ApiResponse:
        raise NotFound("no such resource")

    shell.handle = refuse
    await shell.ask("GET", "/api/v1/made-up-by-a-client")
    text = (await shell.ask("GET", "/metrics")).body.decode()
    labels = 'code="200",group="",resource="pods",subresource="",verb="get",version="v1"'
    assert f"apiserver_request_total{{{labels}}} 1.0" in text
    assert "made-up" not in text
    assert (await shell.ask("GET", "/metrics", token=None)).status == 403


async def test_admins_may_act_as_others(shell: Shell) -> None:
    reply = await shell.ask("GET", "/version", "Impersonate-User: bob", "Impersonate-Group: x", "Impersonate-Group: y")
    assert reply.body.startswith(b"bob x y system:authenticated")
    assert (await shell.ask("GET", PODS, "Impersonate-User: bob")).status == 403


async def test_others_may_not(shell: Shell) -> None:
    token = shell.tokens.ensure("alice")
    reply = await shell.ask("GET", "/version", "Impersonate-User: kubernetes-admin", token=token)
    assert reply.status == 403
    assert b'cannot impersonate resource \\"users\\"' in reply.body
    assert (await shell.ask("GET", "/version", "Impersonate-Group: system:masters")).status == 500


async def test_a_body_over_the_limit_is_413_and_the_connection_goes_on(make_shell: MakeShell) -> None:
    shell = await make_shell(requests=RequestLimits(body_bytes=1000))
    connection = await shell.connect()
    connection.send(shell.request("POST", PODS, body=b"x" * 1001))
    reply = await connection.reply()
    assert (reply.status, msgspec.json.decode(reply.body)["reason"]) == (413, "RequestEntityTooLarge")
    connection.send(shell.request("POST", PODS, body=b"x" * 1000))
    assert (await connection.reply()).status == 200


async def test_a_chunked_body_over_the_limit_is_413(make_shell: MakeShell) -> None:
    shell = await make_shell(requests=RequestLimits(body_bytes=1000))
    connection = await shell.connect()
    head = shell.request("POST", PODS).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    connection.send(head + (b"1f4\r\n" + b"x" * 500 + b"\r\n") * 3)
    assert (await connection.reply()).status == 413


async def test_an_endless_body_is_cut_off(make_shell: MakeShell) -> None:
    shell = await make_shell(
        requests=RequestLimits(body_bytes=1000), connections=ConnectionLimits(discarded_bytes=100_000)
    )
    connection = await shell.connect()
    head = shell.request("POST", PODS).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    connection.send(head)
    with contextlib.suppress(ConnectionError):
        for _ in range(10_000):
            connection.send(b"1f4\r\n" + b"x" * 500 + b"\r\n")
            await connection.writer.drain()
    assert connection.reader.at_eof() or await connection.is_closed()


async def test_deep_json_is_400(shell: Shell) -> None:
    assert (await shell.ask("POST", PODS, body=b"[" * 100_000 + b"]" * 100_000)).status == 400


async def test_dawdling_over_the_headers_ends_the_connection(make_shell: MakeShell) -> None:
    shell = await make_shell(connections=ConnectionLimits(header_seconds=0.05))
    connection = await shell.connect()
    connection.send(b"GET / HTTP/1.1\r\nHost: local")
    assert (await connection.head()).status == 408
    assert await connection.is_closed()


async def test_dripping_headers_does_not_help(make_shell: MakeShell) -> None:
    shell = await make_shell(connections=ConnectionLimits(header_seconds=0.1))
    connection = await shell.connect()
    connection.send(b"GET / HTTP/1.1\r\n")
    started = time.perf_counter()
    with contextlib.suppress(ConnectionError):
        while not connection.reader.at_eof() and time.perf_counter() - started < 5:
            connection.send(b"X-Drip: 1\r\n")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(connection.reader.read(1000), 0.02)
    assert time.perf_counter() - started < 2


async def test_saying_nothing_ends_the_connection(make_shell: MakeShell) -> None:
    shell = await make_shell(connections=ConnectionLimits(header_seconds=0.05))
    connection = await shell.connect()
    assert (await connection.head()).status == 408


async def test_dawdling_over_the_tls_handshake_ends_the_connection(make_shell: MakeShell) -> None:
    shell = await make_shell(connections=ConnectionLimits(header_seconds=0.05))
    reader, _ = await asyncio.open_connection("127.0.0.1", shell.port)
    assert await asyncio.wait_for(reader.read(), 5) == b""


async def test_dawdling_over_the_body_is_504(make_shell: MakeShell) -> None:
    shell = await make_shell(requests=RequestLimits(seconds=0.05))
    connection = await shell.connect()
    connection.send(shell.request("POST", PODS).replace(b"Content-Length: 0", b"Content-Length: 10"))
    assert (await connection.reply()).status == 504


async def test_an_address_that_is_taken_is_reported(shell: Shell) -> None:
    other = HttpsServer(shell.gateway, server_context(shell.folder, shell.authority))
    with pytest.raises(CannotListen, match=rf"can't listen on 127.0.0.1 port {shell.port}: Address already in use"):
        await other.start("127.0.0.1", shell.port)


async def test_connections_past_the_limit_are_closed(make_shell: MakeShell) -> None:
    shell = await make_shell(connections=ConnectionLimits(connections=2))
    first, _ = await shell.connect(), await shell.connect()
    assert await (await shell.connect()).is_closed()
    first.send(shell.request("GET", PODS))
    assert (await first.reply()).status == 200
    first.writer.close()
    await first.writer.wait_closed()
    assert (await shell.ask("GET", PODS)).status == 200


async def test_huge_headers_are_431(shell: Shell) -> None:
    connection = await shell.connect()
    connection.send(b"GET /api/v1/pods?labelSelector=" + b"a" * (1 << 20))
    assert (await connection.head()).status == 431


async def test_a_handler_that_takes_too_long_is_504(make_shell: MakeShell) -> None:
    async def never(request: ApiRequest) -> ApiResponse:
        await asyncio.Event().wait()
        raise AssertionError

    shell = await make_shell(never, requests=RequestLimits(seconds=0.05))
    reply = await shell.ask("GET", PODS)
    assert (reply.status, msgspec.json.decode(reply.body)["reason"]) == (504, "Timeout")


async def test_a_bug_in_a_handler_is_500_without_its_details(shell: Shell) -> None:
    async def broken(request: ApiRequest) -> ApiResponse:
        raise KeyError("a secret")

    shell.handle = broken
    reply = await shell.ask("GET", PODS)
    assert reply.status == 500
    assert b"secret" not in reply.body


async def test_past_the_limit_writes_are_429_while_reads_and_health_go_on(make_shell: MakeShell) -> None:
    release, arrived = asyncio.Event(), asyncio.Event()

    async def wait(request: ApiRequest) -> ApiResponse:
        if request.method == "POST":
            arrived.set()
            await release.wait()
        return ApiResponse(200, b"{}")

    shell = await make_shell(wait, requests=RequestLimits(writes=1))
    first = asyncio.create_task(shell.ask("POST", PODS))
    await arrived.wait()
    second = await shell.ask("POST", PODS)
    assert (second.status, second.headers["retry-after"]) == (429, "1")
    assert msgspec.json.decode(second.body)["reason"] == "TooManyRequests"
    assert (await shell.ask("GET", PODS)).status == 200
    assert (await shell.ask("GET", "/healthz")).status == 200
    release.set()
    assert (await first).status == 200
    assert (await shell.ask("POST", PODS)).status == 200


@dataclass
class Watching:
    """A handler whose watches send what is put into `chunks`, and that knows when they ended."""

    chunks: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, request: ApiRequest) -> ApiResponse:
        return ApiResponse(200, self._stream())

    async def _stream(self) -> AsyncIterator[bytes]:
        try:
            while True:
                yield await self.chunks.get()
                await asyncio.sleep(0)  # as waiting for the next change does
        finally:
            self.ended.set()


async def test_a_watch_ends_when_its_client_goes(make_shell: MakeShell) -> None:
    handler = Watching()
    shell = await make_shell(handler)
    connection = await shell.connect()
    connection.send(shell.request("GET", f"{PODS}?watch=1"))
    assert (await connection.head()).status == 200
    await handler.chunks.put(b"event")
    assert await connection.chunk() == b"event"
    connection.writer.transport.abort()
    await asyncio.wait_for(handler.ended.wait(), 5)


async def test_a_watcher_who_does_not_read_is_cut_off(make_shell: MakeShell) -> None:
    handler = Watching()
    shell = await make_shell(handler, connections=ConnectionLimits(write_seconds=0.1))
    connection = await shell.connect()
    connection.send(shell.request("GET", f"{PODS}?watch=1"))
    await connection.head()
    connection.reader._transport.pause_reading()  # type: ignore[attr-defined]
    for _ in range(200):
        handler.chunks.put_nowait(b"x" * 100_000)
    await asyncio.wait_for(handler.ended.wait(), 5)
    assert handler.chunks.qsize() > 100


async def test_stopping_finishes_requests_and_ends_watches(make_shell: MakeShell) -> None:
    release, watching = asyncio.Event(), Watching()

    async def handle(request: ApiRequest) -> ApiResponse:
        if request.info.verb == "watch":
            return await watching(request)
        await release.wait()
        return ApiResponse(200, b"done")

    shell = await make_shell(handle)
    slow, watcher, idle = [await shell.connect() for _ in range(3)]
    slow.send(shell.request("GET", f"{PODS}/a"))
    watcher.send(shell.request("GET", f"{PODS}?watch=1"))
    idle.send(shell.request("GET", "/healthz"))
    await watcher.head()
    await idle.reply()
    stopping = asyncio.create_task(shell.stop())
    assert await watcher.chunk() == b""
    assert await idle.is_closed()
    with pytest.raises(OSError):
        await shell.connect()
    release.set()
    reply = await slow.reply()
    assert (reply.body, reply.headers["connection"]) == (b"done", "close")
    await asyncio.wait_for(stopping, 5)
    assert watching.ended.is_set()


async def test_stopping_does_not_wait_forever(make_shell: MakeShell) -> None:
    arrived = asyncio.Event()

    async def never(request: ApiRequest) -> ApiResponse:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    shell = await make_shell(never)
    connection = await shell.connect()
    connection.send(shell.request("GET", PODS))
    await arrived.wait()
    await asyncio.wait_for(shell.stop(seconds=0.05), 5)
    assert await connection.is_closed()


async def test_line_breaks_in_a_warning_do_not_become_headers(shell: Shell) -> None:
    async def warn(request: ApiRequest) -> ApiResponse:
        return ApiResponse(200, b"{}", headers=(("Warning", '299 - "unknown field\r\nX-Evil: 1"'), ("Warning", "€")))

    shell.handle = warn
    reply = await shell.ask("GET", PODS)
    assert "x-evil" not in reply.headers
    assert reply.status == 200
