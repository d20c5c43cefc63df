"""Probes: read from specs, asked once, and followed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dray.api.meta import Json
from dray.node.probes import Exec, HttpGet, Probe, ProbeKind, TcpSocket, ask, find_unsupported, read_probes
from dray.node.probing import Prober
from dray.node.statuses import ContainerRecord
from dray.testing.clock import FakeClock

HERE = Path("/")

# Reading


def test_probes_are_read_with_the_ports_that_they_name() -> None:
    container: Json = {
        "name": "c",
        "ports": [{"name": "web", "containerPort": 8080}],
        "startupProbe": {"exec": {"command": ["true"]}, "failureThreshold": 30, "periodSeconds": 1},
        "livenessProbe": {"tcpSocket": {"port": "web"}, "terminationGracePeriodSeconds": 5},
        "readinessProbe": {
            "httpGet": {"port": 80, "path": "/ok", "scheme": "HTTPS", "httpHeaders": [{"name": "A", "value": "b"}]},
            "initialDelaySeconds": 2,
            "timeoutSeconds": 3,
            "successThreshold": 2,
        },
    }
    assert read_probes(container) == {
        "startup": Probe("startup", Exec(("true",)), period=1, failure_threshold=30),
        "liveness": Probe("liveness", TcpSocket(8080), grace=5),
        "readiness": Probe(
            "readiness",
            HttpGet(80, path="/ok", is_secure=True, headers=(("A", "b"),)),
            initial_delay=2,
            timeout=3,
            success_threshold=2,
        ),
    }
    assert not list(find_unsupported(container))


def test_what_is_left_out_is_named() -> None:
    container: Json = {
        "name": "c",
        "livenessProbe": {"grpc": {"port": 1}},
        "readinessProbe": {"httpGet": {"port": "nowhere"}},
        "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
    }
    assert read_probes(container) == {}
    assert list(find_unsupported(container)) == [
        "liveness probe (grpc)",
        "readiness probe (its port)",
        "lifecycle hook preStop",
    ]


# Asking


async def answer(probe: Probe) -> str:
    env = {"PATH": os.environ["PATH"], "WORD": "magic"}
    return await ask(probe, address="127.0.0.1", env=env, directory=HERE)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ('[ "$WORD" = magic ] && [ "$PWD" = / ]', ""),
        ("echo not yet; exit 1", "not yet"),
        ("exit 3", "command ended with 3"),
        ("exec sleep 100", "no answer within 0.2s"),
    ],
)
async def test_a_command_passes_if_it_ends_with_zero_in_time(command: str, expected: str) -> None:
    timeout = 0.2 if "sleep" in command else 10
    assert await answer(Probe("liveness", Exec(("sh", "-c", command)), timeout=timeout)) == expected


async def test_a_command_that_is_not_there_fails() -> None:
    assert "No such file" in await answer(Probe("liveness", Exec(("no-such-program",))))


@asynccontextmanager
async def answering(status: str) -> AsyncIterator[tuple[int, list[str]]]:
    """A web server that says the same to all, and what it was asked."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], asked


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("200 OK", ""),
        ("302 Found", ""),
        ("404 Not Found", "HTTP probe failed with statuscode: 404"),
        ("nonsense", "HTTP probe failed with statuscode: 0"),
    ],
)
async def test_a_web_page_passes_by_its_status(status: str, expected: str) -> None:
    async with answering(status) as (port, asked):
        action = HttpGet(port, path="/health?full=1", headers=(("Host", "example.com"), ("X-Word", "magic")))
        assert await answer(Probe("readiness", action)) == expected
    assert asked[0].startswith("GET /health?full=1 HTTP/1.1\r\nhost: example.com\r\n")
    assert "x-word: magic\r\n" in asked[0]


async def test_a_port_passes_if_somebody_listens() -> None:
    async with answering("200 OK") as (port, _):
        assert await answer(Probe("liveness", TcpSocket(port))) == ""
    assert "Connect call failed" in await answer(Probe("liveness", TcpSocket(port)))


# Following


class Following:
    """A prober on a clock that the test moves; `failing` are the kinds of probes that fail."""

    def __init__(self, *probes: Probe) -> None:
        self.clock = FakeClock()
        self.failing: set[ProbeKind] = set()
        self.events: list[str] = []
        kinds = {probe.kind: probe for probe in probes}
        self.record = ContainerRecord("c", "image")
        self.record.is_started = "startup" not in kinds
        self.record.is_ready = self.record.is_started and "readiness" not in kinds
        self.record.run("id", "now")
        prober = Prober(kinds, self._ask, self.clock, self.record, changed=lambda: None, tell=self._tell)
        self.running = asyncio.ensure_future(prober.run())

    async def _ask(self, probe: Probe) -> str:
        return "no" if probe.kind in self.failing else ""

    def _tell(self, reason: str, message: str) -> None:
        self.events.append(message)

    @property
    def state(self) -> tuple[bool, bool]:
        """Started and ready, as the status shows it."""
        status = self.record.status()
        return status["started"], status["ready"]


async def follow(*probes: Probe, failing: set[ProbeKind] | None = None) -> Following:
    container = Following(*probes)
    container.failing = failing or set()
    await container.clock.settle()  # it has begun
    return container


async def test_a_container_is_ready_while_its_readiness_probe_passes() -> None:
    probe = Probe("readiness", Exec(()), initial_delay=5, period=10, failure_threshold=2, success_threshold=2)
    container = await follow(probe)
    await container.clock.advance(4)
    assert container.state == (True, False)
    await container.clock.advance(1)
    assert container.state == (True, False), "two passes in a row are asked for"
    await container.clock.advance(10)
    assert container.state == (True, True)
    container.failing.add("readiness")
    await container.clock.advance(10)
    assert container.state == (True, True), "one failure is forgiven"
    await container.clock.advance(10)
    assert container.state == (True, False)
    assert container.events == ["Readiness probe failed: no"] * 2
    assert not container.running.done()
    container.running.cancel()


async def test_a_container_that_is_not_alive_must_be_ended() -> None:
    probe = Probe("liveness", Exec(()), period=10, failure_threshold=3)
    container = await follow(probe)
    await container.clock.advance(60)
    container.failing.add("liveness")
    await container.clock.advance(20)
    assert not container.running.done()
    await container.clock.advance(10)
    assert container.running.done()
    assert container.running.result() is probe


async def test_other_probes_begin_when_the_container_has_started() -> None:
    startup = Probe("startup", Exec(()), period=1, failure_threshold=5)
    liveness, readiness = Probe("liveness", Exec(()), failure_threshold=1), Probe("readiness", Exec(()))
    container = await follow(startup, liveness, readiness, failing={"startup", "liveness"})
    await container.clock.advance(3)
    assert container.state == (False, False)
    assert not container.running.done()
    container.failing.clear()
    await container.clock.advance(1)
    assert container.state == (True, True)
    container.running.cancel()


async def test_a_container_that_never_starts_must_be_ended() -> None:
    startup = Probe("startup", Exec(()), period=1, failure_threshold=5)
    container = await follow(startup, failing={"startup"})
    await container.clock.advance(3)
    assert not container.running.done()
    await container.clock.advance(1)
    assert container.running.done()
    assert container.running.result() is startup
