"""Drivers in processes of their own, for `dray driver check`."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from dray.apiserver.local import LocalClient
from dray.apiserver.server import ApiServer, ServerOptions
from dray.cluster.driverchecks import CheckSkipped, Subject
from dray.cluster.kubelets import START_TIMEOUT, FakeKubelet
from dray.cluster.memory import add_node
from dray.runtime.access import BadAccess
from dray.runtime.client import Client
from dray.runtime.http_client import HttpClient
from dray.runtime.kubeconfig import find_access

STOP_SECONDS = 10.0
LAST_MOMENT_SECONDS = 0.2


class CannotCheck(Exception):
    """The text says what is missing."""


class RunningDriver:
    """A driver that somebody else started: it can be talked to, but not restarted."""

    def __init__(self, client: Client, node_name: str, kubelet: FakeKubelet) -> None:
        self.client = client
        self.node_name = node_name
        self.kubelet = kubelet

    async def find_end(self) -> str:
        return ""  # nobody would tell us

    async def kill(self) -> None:
        raise CheckSkipped("needs --command, to start the driver again")

    async def start(self) -> None:
        raise CheckSkipped("needs --command, to start the driver again")


class SpawnedDriver:
    def __init__(
        self, client: Client, node_name: str, kubelet: FakeKubelet, socket: Path, command: str, kubeconfig: Path
    ) -> None:
        self.client = client
        self.node_name = node_name
        self.kubelet = kubelet
        self._socket = socket
        self._command = command
        self._env = {**os.environ, "KUBECONFIG": str(kubeconfig), "NODE_NAME": node_name}
        self._process: asyncio.subprocess.Process | None = None

    async def find_end(self) -> str:
        """A process that crashed is gone a moment later than its connections."""
        if self._process is None:
            return ""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_MOMENT_SECONDS):
                await self._process.wait()
        if self._process.returncode is None:
            return ""
        return f"`{self._command}` has ended with status {self._process.returncode}"

    async def start(self) -> None:
        """Raises CannotCheck."""
        self._socket.unlink(missing_ok=True)  # one that was killed leaves its socket, behind which nobody is
        self._process = await asyncio.create_subprocess_shell(
            self._command, env=self._env, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        waiting = asyncio.ensure_future(self.kubelet.wait_for_socket())
        ended = asyncio.ensure_future(self._process.wait())
        await asyncio.wait((waiting, ended), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        ended.cancel()
        if not _is_socket(self._socket):
            what = await self.find_end() or f"`{self._command}` runs for {START_TIMEOUT:g}s"
            raise CannotCheck(f"{what} and has made no socket {self._socket}{_others(self._socket)}")

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> None:
        await self.kubelet.close()
        if self._process is None:
            return
        self._signal(number)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._process.wait()
        self._process = None

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)  # the shell and what it runs


@asynccontextmanager
async def checking(
    socket: Path, command: str, node_name: str, kubeconfig: Path | None, call_timeout: float
) -> AsyncIterator[Subject]:
    """The driver, ready to be checked. Raises CannotCheck."""
    kubelet = FakeKubelet(socket, call_timeout=call_timeout)
    if not command:
        if not _is_socket(socket):
            raise CannotCheck(f"there is no socket {socket}{_others(socket)}; start the driver, or give --command")
        try:
            access = find_access(kubeconfig)
        except BadAccess as error:
            raise CannotCheck(str(error)) from error
        async with HttpClient(access, agent="dray-driver-check") as remote:
            yield RunningDriver(remote, node_name, kubelet)
        await kubelet.close()
        return
    with tempfile.TemporaryDirectory(prefix="dray-check-") as folder:
        server = await ApiServer.open(ServerOptions(Path(folder), port=0, memory=True))
        await server.start()
        client = LocalClient(server.registry)
        await add_node(client, node_name)
        driver = SpawnedDriver(client, node_name, kubelet, socket, command, server.write_kubeconfigs())
        try:
            await driver.start()
            yield driver
        finally:
            await driver.stop()
            await server.stop()


def _is_socket(path: Path) -> bool:
    return path.is_socket()


def _others(socket: Path) -> str:
    """The sockets beside it: the name may be mistyped."""
    names = sorted(path.name for path in socket.parent.glob("*.sock"))
    return f" (there is {', '.join(names)})" if names else ""
