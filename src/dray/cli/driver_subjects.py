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
from dray.cluster.driverchecks import CheckSkipped
from dray.cluster.kubelets import FakeKubelet
from dray.cluster.memory import add_node
from dray.runtime.access import BadAccess
from dray.runtime.client import Client
from dray.runtime.http_client import HttpClient
from dray.runtime.kubeconfig import find_access


class CannotCheck(Exception):
    """The text says what is missing."""


class RunningDriver:
    """A driver that somebody else started: it can be talked to, but not restarted."""

    def __init__(self, client: Client, node_name: str, socket: Path) -> None:
        self.client = client
        self.node_name = node_name
        self.kubelet = FakeKubelet(socket)

    async def kill(self) -> None:
        raise CheckSkipped("needs --command, to start the driver again")

    async def start(self) -> None:
        raise CheckSkipped("needs --command, to start the driver again")


class SpawnedDriver(RunningDriver):
    def __init__(self, client: Client, node_name: str, socket: Path, command: str, kubeconfig: Path) -> None:
        super().__init__(client, node_name, socket)
        self._socket = socket
        self._command = command
        self._env = {**os.environ, "KUBECONFIG": str(kubeconfig), "NODE_NAME": node_name}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        _remove(self._socket)  # one that was killed leaves its socket, behind which nobody is
        self._process = await asyncio.create_subprocess_shell(
            self._command, env=self._env, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        try:
            await self.kubelet.wait_for_socket()
        except TimeoutError:
            raise CannotCheck(f"`{self._command}` made no socket {self._socket}") from None

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> None:
        await self.kubelet.close()
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)  # the shell and what it runs
            await self._process.wait()
            self._process = None


@asynccontextmanager
async def checking(socket: Path, command: str, node_name: str, kubeconfig: Path | None) -> AsyncIterator[RunningDriver]:
    """The driver, ready to be checked. Raises CannotCheck."""
    if not command:
        try:
            access = find_access(kubeconfig)
        except BadAccess as error:
            raise CannotCheck(str(error)) from error
        async with HttpClient(access, agent="dray-driver-check") as remote:
            yield RunningDriver(remote, node_name, socket)
        return
    with tempfile.TemporaryDirectory(prefix="dray-check-") as folder:
        server = await ApiServer.open(ServerOptions(Path(folder), port=0, memory=True))
        await server.start()
        client = LocalClient(server.registry)
        await add_node(client, node_name)
        driver = SpawnedDriver(client, node_name, socket, command, server.write_kubeconfigs())
        try:
            await driver.start()
            yield driver
        finally:
            await driver.stop()
            await server.stop()


def _remove(socket: Path) -> None:
    socket.unlink(missing_ok=True)
