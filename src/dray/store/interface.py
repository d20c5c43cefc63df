"""The store as its users see it: one revision sequence over keys and bytes.

Every commit that changes something gets the next revision, and all its changes carry that one revision. Reads and
watches see whole commits, in order. This is the subset of etcd's model that the API server needs: compare-and-swap
transactions, prefix ranges at a revision, watches from a revision, compaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, Self

import msgspec

FIRST_REVISION: Final = 1
"""The revision of an empty store. 0 stands for "current" in reads and for "doesn't exist" in compares."""

MAX_OPERATIONS: Final = 1024
"""How many keys one commit may write."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A key with its value, and the revisions of the commits that created and last wrote it."""

    key: str
    value: bytes
    create_revision: int
    mod_revision: int


class Change(msgspec.Struct, frozen=True, gc=False):
    """One key written or deleted. All watchers get the same instance."""

    key: str
    revision: int
    entry: Entry | None
    """What is there now; None after a delete."""
    previous: Entry | None
    """What was there before; None if the key was created."""

    @property
    def created(self) -> bool:
        return self.previous is None

    @property
    def deleted(self) -> bool:
        return self.entry is None

    @property
    def value(self) -> bytes | None:
        return None if self.entry is None else self.entry.value

    @property
    def previous_value(self) -> bytes | None:
        return None if self.previous is None else self.previous.value


class Compare(msgspec.Struct, frozen=True, gc=False):
    """A condition of a commit: `key` was last written at `revision`; 0: it doesn't exist."""

    key: str
    revision: int


class Put(msgspec.Struct, frozen=True, gc=False):
    key: str
    value: bytes


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Deleting a key that doesn't exist changes nothing; add a `Compare` where that matters."""

    key: str


Operation = Put | Delete


class Committed(msgspec.Struct, frozen=True, gc=False):
    """A commit that is durable. `changes` are in the order of the operations, no-ops left out."""

    revision: int
    changes: tuple[Change, ...]


class RangeResult(msgspec.Struct, frozen=True, gc=False):
    """Entries in key order as of `revision`; `remaining` more follow after the last one."""

    entries: list[Entry]
    revision: int
    remaining: int


class Watch(Protocol):
    """Changes of one prefix, in order. Close it when done: `with contextlib.closing(watch)`.

    A waiting `batch` or `__anext__` can be cancelled at any time without losing a change. Both raise `SlowWatcher` if
    the reader fell behind (what was still buffered is dropped: start over from `progress`), `StoreClosed` if the
    store went away. After `close` the iteration ends.
    """

    @property
    def progress(self) -> int:
        """Every change of the prefix up to this revision has been handed out. Grows while nothing matches, too."""
        ...

    async def batch(self) -> Sequence[Change]:
        """Waits for changes and returns all that are there; empty only after `close`.

        Commits are never split between batches.
        """
        ...

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Change: ...

    def close(self) -> None: ...


class Store(Protocol):
    @property
    def current_revision(self) -> int: ...

    @property
    def compacted_revision(self) -> int:
        """The oldest revision that can be read, and watched from."""
        ...

    async def get(self, key: str) -> Entry | None: ...

    async def has(self, prefix: str) -> bool:
        """Whether any key begins so."""
        ...

    async def range(self, prefix: str, *, revision: int = 0, limit: int = 0, start_after: str = "") -> RangeResult:
        """Entries whose key starts with `prefix` and comes after `start_after`, all as of one revision.

        Raises Compacted, FutureRevision.
        """
        ...

    async def put(self, key: str, value: bytes, *, expected: int | None = None) -> Entry:
        """Writes one key if it is at revision `expected` (0: doesn't exist; None: whatever is there).

        Raises RevisionMismatch. When this returns, the write is durable.
        """
        ...

    async def delete(self, key: str, *, expected: int | None = None) -> Entry:
        """Deletes one key and returns what was there. Raises RevisionMismatch, also if there is nothing."""
        ...

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> Committed:
        """All operations if all compares hold, else none: raises RevisionMismatch for the first that doesn't.

        A key may occur in one operation only. When this returns, the commit is durable and visible.
        """
        ...

    async def watch(self, prefix: str, revision: int = 0) -> Watch:
        """Changes after `revision`; 0: from now on. Raises Compacted, FutureRevision."""
        ...

    async def compact(self, revision: int) -> None:
        """Forgets history before `revision`. Stores also do this by themselves, see `Retention`."""
        ...

    async def close(self) -> None:
        """Finishes the writes that wait, ends the watches, and lets go of files."""
        ...
