"""What can go wrong in a store.

StoreError
├── RevisionMismatch   a compare failed; carries the entry that is there
├── Compacted          the asked revision is older than the retained history
├── FutureRevision     the asked revision is yet to come
├── SlowWatcher        a watch was ended because its reader fell behind
├── Overloaded         too many writes are waiting
├── StorageFailed      the disk refused a write (full, broken); nothing of it is kept
├── StoreClosed        the store was closed while the call waited
└── StoreUnusable      a file or folder can't be opened; the text says what to do
    ├── StoreInUse     another process holds it
    ├── ForeignFile    it belongs to another program, or to a newer dray
    └── DamagedFile    its content isn't what was written
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dray.store.interface import Entry


class StoreError(Exception):
    """Base of all errors of `dray.store`."""


class RevisionMismatch(StoreError):
    """`key` isn't at the expected revision (0: it should not exist). `current` is what is there, None if nothing."""

    def __init__(self, key: str, expected: int | None, current: Entry | None) -> None:
        there = "it doesn't exist" if current is None else f"it is at {current.mod_revision}"
        wanted = "to exist" if expected is None else "not to exist" if expected == 0 else f"at revision {expected}"
        super().__init__(f"{key}: expected {wanted}, but {there}")
        self.key = key
        self.expected = expected
        self.current = current


class Compacted(StoreError):
    """History up to `compacted` is gone; reads at that revision and watches after it still work."""

    def __init__(self, revision: int, compacted: int) -> None:
        super().__init__(f"revision {revision} is no longer kept; the oldest one is {compacted}")
        self.revision = revision
        self.compacted = compacted


class FutureRevision(StoreError):
    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is yet to come; the current one is {current}")
        self.revision = revision
        self.current = current


class SlowWatcher(StoreError):
    def __init__(self, prefix: str, revision: int) -> None:
        super().__init__(f"the watch on {prefix} fell too far behind; it got everything up to revision {revision}")
        self.prefix = prefix
        self.revision = revision


class Overloaded(StoreError):
    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting} writes are waiting already")
        self.waiting = waiting


class StorageFailed(StoreError):
    """The write was not kept. Reads and watches go on; a later write may succeed."""


class StoreClosed(StoreError):
    def __init__(self) -> None:
        super().__init__("the store is closed")


class StoreUnusable(StoreError):
    """The store can't be opened."""


class StoreInUse(StoreUnusable):
    pass


class ForeignFile(StoreUnusable):
    pass


class DamagedFile(StoreUnusable):
    pass
