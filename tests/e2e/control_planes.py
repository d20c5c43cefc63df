"""API server, controllers and schedulers as processes of their own, that can be killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import httpx

from dray.runtime.access import make_tls_context
from dray.runtime.http_client import HttpClient
from dray.runtime.kubeconfig import find_access

START_SECONDS = 120.0
"""Not a measure of anything: the machine may be busy with other work."""
PORTS = range(20_000, 32_000)
"""None of those that a system gives to whoever asks for any, so nobody takes a server's port while it is away."""


class Process:
    """One `dray ...`; its output goes to a file."""

    def __init__(self, name: str, arguments: Sequence[str], log: Path) -> None:
        self.name = name
        self._arguments = arguments
        self.log = log
        self._log_start = 0
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "dray", *self._arguments, stdout=log, stderr=log, env=dict(os.environ)
            )

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def output(self) -> str:
        """Since the last start."""
        return self.log.read_bytes()[self._log_start :].decode(errors="replace") if self.log.exists() else ""

    def describe(self) -> str:
        status = "never started" if self._process is None else f"exit status {self._process.returncode}"
        log = self.log.read_text(errors="replace")[-6000:] if self.log.exists() else ""
        return f"--- {self.name} ({'running' if self.is_running else status}), the end of its log:\n{log}"

    async def wait_ready(self) -> None:
        """Until its own health endpoint says so. An end on the way is told at once."""
        await wait_until_true(self._is_up, f"{self.name} is ready", on_failure=self.describe)

    async def _is_up(self) -> bool:
        assert self.is_running, f"{self.name} ended while it started\n{self.describe()}"
        return await self.is_ready()

    async def is_ready(self) -> bool:
        found = re.search(r"metrics and health  (http://\S+)/metrics", self.output)
        return found is not None and await answers(f"{found[1]}/readyz")

    async def kill(self) -> None:
        """As a power cut would."""
        assert self._process is not None
        assert self.is_running, f"{self.name} ended by itself\n{self.describe()}"
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> int:
        """As an operator would. Patience has an end: then the process is killed, and that is its status."""
        assert self._process is not None
        if self.is_running:
            self._process.terminate()
        try:
            return await asyncio.wait_for(self._process.wait(), 30)
        except TimeoutError:
            self._process.kill()
            return await self._process.wait()


class ApiServerProcess(Process):
    """A durable API server that comes back at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        arguments = ["apiserver", "--data-dir", str(folder), "--port", str(find_port())]
        super().__init__("apiserver", arguments, folder.parent / "apiserver.log")

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "admin.kubeconfig"

    def component_kubeconfig(self, name: str) -> Path:
        return self.folder / "kubeconfigs" / f"{name}.kubeconfig"

    async def is_ready(self) -> bool:
        if "Try: " not in self.output:  # the last thing it does is to write its files
            return False
        access = find_access(self.kubeconfig)
        return await answers(f"{access.server}/readyz", make_tls_context(access))


def find_port() -> int:
    """A port that nobody listens on."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


async def answers(url: str, context: ssl.SSLContext | bool = True) -> bool:
    async with httpx.AsyncClient(verify=context, timeout=10, trust_env=False) as client:
        try:
            return (await client.get(url)).status_code == 200
        except httpx.TransportError:
            return False


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[ApiServerProcess]:
    """A server in `folder`; what it needs is made there."""
    server = ApiServerProcess(folder / "data")
    await server.start()
    try:
        await server.wait_ready()
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def running(*processes: Process) -> AsyncIterator[None]:
    """Components that are ready when the block starts, and are stopped in good order at its end."""
    for process in processes:
        await process.start()
    try:
        for process in processes:
            await process.wait_ready()
        yield
        for process in processes:  # only who is up can be asked to stop in good order
            await process.wait_ready()
    except BaseException:
        await asyncio.gather(*(process.stop() for process in processes))
        raise
    statuses = await asyncio.gather(*(process.stop() for process in processes))
    assert set(statuses) == {0}, "\n".join(process.describe() for process in processes)


def make_controllers(kubeconfig: Path, log: Path, *options: str) -> Process:
    return Process("controllers", ["controllers", "--kubeconfig", str(kubeconfig), *options], log)


def make_scheduler(kubeconfig: Path, log: Path, *options: str, name: str = "scheduler") -> Process:
    return Process(name, ["scheduler", "--kubeconfig", str(kubeconfig), *options], log)


def connect(kubeconfig: Path) -> HttpClient:
    return HttpClient(find_access(kubeconfig), agent="dray-test")


async def wait_until_true(
    condition: Callable[[], Awaitable[bool]],
    what: str,
    seconds: float = START_SECONDS,
    *,
    on_failure: Callable[[], str] = str,
) -> None:
    """`on_failure` says more about what is there instead."""
    try:
        async with asyncio.timeout(seconds):
            while not await condition():  # noqa: ASYNC110 - another process can't set an event
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"not within {seconds:g} s: {what}\n{on_failure()}") from None
