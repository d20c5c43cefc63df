"""Runs one driver on one node: publishes its devices, serves gRPC, registers with the node agent, ends cleanly.

For an upgrade without a gap two instances run side by side: each has an `instance` name of its own, so that their
sockets differ, and the old one leaves when the new one is registered. Slices stay when a driver stops: the node
agent removes them if the driver doesn't come back.
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
from dray.driver.metrics import DriverMetrics
from dray.driver.plugin import RegistrationServicer, plugin_server, registration_server, supported_versions
from dray.driver.publisher import SlicePublisher
from dray.runtime.client import Client
from dray.runtime.clock import Clock, SystemClock

GRACE_SECONDS = 5.0


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
    def __init__(
        self,
        driver: Driver,
        client: Client,
        *,
        node_name: str,
        paths: DriverPaths | None = None,
        instance: str = "",
        clock: Clock | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._driver = driver
        self._node_name = node_name
        paths = paths or DriverPaths()
        clock = clock or SystemClock()
        self.registry = registry or CollectorRegistry()
        metrics = DriverMetrics(self.registry)
        suffix = f"-{instance}" if instance else ""
        self._plugin_socket = paths.plugins / driver.name / f"dra{suffix}.sock"
        self._registry_socket = paths.registry / f"{driver.name}{suffix}-reg.sock"
        checkpoint = Checkpoint(paths.plugins / driver.name / "claims")
        self._preparer = ClaimPreparer(driver, client, checkpoint, CdiFiles(paths.cdi, vendor=driver.name))
        metrics.prepared_claims.set_function(lambda: self._preparer.in_use)
        self._server = plugin_server(driver, self._preparer, metrics, self._plugin_socket)
        self._registration = RegistrationServicer(driver.name, self._plugin_socket, supported_versions(driver))
        self._registration_server = registration_server(self._registration, self._registry_socket)
        self._publisher = SlicePublisher(client, clock, metrics, driver_name=driver.name, node_name=node_name)

    @property
    def plugin_socket(self) -> Path:
        return self._plugin_socket

    def refresh(self) -> None:
        """The devices changed (plugged, tainted, new attributes): publish them anew."""
        self._publisher.publish(self._driver.pools(self._node_name))

    async def wait_registered(self) -> None:
        await self._registration.registered.wait()

    async def wait_published(self) -> None:
        await self._publisher.wait_published()

    async def run(self) -> None:
        """Serve until cancelled. Requests under way are finished, new ones refused, sockets removed."""
        await self._server.start()
        await self._registration_server.start()
        self.refresh()
        try:
            await self._publisher.run()
        finally:
            self._registry_socket.unlink(missing_ok=True)
            await asyncio.shield(
                asyncio.gather(self._registration_server.stop(GRACE_SECONDS), self._server.stop(GRACE_SECONDS))
            )
            self._plugin_socket.unlink(missing_ok=True)
