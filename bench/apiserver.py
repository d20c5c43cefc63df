"""The API server under load: durable writes, lists, watches, memory. Server and clients are separate processes.

Run as `python bench/apiserver.py [PART...]` with parts `inprocess`, `https`, `watch`, `memory`; all by default.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from dray.api.resources import RESOURCE_CLAIMS
from dray.apiserver.local import LocalClient
from dray.apiserver.server import ApiServer, ServerOptions
from dray.store.sqlite import SqliteStore

CREATES = 5_000
SEQUENTIAL = 500
LISTED = 10_000
WATCHERS = 100
EVENTS = 1_000
OBJECTS = 100_000
NAMESPACE = "default"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"

Json = dict[str, Any]


def claim(name: str) -> Json:
    """One GPU chosen by a selector, next to a network card on the same PCIe root."""
    selector = {"cel": {"expression": 'device.attributes["gpu.example.com"].model == "A100"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "bench"}},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "selectors": [selector]}},
                    {"name": "nic", "exactly": {"deviceClassName": "nic.example.com"}},
                ],
                "constraints": [{"requests": ["gpu", "nic"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}],
            }
        },
    }


def show(what: str, value: str, needed: str = "") -> None:
    print(f"  {what:<58} {value:>18}   {f'(needed: {needed})' if needed else ''}".rstrip(), flush=True)


async def run_concurrently(count: int, workers: int, call: Callable[[int], Awaitable[object]]) -> float:
    """Calls per second."""

    async def work(worker: int) -> None:
        for index in range(worker, count, workers):
            await call(index)

    started = time.perf_counter()
    await asyncio.gather(*(work(worker) for worker in range(workers)))
    return count / (time.perf_counter() - started)


class Client:
    """As little HTTP as possible, so that the server is what is measured."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self.reader = reader
        self.writer = writer
        self._head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nAccept: application/json\r\n"

    async def ask(self, method: str, path: str, body: Json | None = None) -> tuple[int, bytes]:
        self.send(method, path, body)
        status, length = await self.head()
        return status, await self.reader.readexactly(length)

    def send(self, method: str, path: str, body: Json | None = None) -> None:
        data = b"" if body is None else msgspec.json.encode(body)
        head = (
            f"{method} {path} HTTP/1.1\r\n{self._head}Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        )
        self.writer.write(head.encode() + b"\r\n" + data)

    async def head(self) -> tuple[int, int]:
        text = await self.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", text)
        return int(text[9:12]), int(length[1]) if length else 0

    async def expect(self, method: str, path: str, body: Json | None = None) -> bytes:
        status, answer = await self.ask(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:500]!r}")
        return answer


