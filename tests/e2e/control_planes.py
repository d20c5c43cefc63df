"""API server, controllers and schedulers as processes of their own, that can be killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from dray.runtime.http_client import HttpClient
from dray.runtime.kubeconfig import find_access

START_SECONDS = 60.0


class Process:
    """One `dray ...`; its output goes to a file."""

    def __init__(self, name: str, arguments: Sequence[str], log: Path) -> None:
        self.name = name
        self._arguments = arguments
        self.log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, *more: str) -> None:
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "dray", *self._arguments, *more, stdout=log, stderr=log, env=dict(os.environ)
            )

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def kill(self) -> None:
        """As a power cut would."""
        assert self._process is not None
        assert self.is_running, f"{self.name} ended by itself:\n{self.log.read_text()[-3000:]}"
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> int:
        """As an operator would."""
        assert self._process is not None
        if self.is_running:
            self._process.terminate()
        return await asyncio.wait_for(self._process.wait(), 30)


class ApiServerProcess:
    """A durable API server that comes back at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = Process("apiserver", ["apiserver", "--data-dir", str(folder)], folder.parent / "apiserver.log")
        self._port = "0"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "admin.kubeconfig"

    async def start(self) -> None:
        await self.process.start("--port", self._port)
        if self._port == "0":
            await wait_until(self.kubeconfig.exists, "the API server writes its kubeconfig")
            self._port = find_access(self.kubeconfig).server.rpartition(":")[2]
        else:
            await wait_until_true(self._listens, "the API server listens again")

    async def _listens(self) -> bool:
        if not self.process.is_running:  # somebody's connection may have taken the port meanwhile
            await self.process.start("--port", self._port)
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", int(self._port))
        except OSError:
            return False
        writer.close()
        return True

    def component_kubeconfig(self, name: str) -> Path:
        return self.folder / "kubeconfigs" / f"{name}.kubeconfig"


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[ApiServerProcess]:
    """A server in `folder`; what it needs is made there."""
    server = ApiServerProcess(folder / "data")
    await server.start()
    try:
        yield server
    finally:
        await server.process.stop()


@contextlib.asynccontextmanager
async def running(*processes: Process) -> AsyncIterator[None]:
    """Components that are stopped in good order at the end."""
    for process in processes:
        await process.start()
    try:
        yield
    except BaseException:
        await asyncio.gather(*(process.stop() for process in processes))
        raise
    statuses = await asyncio.gather(*(process.stop() for process in processes))
    assert set(statuses) == {0}, "\n".join(process.log.read_text()[-2000:] for process in processes)


def make_controllers(kubeconfig: Path, log: Path, *options: str) -> Process:
    return Process("controllers", ["controllers", "--kubeconfig", str(kubeconfig), *options], log)


def make_scheduler(kubeconfig: Path, log: Path, *options: str) -> Process:
    return Process("scheduler", ["scheduler", "--kubeconfig", str(kubeconfig), *options], log)


def connect(kubeconfig: Path) -> HttpClient:
    return HttpClient(find_access(kubeconfig), agent="dray-test")


async def wait_until(condition: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    async def ask() -> bool:
        return condition()

    await wait_until_true(ask, what, seconds)


async def wait_until_true(condition: Callable[[], Awaitable[bool]], what: str, seconds: float = START_SECONDS) -> None:
    try:
        async with asyncio.timeout(seconds):
            while not await condition():  # noqa: ASYNC110 - another process can't set an event
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"not within {seconds:g} s: {what}") from None
