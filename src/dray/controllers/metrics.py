"""Metrics of the controllers, with the names that the KEP gives them."""

from __future__ import annotations

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
        for claim, step in ((old, -1), (new, 1)):
            if claim is not None:
                is_allocated = claim.status.allocation is not None
                self._claims.labels(*_labels(claim, is_allocated)).inc(step)
                if is_allocated:
                    self._allocated.inc(step)
                constraints = claim.spec.devices.constraints
                if any(constraint.cel is not None for constraint in constraints):
                    self._with_cel.inc(step)
                if any(constraint.match_attribute is not None for constraint in constraints):
                    self._with_match.inc(step)


def _labels(claim: ResourceClaim, is_allocated: bool) -> tuple[str, str, str]:
    is_admin = any(r.exactly is not None and r.exactly.admin_access for r in claim.spec.devices.requests)
    source = "resource_claim_template" if POD_CLAIM_NAME_ANNOTATION in claim.metadata.annotations else ""
    return (str(is_allocated).lower(), str(is_admin).lower(), source)


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
