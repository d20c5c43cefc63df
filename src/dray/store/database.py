"""The SQLite file: an append-only log of writes, from which the state is read back at start.

One row per change, in revision order. A row is needed while it is the newest of its key, or while a retained change
refers to it as what was there before; compaction deletes the others. A delete is a row without a value, needed only
while that change is retained.

Every row carries a checksum, because SQLite notices broken pages but not changed bytes within a value.

Statements take many rows at once: after each one the thread must get Python's global lock back, and under load that
takes longer than the statement.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from dray.store.errors import DamagedFile, ForeignFile, StorageFailed, StoreInUse, StoreUnusable
from dray.store.interface import FIRST_REVISION, MAX_OPERATIONS, Change, Entry

APPLICATION_ID: Final = 0x64726179  # "dray"
FORMAT: Final = 1

_SCHEMA: Final = f"""
BEGIN;
CREATE TABLE log (
    id INTEGER PRIMARY KEY,           -- revision * {MAX_OPERATIONS} + position within the commit
    key TEXT NOT NULL,
    value BLOB,                       -- NULL: deleted
    create_revision INTEGER NOT NULL, -- 0: deleted
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE compacted (revision INTEGER NOT NULL) STRICT;
INSERT INTO compacted VALUES ({FIRST_REVISION});
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""
_INSERTS: Final = {rows: f"INSERT INTO log VALUES {', '.join(['(?, ?, ?, ?, ?)'] * rows)}" for rows in (64, 16, 4, 1)}
_DELETE: Final = "DELETE FROM log WHERE id IN (SELECT value FROM json_each(?))"


Row = tuple[int, str, bytes | None, int, int]
"""Id, key, value, create revision, checksum."""


class RowKey(NamedTuple):
    """Names a row: the change of `key` at `revision`."""

    revision: int
    key: str


class Loaded(NamedTuple):
    """What a file holds: the state, the retained changes, and rows that a compaction had no time to delete."""

    live: dict[str, Entry]
    changes: list[Change]
    revision: int
    compacted: int
    leftover: list[RowKey]


class Database:
    """One open file. Blocking, for one thread at a time; `dray.store.sqlite` gives it one of its own."""

    def __init__(self, path: Path, *, max_pages: int | None = None) -> None:
        self._path = path
        self._positions: dict[RowKey, int] = {}
        """Of rows that aren't the first of their commit."""
        self._compacted = FIRST_REVISION
        self._lock = _lock(path)
        try:
            self._connection = self._open(max_pages)
        except BaseException:
            os.close(self._lock)
            raise

    def _open(self, max_pages: int | None) -> sqlite3.Connection:
        try:
            _check_header(self._path)
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise StoreUnusable(
                f"{self._path} can't be opened: {error}. Check the path and its permissions."
            ) from error
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            _identify(connection, self._path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            _check(connection, self._path)
            if _is_empty(connection):
                connection.executescript(_SCHEMA)
            if max_pages is not None:
                connection.execute(f"PRAGMA max_page_count = {max_pages:d}")
        except sqlite3.OperationalError as error:
            connection.close()
            raise StoreUnusable(
                f"{self._path} can't be used: {error}. Check its permissions and free space."
            ) from error
        except sqlite3.DatabaseError as error:
            connection.close()
            raise DamagedFile(_damaged(self._path, str(error))) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def load(self) -> Loaded:
        live: dict[str, Entry] = {}
        changes: list[Change] = []
        leftover: list[RowKey] = []
        try:
            (compacted,) = self._connection.execute("SELECT revision FROM compacted").fetchone()
            self._compacted = revision = compacted
            rows = self._connection.execute("SELECT id, key, value, create_revision, checksum FROM log ORDER BY id")
            for row_id, key, value, create_revision, checksum in rows:
                if checksum != _checksum(row_id, key, value, create_revision):
                    raise DamagedFile(_damaged(self._path, f"the row of {key!r} has a wrong checksum"))
                written, position = divmod(row_id, MAX_OPERATIONS)
                revision = max(revision, written)
                if position:
                    self._positions[RowKey(written, key)] = position
                previous = live.get(key)
                if value is None:
                    entry = None
                    live.pop(key, None)
                else:
                    entry = live[key] = Entry(key, value, create_revision, written)
                if written > compacted:
                    changes.append(Change(key, written, entry, previous))
                else:
                    leftover.extend(_superseded(written, key, entry, previous))
        except sqlite3.DatabaseError as error:
            raise DamagedFile(_damaged(self._path, str(error))) from error
        return Loaded(live, changes, revision, compacted, leftover)

    def write(self, changes: Sequence[Change], compacted: int, obsolete: Sequence[RowKey]) -> None:
        """Makes changes durable, and deletes rows as of a compaction, all in one transaction. Raises StorageFailed."""
        rows = list(_rows(changes))
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            if compacted > self._compacted:
                self._connection.execute("UPDATE compacted SET revision = ?", (compacted,))
            if obsolete:  # first, so that their space can be used
                self._connection.execute(_DELETE, (json.dumps(list(map(self._row_id, obsolete))),))
            _insert(self._connection, rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            failure = StorageFailed(f"{self._path} can't be written: {error}")
            try:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            except sqlite3.Error as second:
                failure.add_note(f"nor could the transaction be rolled back: {second}")
            raise failure from error
        self._compacted = max(compacted, self._compacted)
        for row in obsolete:
            self._positions.pop(row, None)
        for row_id, key, *_ in rows:
            revision, position = divmod(row_id, MAX_OPERATIONS)
            if position:
                self._positions[RowKey(revision, key)] = position

    def _row_id(self, row: RowKey) -> int:
        return row.revision * MAX_OPERATIONS + self._positions.get(row, 0)

    def close(self) -> None:
        try:
            self._connection.close()
        finally:
            os.close(self._lock)


def obsolete_rows(gone: Iterable[Change]) -> list[RowKey]:
    """The rows that nobody needs once these changes, the oldest, aren't retained any more."""
    rows: list[RowKey] = []
    for change in gone:
        rows.extend(_superseded(change.revision, change.key, change.entry, change.previous))
    return rows


def _superseded(revision: int, key: str, entry: Entry | None, previous: Entry | None) -> list[RowKey]:
    rows: list[RowKey] = []
    if previous is not None:
        rows.append(RowKey(previous.mod_revision, key))
    if entry is None:
        rows.append(RowKey(revision, key))
    return rows


def _rows(changes: Sequence[Change]) -> Iterator[Row]:
    revision, position = 0, 0
    for change in changes:
        position = position + 1 if change.revision == revision else 0
        revision = change.revision
        row_id = revision * MAX_OPERATIONS + position
        value, created = (None, 0) if change.entry is None else (change.entry.value, change.entry.create_revision)
        yield row_id, change.key, value, created, _checksum(row_id, change.key, value, created)


def _insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    start = 0
    for size, statement in _INSERTS.items():
        while len(rows) - start >= size:
            connection.execute(statement, tuple(chain.from_iterable(rows[start : start + size])))
            start += size


def _checksum(row_id: int, key: str, value: bytes | None, create_revision: int) -> int:
    head = b"%d %d %d " % (row_id, create_revision, value is None)
    return zlib.crc32(value or b"", zlib.crc32(key.encode(), zlib.crc32(head)))


def _lock(path: Path) -> int:
    """Keeps a second process out. The kernel lets go when this one ends, however it ends."""
    lock_path = path.with_name(path.name + ".lock")
    try:
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnusable(f"{lock_path} can't be opened: {error}. Check the path and its permissions.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise StoreInUse(
            f"{path} is in use by another dray process ({f'pid {holder}' if holder else 'pid unknown'}). "
            "Stop that one first, or choose another data directory."
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    return descriptor


def _check_header(path: Path) -> None:
    """Refuses a file that is plainly not ours without SQLite touching it; makes an empty one if there is none."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        header = os.pread(descriptor, 100, 0)
    finally:
        os.close(descriptor)
    if header and (len(header) < 100 or not header.startswith(b"SQLite format 3\0")):
        raise DamagedFile(_damaged(path, "it doesn't start as a SQLite file does"))
    application = int.from_bytes(header[68:72], "big")
    if application not in (0, APPLICATION_ID):
        raise ForeignFile(_foreign(path, application))


def _identify(connection: sqlite3.Connection, path: Path) -> None:
    """Refuses files that aren't ours before anything in them is touched."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION_ID:
        if version != FORMAT:
            raise ForeignFile(
                f"{path} was written by another version of dray (format {version}, this one knows {FORMAT}). "
                "Use that version, or choose another data directory."
            )
    elif application != 0 or version != 0 or not _is_empty(connection):
        raise ForeignFile(_foreign(path, application))


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return bool(tables == 0)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise DamagedFile(_damaged(path, verdict))


def _foreign(path: Path, application: int) -> str:
    return (
        f"{path} is a SQLite file of another program (application id {application:#x}); dray leaves it alone. "
        "Choose another data directory, or move the file away."
    )


def _damaged(path: Path, detail: str) -> str:
    return (
        f"{path} is damaged ({detail}). Nothing was changed. Restore it from a backup, or move it away together with "
        f"{path.name}-wal to start empty; `sqlite3 {path} .recover` may save what is in it."
    )
