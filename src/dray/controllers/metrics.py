"""Metrics of the controllers, with the names that the KEP gives them."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dray.api.claims import POD_CLAIM_NAME_ANNOTATION, ResourceClaim
from dray.runtime.queue import WorkQueue


class ClaimMetrics(Collector):
    """Counts claims as they change; what is counted becomes metrics when it is asked for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.creates = Counter("resourceclaim_controller_create", "Claims created from templates", registry=registry)
        self.create_failures = Counter(
            "resourceclaim_controller_create_failures", "Failed attempts to create a claim", registry=registry
        )
        self._counts: collections.Counter[_Traits] = collections.Counter()
        registry.register(self)

    def claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and new is not None and not _differ(old, new):
            return
        if old is not None:
            self._counts[_traits(old)] -= 1
        if new is not None:
            self._counts[_traits(new)] += 1

    def collect(self) -> Iterator[GaugeMetricFamily]:
        claims = GaugeMetricFamily(
            "resourceclaim_controller_resource_claims",
            "Claims in the cluster",
            labels=["allocated", "admin_access", "source"],
        )
        by_labels: collections.Counter[tuple[str, str, str]] = collections.Counter()
        for traits, count in self._counts.items():
            by_labels[str(traits.is_allocated).lower(), str(traits.is_admin).lower(), traits.source] += count
        for labels, count in by_labels.items():
            claims.add_metric(labels, count)
        yield claims
        for name, text, trait in (
            ("allocated_resource_claims", "Claims that are allocated", "is_allocated"),
            ("with_cel_constraint", "Claims with a CEL constraint", "has_cel"),
            ("with_match_attribute_constraint", "Claims with a matchAttribute constraint", "has_match"),
        ):
            total = sum(count for traits, count in self._counts.items() if getattr(traits, trait))
            yield GaugeMetricFamily(f"resourceclaim_controller_{name}", text, value=total)


def _differ(old: ResourceClaim, new: ResourceClaim) -> bool:
    """Whether a change can matter here; most don't."""
    return (
        (old.status.allocation is None) != (new.status.allocation is None)
        or old.spec != new.spec
        or old.metadata.annotations != new.metadata.annotations
    )


class _Traits(NamedTuple):
    """What is counted of a claim."""

    is_allocated: bool
    is_admin: bool
    source: str
    has_cel: bool
    has_match: bool


def _traits(claim: ResourceClaim) -> _Traits:
    devices = claim.spec.devices
    return _Traits(
        claim.status.allocation is not None,
        any(request.exactly is not None and request.exactly.admin_access for request in devices.requests),
        "resource_claim_template" if POD_CLAIM_NAME_ANNOTATION in claim.metadata.annotations else "",
        any(constraint.cel is not None for constraint in devices.constraints),
        any(constraint.match_attribute is not None for constraint in devices.constraints),
    )


class QueueMetrics:
    """Depth, adds and retries of every work queue, read when they are scraped."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._depth = Gauge("workqueue_depth", "Keys that wait", ["name"], registry=registry)
        self._adds = Gauge("workqueue_adds_total", "Keys added since the start", ["name"], registry=registry)
        self._retries = Gauge("workqueue_retries_total", "Keys retried since the start", ["name"], registry=registry)

    def watch(self, queue: WorkQueue[object]) -> None:
        self._depth.labels(queue.name).set_function(lambda: len(queue))
        self._adds.labels(queue.name).set_function(lambda: queue.adds)
        self._retries.labels(queue.name).set_function(lambda: queue.retries)
