"""Metrics of one driver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class _Outcome:
    def __init__(self) -> None:
        self.label = "success"

    def failed(self) -> None:
        self.label = "error"


class DriverMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._durations = Histogram(
            "dray_driver_operation_seconds",
            "Duration of prepare and unprepare of one claim",
            ["operation", "result"],
            registry=registry,
        )
        self.slice_writes = Counter(
            "dray_driver_slice_writes", "ResourceSlices created, updated and deleted", ["verb"], registry=registry
        )
        self.prepared_claims = Gauge("dray_driver_prepared_claims", "Claims that are prepared now", registry=registry)

    @contextmanager
    def timed(self, operation: str) -> Iterator[_Outcome]:
        outcome = _Outcome()
        start = time.perf_counter()
        try:
            yield outcome
        finally:
            self._durations.labels(operation, outcome.label).observe(time.perf_counter() - start)
