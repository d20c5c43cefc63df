"""Records that are likely to be looked at again: what was just written, and changes that many watch.

Each is decoded once, and written once per version, however many readers it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dray.apiserver.records import Record
from dray.apiserver.resources import Row
from dray.runtime.client import EventType
from dray.store.interface import Change, Entry

_SIZE: Final = 8192
_BATCHES: Final = 256


class Event(NamedTuple):
    type: EventType
    record: Record
    """For a bookmark it carries nothing but the revision."""


class Batch:
    """Events that go out together. Watchers who get the same ones share the batch, and its written forms."""

    __slots__ = ("events", "written")

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.written: dict[str, bytes] = {}
        """By version, as plain JSON lines."""


class RecordCache:
    """Holds the newest record of a key, and records of recent changes. Keys tell views of one storage apart."""

    def __init__(self) -> None:
        self._newest: dict[str, Record] = {}
        self._changes: dict[tuple[int, str, bool], SharedRecord] = {}
        self._batches: dict[tuple[str, int, int, int], Batch] = {}

    def batch(self, row: Row, prefix: str, changes: Sequence[Change]) -> Batch:
        """The events of changes below `prefix`, for all who watch it without a selector."""
        key = (row.group + prefix, changes[0].revision, changes[-1].revision, len(changes))
        batch = self._batches.get(key)
        if batch is None:
            if len(self._batches) >= _BATCHES:
                del self._batches[next(iter(self._batches))]
            batch = self._batches[key] = Batch([self._event(row, change) for change in changes])
        return batch

    def _event(self, row: Row, change: Change) -> Event:
        if change.entry is None:
            return Event(EventType.DELETED, self.previous(row, change))
        kind = EventType.ADDED if change.previous is None else EventType.MODIFIED
        return Event(kind, self.current(row, change))

    def get(self, row: Row, entry: Entry) -> Record:
        """The record of what the store has now."""
        record = self._newest.get(entry.key)
        if record is not None and record.revision == entry.mod_revision and record.of is row:
            return record
        return self.keep(entry.key, Record.from_entry(row, entry))

    def keep(self, key: str, record: Record) -> Record:
        if not record.revision:
            return record  # a dry run
        if len(self._newest) >= _SIZE and key not in self._newest:
            _drop_oldest(self._newest)
        self._newest[key] = record
        return record

    def current(self, row: Row, change: Change) -> SharedRecord:
        """What a change made."""
        entry = change.entry
        assert entry is not None
        return self._shared(row, change, False, entry)

    def previous(self, row: Row, change: Change) -> SharedRecord:
        """What was there before, with the revision of the change."""
        entry = change.previous
        assert entry is not None
        return self._shared(row, change, True, entry)

    def _shared(self, row: Row, change: Change, previous: bool, entry: Entry) -> SharedRecord:
        key = (change.revision, row.group + change.key, previous)
        record = self._changes.get(key)
        if record is None:
            if len(self._changes) >= _SIZE:
                _drop_oldest(self._changes)
            record = SharedRecord(row, entry.value, change.revision)
            newest = self._newest.get(entry.key)
            if not previous and newest is not None and newest.revision == change.revision and newest.of is row:
                record.share(newest)
            self._changes[key] = record
        return record


class SharedRecord(Record):
    """A record that keeps its written forms."""

    __slots__ = ("_written",)

    def __init__(self, row: Row, value: bytes, revision: int) -> None:
        super().__init__(row, value, revision)
        self._written: dict[str, bytes] = {}

    def share(self, other: Record) -> None:
        """Take over what another record of the same revision has decoded already."""
        self._obj = other.obj

    def to_bytes(self, version: str) -> bytes:
        written = self._written.get(version)
        if written is None:
            written = self._written[version] = super().to_bytes(version)
        return written


def _drop_oldest(cache: dict[str, Record] | dict[tuple[int, str, bool], SharedRecord]) -> None:
    """A quarter at a time. Dicts keep the order of insertion."""
    for key in list(cache)[: _SIZE // 4]:
        del cache[key]  # type: ignore[arg-type]
