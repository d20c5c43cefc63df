"""Metrics of the node agent, with the names that the KEP gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dray.node.checkpoint import HeldClaim

ANY_DRIVER = "<any>"


class NodeMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._operations = Histogram(
            "dra_operations_seconds",
            "Duration of calls to DRA drivers",
            ["driver_name", "method_name", "grpc_status_code"],
            registry=registry,
        )

    def observe_operation(self, driver: str, method: str, code: str, seconds: float) -> None:
        self._operations.labels(driver, method, code).observe(seconds)

    def watch_claims_in_use(self, claims: Callable[[], Iterable[HeldClaim]]) -> None:
        self._registry.register(_ClaimsInUse(claims))


class _ClaimsInUse(Collector):
    def __init__(self, claims: Callable[[], Iterable[HeldClaim]]) -> None:
        self._claims = claims

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "dra_resource_claims_in_use", "Claims in use on this node, by driver", labels=["driver_name"]
        )
        claims = list(self._claims())
        family.add_metric([ANY_DRIVER], len(claims))
        for driver, count in Counter(driver for claim in claims for driver in claim.drivers).items():
            family.add_metric([driver], count)
        yield family
