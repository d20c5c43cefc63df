"""Metrics of the controllers, with the names that the KEP gives them."""

from __future__ import annotations

from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge

from dray.api.claims import POD_CLAIM_NAME_ANNOTATION, ResourceClaim
from dray.runtime.queue import WorkQueue


class ClaimMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.creates = Counter("resourceclaim_controller_create", "Claims created from templates", registry=registry)
        self.create_failures = Counter(
            "resourceclaim_controller_create_failures", "Failed attempts to create a claim", registry=registry
        )
        self._claims = Gauge(
            "resourceclaim_controller_resource_claims",
            "Claims in the cluster",
            ["allocated", "admin_access", "source"],
            registry=registry,
        )
        self._allocated = Gauge(
            "resourceclaim_controller_allocated_resource_claims", "Claims that are allocated", registry=registry
        )

        self._with_cel = Gauge(
            "resourceclaim_controller_with_cel_constraint", "Claims with a CEL constraint", registry=registry
        )
        self._with_match = Gauge(
            "resourceclaim_controller_with_match_attribute_constraint",
            "Claims with a matchAttribute constraint",
            registry=registry,
        )

    def claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and new is not None and not _differ(old, new):
            return
        before, after = _traits(old), _traits(new)
        for traits, step in ((before, -1), (after, 1)):
            if traits is not None:
                labels = (str(traits.is_allocated).lower(), str(traits.is_admin).lower(), traits.source)
                self._claims.labels(*labels).inc(step)
                self._allocated.inc(step * traits.is_allocated)
                self._with_cel.inc(step * traits.has_cel)
                self._with_match.inc(step * traits.has_match)


def _differ(old: ResourceClaim, new: ResourceClaim) -> bool:
    """Whether a change can matter here; most don't."""
    return (old.status.allocation is None) != (new.status.allocation is None) or old.spec != new.spec


class _Traits(NamedTuple):
    """What is counted of a claim."""

    is_allocated: bool
    is_admin: bool
    source: str
    has_cel: bool
    has_match: bool


def _traits(claim: ResourceClaim | None) -> _Traits | None:
    if claim is None:
        return None
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
