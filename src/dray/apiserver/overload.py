"""Bounds on what is in progress: past them a request is turned away at once, and told when to come back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from dray.api.errors import TooManyRequests

_MUTATING: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Kubernetes' defaults for one server."""

    reads: int = 400
    writes: int = 200
    watches: int = 10_000
    seconds: float = 60.0
    """For a request that isn't a watch, to be read and answered."""
    body_bytes: int = 3 << 20
    json_depth: int = 200
    """No API type comes near it; Python's own recursion limit is not far above."""


class InFlight:
    """Counts requests by what they cost."""

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = {"reads": limits.reads, "writes": limits.writes, "watches": limits.watches}
        self.counts = dict.fromkeys(self._limits, 0)

    @contextmanager
    def admit(self, verb: str) -> Iterator[None]:
        """Raises TooManyRequests."""
        kind = "watches" if verb == "watch" else "writes" if verb in _MUTATING else "reads"
        if self.counts[kind] >= self._limits[kind]:
            raise TooManyRequests(
                "Too many requests, please try again later.",
                details={"retryAfterSeconds": 1},
                headers={"Retry-After": "1"},
            )
        self.counts[kind] += 1
        try:
            yield
        finally:
            self.counts[kind] -= 1
