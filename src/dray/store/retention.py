"""How much history is kept, and when some of it goes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from dray.store.history import History


@dataclass(frozen=True, slots=True)
class Retention:
    """A change is kept until one of these limits is passed. The default suits clients who reconnect within minutes."""

    seconds: float = 300.0
    changes: int = 100_000
    size: int = 256 << 20
    """Bytes of values, counted before and after each change."""


class Compactor:
    """Plans compactions as writes happen: a store that isn't written to doesn't grow, so nothing needs to run then."""

    def __init__(self, retention: Retention, clock: Callable[[], float]) -> None:
        self._retention = retention
        self._clock = clock
        self._marks: deque[tuple[float, int]] = deque()

    def plan_compaction(self, history: History) -> int:
        """The revision to compact to, after a commit; 0: none."""
        return max(self._expired(history.revision), self._overflow(history))

    def _expired(self, revision: int) -> int:
        now, expired = self._clock(), 0
        while self._marks and self._marks[0][0] <= now - self._retention.seconds:
            expired = self._marks.popleft()[1]
        # A tenth of the time span per mark: compactions come in batches, and changes live at most a tenth longer.
        if not self._marks or self._marks[-1][0] <= now - self._retention.seconds / 10:
            self._marks.append((now, revision))
        return expired

    def _overflow(self, history: History) -> int:
        kept = history.retained
        if kept <= self._retention.changes and history.size <= self._retention.size:
            return 0
        excess = max(kept - self._retention.changes, 0)
        return history.nth_revision(min(kept, excess + max(kept // 10, 1)))
