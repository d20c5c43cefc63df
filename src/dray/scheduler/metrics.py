"""Metrics of the scheduler: attempts, waiting pods, durations, and what the allocator did."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from dray.allocator.statistics import Statistics
from dray.api.claims import ResourceClaim
from dray.api.features import FeatureGates
from dray.cel.program import compile_constraint
from dray.scheduler.queue import SchedulingQueue

Family = CounterMetricFamily | GaugeMetricFamily
COSTS = tuple(10.0**exponent for exponent in range(1, 9))


class SchedulerMetrics:
    def __init__(self, registry: CollectorRegistry, queue: SchedulingQueue, statistics: Statistics) -> None:
        self.attempts = Counter(
            "scheduler_schedule_attempts", "Attempts to schedule a pod", ["result"], registry=registry
        )
        durations = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Time spent per step of an attempt",
            ["extension_point"],
            registry=registry,
        )
        self.filter, self.pre_bind, self.bind = map(durations.labels, ("Filter", "PreBind", "Bind"))
        self._claims = Counter(
            "scheduler_claims_allocated", "Claims allocated, by their constraints", ["constraints"], registry=registry
        )
        self._costs = Histogram(
            "cel_expression_constraint_cost",
            "Estimated cost of the CEL constraints of allocated claims",
            buckets=COSTS,
            registry=registry,
        )
        registry.register(_Live(queue, statistics))

    def allocated(self, claim: ResourceClaim, gates: FeatureGates) -> None:
        """A claim got its devices."""
        kinds = set()
        for constraint in claim.spec.devices.constraints:
            if constraint.cel is not None:
                kinds.add("cel")
                program = compile_constraint(constraint.cel.expression, gates=gates)  # known: it was just evaluated
                self._costs.observe(program.max_cost_estimate)
            if constraint.match_attribute is not None:
                kinds.add("match")
            if constraint.distinct_attribute is not None:
                kinds.add("distinct")
        self._claims.labels("+".join(sorted(kinds)) or "none").inc()


class _Live(Collector):
    """Read when scraped."""

    def __init__(self, queue: SchedulingQueue, statistics: Statistics) -> None:
        self._queue = queue
        self._statistics = statistics

    def collect(self) -> Iterator[Family]:
        pending = GaugeMetricFamily("scheduler_pending_pods", "Pods that wait", labels=["queue"])
        for place, count in self._queue.counts().items():
            pending.add_metric([place], count)
        yield pending
        failing = GaugeMetricFamily(
            "scheduler_unschedulable_pods", "Pods that can't be placed, by what they fail at", labels=["plugin"]
        )
        for plugin, count in self._queue.plugins().items():
            failing.add_metric([plugin], count)
        yield failing
        statistics = self._statistics
        for name, text, value in (
            ("scheduler_allocator_searches", "Searches for devices", statistics.searches),
            ("scheduler_allocator_cache_hits", "Answers taken from memory", statistics.cache_hits),
            ("scheduler_cel_selector_evaluations", "Selectors evaluated", statistics.selector_evaluations),
            ("cel_expression_constraint_evaluations", "CEL constraints evaluated", statistics.constraint_evaluations),
        ):
            family = CounterMetricFamily(name, text)
            family.add_metric([], value)
            yield family
