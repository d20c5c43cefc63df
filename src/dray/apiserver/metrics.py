"""What the server tells Prometheus, under Kubernetes' names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from dray.apiserver.requests import RequestInfo

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_REFUSED: Final = frozenset({400, 401, 403, 404, 405})


class Metrics:
    """The metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("verb", "group", "version", "resource", "subresource")
        self._requests = Counter(
            "apiserver_request", "Requests by what they asked for.", (*labels, "code"), registry=self._registry
        )
        self._durations = Histogram(
            "apiserver_request_duration_seconds",
            "Time from the request's headers to the end of the response; watches aside.",
            labels,
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._known: set[tuple[str, str, str]] = set()
        self._counters: dict[tuple[str, ...], Callable[[], None]] = {}
        self._observers: dict[tuple[str, ...], Callable[[float], None]] = {}

    def observe(self, info: RequestInfo, code: int, seconds: float | None) -> None:
        """Takes note of a request that ended. `seconds` is None for a watch."""
        labels = self._labels(info, code)
        counter = self._counters.get((*labels, str(code)))
        if counter is None:
            counter = self._counters[*labels, str(code)] = self._requests.labels(*labels, str(code)).inc
        counter()
        if seconds is not None:
            observe = self._observers.get(labels)
            if observe is None:
                observe = self._observers[labels] = self._durations.labels(*labels).observe
            observe(seconds)

    def add_gauge(self, name: str, help_text: str, read: Callable[[], float], **labels: str) -> None:
        """A value that is read when somebody asks."""
        gauge = Gauge(name, help_text, tuple(labels), registry=self._registry)
        (gauge.labels(**labels) if labels else gauge).set_function(read)

    def render(self) -> bytes:
        return generate_latest(self._registry)

    def _labels(self, info: RequestInfo, code: int) -> tuple[str, ...]:
        """Requests for what doesn't exist share one label, else a client could make up any number of them."""
        if not info.is_resource_request:
            return (info.verb if info.verb == "get" else "other", "", "", "", "")
        known = (info.group, info.resource, info.subresource)
        if code not in _REFUSED:
            self._known.add(known)
        elif known not in self._known:
            return ("other", "", "", "", "")
        return (info.verb, info.group, info.version, info.resource, info.subresource)
