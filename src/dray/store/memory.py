"""The store without a disk: for simulations and tests. It forgets everything when the process ends."""

from __future__ import annotations

from collections.abc import Sequence

from dray.store.commits import plan_commit
from dray.store.interface import Committed, Compare, Operation
from dray.store.local import LocalStore


class MemoryStore(LocalStore):
    """A `Store` in memory."""

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> Committed:
        self._check_open()
        revision = self._history.revision + 1
        changes = plan_commit(self._history.get, revision, compares, operations)
        if not changes:
            return Committed(self._history.revision, ())
        committed = Committed(revision, changes)
        self._show((committed,))
        self._publish((committed,))
        return committed

    async def close(self) -> None:
        self._closed = True
        self._watchers.close()
