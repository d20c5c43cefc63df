"""What stores that live in this process share: reads and watches are answered from memory."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from dray.store.errors import RevisionMismatch, StoreClosed
from dray.store.history import History
from dray.store.interface import Change, Committed, Compare, Delete, Entry, Operation, Put, RangeResult, Watch
from dray.store.retention import Compactor, Retention
from dray.store.watching import DEFAULT_BUFFER, Broadcaster


class LocalStore(ABC):
    """A `Store` but for `commit`. All calls must come from one event loop."""

    def __init__(
        self,
        *,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.monotonic,
        watch_buffer: int = DEFAULT_BUFFER,
    ) -> None:
        self._history = History()
        self._watchers = Broadcaster(self._history, watch_buffer)
        self._compactor = Compactor(retention or Retention(), clock)
        self._closed = False

    @property
    def current_revision(self) -> int:
        return self._history.revision

    @property
    def compacted_revision(self) -> int:
        return self._history.compacted

    @property
    def is_open(self) -> bool:
        return not self._closed

    @property
    def watchers(self) -> int:
        """How many watches are open."""
        return len(self._watchers)

    @property
    def size(self) -> int:
        """How many keys there are."""
        return len(self._history)

    async def get(self, key: str) -> Entry | None:
        return self._history.get(key)

    async def has(self, prefix: str) -> bool:
        return self._history.has(prefix)

    async def range(self, prefix: str, *, revision: int = 0, limit: int = 0, start_after: str = "") -> RangeResult:
        return self._history.range(prefix, revision, limit, start_after)

    async def put(self, key: str, value: bytes, *, expected: int | None = None) -> Entry:
        compares = () if expected is None else (Compare(key, expected),)
        committed = await self.commit(compares, (Put(key, value),))
        entry = committed.changes[0].entry
        assert entry is not None
        return entry

    async def delete(self, key: str, *, expected: int | None = None) -> Entry:
        compares = () if expected is None else (Compare(key, expected),)
        committed = await self.commit(compares, (Delete(key),))
        if not committed.changes:
            raise RevisionMismatch(key, expected, None)
        previous = committed.changes[0].previous
        assert previous is not None
        return previous

    @abstractmethod
    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> Committed: ...

    async def watch(self, prefix: str, revision: int = 0) -> Watch:
        self._check_open()
        return self._watchers.watch(prefix, revision)

    async def compact(self, revision: int) -> None:
        self._check_open()
        self._history.check_revision(revision)
        self._forget(revision)

    @abstractmethod
    async def close(self) -> None: ...

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed

    def _show(self, commits: Sequence[Committed]) -> None:
        """Makes durable commits visible to readers."""
        for committed in commits:
            self._history.apply(committed.revision, committed.changes)

    def _publish(self, commits: Sequence[Committed]) -> None:
        """Tells watchers, then forgets what has become too old."""
        self._watchers.publish([change for committed in commits for change in committed.changes])
        self._compact_if_due()

    def _compact_if_due(self) -> None:
        if target := self._compactor.plan_compaction(self._history):
            self._forget(target)

    def _forget(self, revision: int) -> Sequence[Change]:
        gone = self._history.compact(revision)
        self._watchers.drop_overtaken(revision)
        return gone
