"""Runs one driver on one node: publishes its devices, serves gRPC, registers with the node agent, ends cleanly.

For an upgrade without a gap two instances run side by side: each has an `instance` name of its own, so that their
sockets differ, and the old one leaves when the new one is registered. The newest publishes the devices. Slices stay
when a driver stops: the node agent removes them if the driver doesn't come back.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from dray.driver.base import Driver
from dray.driver.cdi import CdiFiles
from dray.driver.checkpoint import Checkpoint
from dray.driver.claims import ClaimPreparer
from dray.driver.instances import Instance
from dray.driver.metrics import DriverMetrics
from dray.driver.plugin import (
    RegistrationServicer,
    check_socket_path,
    plugin_server,
    registration_server,
    supported_versions,
)
from dray.driver.publisher import SlicePublisher
from dray.runtime.client import Client
from dray.runtime.clock import Clock, SystemClock

GRACE_SECONDS = 5.0
LOOK_INTERVAL = 2.0
"""How often to look whether another instance has come or gone."""


@dataclass(frozen=True)
class DriverPaths:
    """Where a driver keeps things; the defaults are the kubelet's."""

    plugins: Path = Path("/var/lib/kubelet/plugins")
    registry: Path = Path("/var/lib/kubelet/plugins_registry")
    cdi: Path = Path("/var/run/cdi")

    @classmethod
    def under(cls, root: Path) -> DriverPaths:
        """All below one directory, for nodes that are simulated."""
        return cls(plugins=root / "plugins", registry=root / "plugins_registry", cdi=root / "cdi")


class DriverRunner:
    """Raises SocketPathTooLong, DamagedCheckpoint when made.

    Without `durable`, what was prepared is forgotten when the machine crashes; that is for simulated nodes.
    """

    def __init__(
        self,
        driver: Driver,
        client: Client,
        *,
        node_name: str,
        paths: DriverPaths | None = None,
        instance: str = "",
        durable: bool = True,
        clock: Clock | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._driver = driver
        self._node_name = node_name
        self._is_aborted = False
        self._clock = clock or SystemClock()
        paths = paths or DriverPaths()
        self.registry = registry or CollectorRegistry()
        metrics = DriverMetrics(self.registry)
        suffix = f"-{instance}" if instance else ""
        home = paths.plugins / driver.name
        self._plugin_socket = home / f"dra{suffix}.sock"
        self._registry_socket = paths.registry / f"{driver.name}{suffix}-reg.sock"
        for socket in (self._plugin_socket, self._registry_socket):
            check_socket_path(socket)
        self._instance = Instance(home / "instances")
        self._preparer = ClaimPreparer(
            driver,
            client,
            Checkpoint(home / "claims", durable=durable),
            CdiFiles(paths.cdi, vendor=driver.name),
            has_device=self._has_device,
        )
        metrics.prepared_claims.set_function(lambda: self._preparer.in_use)
        self._server = plugin_server(driver, node_name, self._preparer, metrics, self._plugin_socket)
        self._registration = RegistrationServicer(
            driver.name, self._plugin_socket, supported_versions(driver), self._registered
        )
        self._registration_server = registration_server(self._registration, self._registry_socket)
        self._publisher = SlicePublisher(client, self._clock, metrics, driver_name=driver.name, node_name=node_name)

    @property
    def driver(self) -> Driver:
        return self._driver

    @property
    def plugin_socket(self) -> Path:
        return self._plugin_socket

    @property
    def registry_socket(self) -> Path:
        return self._registry_socket

    @property
    def is_ready(self) -> bool:
        """Whether the node agent knows this instance, so that an older one may go."""
        return self._registration.registered.is_set()

    def refresh(self) -> None:
        """The devices changed (plugged, tainted, new attributes): publish them anew."""
        self._publisher.publish(self._driver.pools(self._node_name))

    async def wait_registered(self) -> None:
        await self._registration.registered.wait()

    async def wait_published(self) -> None:
        await self._publisher.wait_published()

    async def run(self) -> None:
        """Serve until cancelled. Requests under way are finished, new ones refused, sockets removed."""
        self._instance.enter()
        self.refresh()
        await self._server.start()
        await self._registration_server.start()
        self._driver.attach(self.refresh)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._publisher.run())
                group.create_task(self._follow_instances())
        finally:
            self._driver.attach(None)
            await asyncio.shield(self._close())

    async def abort(self) -> None:
        """End as if killed: what is under way stays half done, and sockets stay. Cancel `run` afterwards; for tests."""
        await self._preparer.abort()
        await asyncio.gather(self._registration_server.stop(None), self._server.stop(None))
        self._is_aborted = True

    async def _close(self) -> None:
        if self._is_aborted:
            self._instance.leave()
            return
        self._registry_socket.unlink(missing_ok=True)
        await asyncio.gather(self._registration_server.stop(GRACE_SECONDS), self._server.stop(GRACE_SECONDS))
        await self._preparer.drain(GRACE_SECONDS)
        self._plugin_socket.unlink(missing_ok=True)
        self._instance.leave()

    def _registered(self) -> None:
        self._publisher.allow(self._instance.is_newest)

    async def _follow_instances(self) -> None:
        was_newest = True
        while True:
            await self._clock.sleep(LOOK_INTERVAL)
            is_newest = self._instance.is_newest
            if is_newest != was_newest and self._registration.registered.is_set():
                self._publisher.allow(is_newest)
            was_newest = is_newest

    def _has_device(self, pool: str, name: str) -> bool:
        pools = (*self._driver.pools(self._node_name), *self._driver.cluster_pools())
        return any(device.name == name for item in pools if item.name == pool for device in item.devices)
