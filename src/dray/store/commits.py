"""Decides what a commit changes, without changing anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dray.store.errors import RevisionMismatch
from dray.store.interface import MAX_OPERATIONS, Change, Compare, Delete, Entry, Operation, Put


def plan_commit(
    lookup: Callable[[str], Entry | None],
    revision: int,
    compares: Sequence[Compare],
    operations: Sequence[Operation],
) -> tuple[Change, ...]:
    """The changes of a commit at `revision`, over the state that `lookup` sees; empty if it changes nothing.

    Raises RevisionMismatch for the first compare that doesn't hold.
    """
    for compare in compares:
        check_expected(compare.key, compare.revision, lookup(compare.key))
    if len(operations) > MAX_OPERATIONS:
        raise ValueError(f"a commit may have at most {MAX_OPERATIONS} operations, not {len(operations)}")
    changes: list[Change] = []
    for operation in operations:
        if not operation.key.isascii():
            operation.key.encode()  # raises ValueError for text that no file can hold (lone surrogates)
        previous = lookup(operation.key)
        match operation:
            case Put(key, value):
                created = revision if previous is None else previous.create_revision
                entry = Entry(key, value, created, revision)
                changes.append(Change(key, revision, entry, previous))
            case Delete(key):
                if previous is not None:
                    changes.append(Change(key, revision, None, previous))
    if len(operations) > 1 and len({operation.key for operation in operations}) < len(operations):
        raise ValueError("a commit may write each key only once")
    return tuple(changes)


def check_expected(key: str, expected: int, current: Entry | None) -> None:
    if expected != (0 if current is None else current.mod_revision):
        raise RevisionMismatch(key, expected, current)
