"""Publishes network-attached devices: those that belong to no node, once for the whole cluster."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from dray.driver.base import Driver
from dray.driver.metrics import DriverMetrics
from dray.driver.publisher import SlicePublisher
from dray.runtime.client import Client
from dray.runtime.clock import Clock, SystemClock


class PoolController:
    """Run one per cluster and driver, e.g. in a Deployment; two would take turns in undoing each other's work."""

    def __init__(
        self, driver: Driver, client: Client, *, clock: Clock | None = None, registry: CollectorRegistry | None = None
    ) -> None:
        self._driver = driver
        self.registry = registry or CollectorRegistry()
        metrics = DriverMetrics(self.registry)
        self._publisher = SlicePublisher(client, clock or SystemClock(), metrics, driver_name=driver.name, node_name="")

    @property
    def is_ready(self) -> bool:
        return self._publisher.is_published

    def refresh(self) -> None:
        self._publisher.publish(self._driver.cluster_pools())

    async def wait_published(self) -> None:
        await self._publisher.wait_published()

    async def run(self) -> None:
        """Until cancelled. The slices stay: allocated claims depend on nothing else."""
        self.refresh()
        self._publisher.allow()
        self._driver.attach(self.refresh)
        try:
            await self._publisher.run()
        finally:
            self._driver.attach(None)
