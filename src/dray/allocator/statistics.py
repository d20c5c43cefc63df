"""What the work of the allocator amounted to: told to whoever asks, never looked at by the allocator itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Statistics:
    """Counts since the start. A reader who wants the cost of one call subtracts."""

    searches: int = 0
    """Searches that were run."""
    cache_hits: int = 0
    """Searches that weren't needed, because an equal one had been run."""
    steps: int = 0
    """Devices that were tried."""
    selector_evaluations: int = 0
    constraint_evaluations: int = 0
    """Evaluations of CEL constraints; sets whose devices look the same to the expression are evaluated once."""
    programs: int = 0
    """Claim specs that were compiled."""
    tables: int = 0
    """Combinations of a program and the shape of a node."""