class Server:
    """`dray apiserver` in a process of its own."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self.port = int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2])
        self.token = config["users"][0]["user"]["token"]
        self.context = ssl.create_default_context(cafile=str(kubeconfig.parent / "pki" / "ca.crt"))

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.context, server_hostname="localhost", limit=1 << 24
        )
        return Client(reader, writer, self.token)


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dray", "apiserver", "--data-dir", folder, "--port", "0"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        while not (line := await process.stdout.readline()).startswith(b"Try:"):
            if not line:
                raise RuntimeError("the server didn't start")
        try:
            yield Server(Path(folder) / "admin.kubeconfig")
        finally:
            process.terminate()
            await process.wait()


async def bench_in_process() -> None:
    print("In one process, through the registry, every write durable (SQLite)")
    with tempfile.TemporaryDirectory() as folder:
        server = await ApiServer.open(ServerOptions(Path(folder), port=0))
        await server.start()
        client = LocalClient(server.registry)
        claims = [claim(f"claim-{index}") for index in range(CREATES)]

        async def create(index: int) -> None:
            claims[index] = await client.create(RESOURCE_CLAIMS, claims[index], NAMESPACE)

        rate = await run_concurrently(CREATES, 64, create)
        show("creates of claims, 64 at a time", f"{rate:,.0f} /s", "2,000 /s")

        async def update(index: int) -> None:
            metadata = {**claims[index]["metadata"], "annotations": {"bench": "updated"}}
            await client.update(RESOURCE_CLAIMS, {**claims[index], "metadata": metadata})

        rate = await run_concurrently(CREATES, 64, update)
        show("updates of claims, 64 at a time", f"{rate:,.0f} /s")
        started = time.perf_counter()
        listed = await client.list(RESOURCE_CLAIMS)
        show(f"list of {len(listed['items']):,} claims", f"{(time.perf_counter() - started) * 1000:,.0f} ms")
        await server.stop()


async def bench_https() -> None:
    print("Over HTTPS, server in its own process")
    async with serving() as server:
        one = await server.connect()
        rate = await run_concurrently(
            SEQUENTIAL, 1, lambda index: one.expect("POST", CLAIMS, claim(f"sequential-{index}"))
        )
        show("creates, 1 client", f"{rate:,.0f} /s")
        clients = [await server.connect() for _ in range(32)]
        answers: list[bytes] = [b""] * CREATES

        async def create(index: int) -> None:
            answers[index] = await clients[index % 32].expect("POST", CLAIMS, claim(f"claim-{index}"))

        rate = await run_concurrently(CREATES, 32, create)
        show("creates, 32 clients", f"{rate:,.0f} /s", "600 /s")

        async def update(index: int) -> None:
            obj = msgspec.json.decode(answers[index])
            obj["metadata"]["annotations"] = {"bench": "updated"}
            await clients[index % 32].expect("PUT", f"{CLAIMS}/claim-{index}", obj)

        rate = await run_concurrently(CREATES, 32, update)
        show("updates, 32 clients", f"{rate:,.0f} /s")
        rate = await run_concurrently(
            CREATES, 32, lambda index: clients[index % 32].expect("GET", f"{CLAIMS}/claim-{index}")
        )
        show("gets, 32 clients", f"{rate:,.0f} /s")
        there = CREATES + SEQUENTIAL
        await run_concurrently(
            LISTED - there, 32, lambda index: clients[index % 32].expect("POST", CLAIMS, claim(f"more-{index}"))
        )
        times = []
        for _ in range(5):
            started = time.perf_counter()
            answer = await one.expect("GET", CLAIMS)
            times.append(time.perf_counter() - started)
        count = answer.count(b'"uid":')
        show(
            f"list of {count:,} claims ({len(answer) >> 20} MiB), median of 5",
            f"{statistics.median(times):.3f} s",
            "0.5 s",
        )
        started = time.perf_counter()
        await one.expect("GET", f"{CLAIMS}?limit=500")
        show("first page of 500", f"{(time.perf_counter() - started) * 1000:.1f} ms")


async def bench_watch() -> None:
    print(f"Watch fan-out over HTTPS: {WATCHERS} watchers x {EVENTS:,} events")
    async with serving() as server:
        writers = [await server.connect() for _ in range(16)]
        watchers = [await server.connect() for _ in range(WATCHERS)]
        for watcher in watchers:
            watcher.send("GET", f"{CLAIMS}?watch=1")
            assert (await watcher.head())[0] == 200
        sent: dict[bytes, float] = {}
        latencies: list[float] = []
        name = re.compile(rb'"name":"(event-\d+)"')

        async def follow(watcher: Client) -> float:
            seen, rest = 0, b""
            while seen < EVENTS:
                data = await watcher.reader.read(1 << 20)
                now = time.perf_counter()
                lines = (rest + data).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    if line.startswith(b"{"):
                        found = name.search(line)
                        assert found is not None
                        latencies.append(now - sent[found[1]])
                        seen += 1
            return time.perf_counter()

        async def create(index: int) -> None:
            sent[b"event-%d" % index] = time.perf_counter()
            await writers[index % 16].expect("POST", CLAIMS, claim(f"event-{index}"))

        followers = [asyncio.create_task(follow(watcher)) for watcher in watchers]
        started = time.perf_counter()
        await run_concurrently(EVENTS, 16, create)
        written = time.perf_counter() - started
        finished = max(await asyncio.gather(*followers)) - started
        latencies.sort()
        show(f"{EVENTS:,} creates", f"{written:.2f} s")
        show(f"all {len(latencies):,} events delivered after", f"{finished:.2f} s", "3 s")
        show("latency from request to event, p50", f"{latencies[len(latencies) // 2] * 1000:.0f} ms")
        show("latency from request to event, p99", f"{latencies[len(latencies) * 99 // 100] * 1000:.0f} ms")


async def bench_memory() -> None:
    print(f"{OBJECTS:,} claims in the store")
    with tempfile.TemporaryDirectory() as folder:
        value = await stored_claim(Path(folder) / "server")
        path = Path(folder) / "store.db"
        store = await SqliteStore.open(path)

        async def put(index: int) -> None:
            name = b"claim-%06d" % index
            await store.put(
                f"/registry/resource.k8s.io/resourceclaims/default/{index}", value.replace(b"claim-0", name)
            )

        rate = await run_concurrently(OBJECTS, 256, put)
        show("durable puts into the store, 256 at a time", f"{rate:,.0f} /s")
        await store.close()
        child = await asyncio.create_subprocess_exec(
            sys.executable, __file__, "--open", str(path), stdout=subprocess.PIPE
        )
        output, _ = await child.communicate()
        memory, opened = output.split()
        show(f"memory, with history, for values of {len(value):,} bytes", f"{int(memory) / (1 << 20):,.0f} MiB")
        show("memory per object", f"{int(memory) / OBJECTS:,.0f} bytes")
        show("opening the file again", f"{float(opened):.2f} s")


async def stored_claim(folder: Path) -> bytes:
    """A claim as the registry stores it, with all that it adds."""
    server = await ApiServer.open(ServerOptions(folder, port=0))
    await server.start()
    await LocalClient(server.registry).create(RESOURCE_CLAIMS, claim("claim-0"), NAMESPACE)
    entry = await server.store.get(f"/registry/resource.k8s.io/resourceclaims/{NAMESPACE}/claim-0")
    await server.stop()
    assert entry is not None
    return entry.value


async def open_and_report(path: Path) -> None:
    """In a process of its own, so that only what the store keeps is counted."""
    before, started = resident_bytes(), time.perf_counter()
    store = await SqliteStore.open(path)
    print(resident_bytes() - before, time.perf_counter() - started)
    await store.close()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


PARTS: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
    "inprocess": bench_in_process,
    "https": bench_https,
    "watch": bench_watch,
    "memory": bench_memory,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--open"]:
        asyncio.run(open_and_report(Path(sys.argv[2])))
    else:
        for part in sys.argv[1:] or PARTS:
            asyncio.run(PARTS[part]())
