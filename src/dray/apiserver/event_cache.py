"""Changes as records that all watchers share, so that each is decoded and written once."""

from __future__ import annotations

from typing import Final

from dray.apiserver.records import Record
from dray.apiserver.resources import Row
from dray.store.interface import Change

_CACHE_SIZE: Final = 8192


class EventCache:
    """Records of changes, so that each is decoded and written once for all who watch it."""

    def __init__(self) -> None:
        self._records: dict[tuple[int, str, bool], Record] = {}

    def current(self, row: Row, change: Change) -> Record:
        entry = change.entry
        assert entry is not None
        return self._get(row, change, False, entry.value)

    def previous(self, row: Row, change: Change) -> Record:
        """What was there before, with the revision of the change."""
        entry = change.previous
        assert entry is not None
        return self._get(row, change, True, entry.value)

    def _get(self, row: Row, change: Change, previous: bool, value: bytes) -> Record:
        # Rows that show the same storage in another form have records of their own.
        key = (change.revision, f"{row.group}{change.key}", previous)
        record = self._records.get(key)
        if record is None:
            if len(self._records) >= _CACHE_SIZE:
                # Oldest first: dicts keep the order of insertion.
                for old in list(self._records)[: _CACHE_SIZE // 4]:
                    del self._records[old]
            record = self._records[key] = SharedRecord(row, value, change.revision)
        return record


class SharedRecord(Record):
    """A record that keeps its written forms."""

    __slots__ = ("_written",)

    def __init__(self, row: Row, value: bytes, revision: int) -> None:
        super().__init__(row, value, revision)
        self._written: dict[str, bytes] = {}

    def to_bytes(self, version: str) -> bytes:
        written = self._written.get(version)
        if written is None:
            written = self._written[version] = super().to_bytes(version)
        return written
