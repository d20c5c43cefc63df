"""Current entries and the retained changes that led to them, in memory.

State: `_live` maps keys to entries, `_keys` is its sorted key list. `_log` holds the retained changes in revision
order, `_chains` the same changes per key, `_chain_keys` its sorted key list.

The state of a key at a past revision r is the `previous` of its first change after r, or what is live if there is
none. So a range at r starts from the live keys and corrects those whose chain goes beyond r: its cost follows the
size of the prefix and the changes in it, never the rest of the store.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from operator import attrgetter

from dray.store.errors import Compacted, FutureRevision
from dray.store.interface import FIRST_REVISION, Change, Entry, RangeResult

_by_revision = attrgetter("revision")


class History:
    """What both stores keep in memory. Not async: callers own the order of calls."""

    def __init__(self) -> None:
        self.revision = FIRST_REVISION
        self.compacted = FIRST_REVISION
        self.size = 0
        """Bytes of values that the retained changes refer to."""
        self._live: dict[str, Entry] = {}
        self._keys: list[str] = []
        self._log: list[Change] = []
        self._chains: dict[str, list[Change]] = {}
        self._chain_keys: list[str] = []

    @property
    def retained(self) -> int:
        """How many changes are kept."""
        return len(self._log)

    def __len__(self) -> int:
        return len(self._live)

    def get(self, key: str) -> Entry | None:
        return self._live.get(key)

    def load(self, live: dict[str, Entry], changes: list[Change], *, revision: int, compacted: int) -> None:
        """Takes over what was read from a file."""
        self.revision, self.compacted = revision, compacted
        self._live, self._keys = live, sorted(live)
        self._log = changes
        self.size = sum(map(_weight, changes))
        self._chains = {}
        for change in changes:
            self._chains.setdefault(change.key, []).append(change)
        self._chain_keys = sorted(self._chains)

    def apply(self, revision: int, changes: Iterable[Change]) -> None:
        """Makes one commit visible."""
        for change in changes:
            if change.entry is None:
                del self._live[change.key]
                del self._keys[bisect_left(self._keys, change.key)]
            else:
                self._live[change.key] = change.entry
                if change.previous is None:
                    insort(self._keys, change.key)
            self._log.append(change)
            self.size += _weight(change)
            chain = self._chains.get(change.key)
            if chain is None:
                self._chains[change.key] = [change]
                insort(self._chain_keys, change.key)
            else:
                chain.append(change)
        self.revision = revision

    def range(self, prefix: str, revision: int, limit: int, start_after: str) -> RangeResult:
        if revision == 0:
            revision = self.revision
        self.check_revision(revision)
        keys = _slice(self._keys, prefix, start_after)
        past: dict[str, Entry | None] = {}
        if revision < self.revision:
            for key in _slice(self._chain_keys, prefix, start_after):
                chain = self._chains[key]
                if chain[-1].revision > revision:
                    past[key] = chain[bisect_right(chain, revision, key=_by_revision)].previous
        if past:
            keys = sorted({key for key in keys if key not in past} | {key for key, was in past.items() if was})
        remaining = max(len(keys) - limit, 0) if limit > 0 else 0
        if remaining:
            del keys[limit:]
        live = self._live
        if past:
            entries = [past.get(key) or live[key] for key in keys]
        else:
            entries = [live[key] for key in keys]
        return RangeResult(entries=entries, revision=revision, remaining=remaining)

    def has(self, prefix: str) -> bool:
        position = bisect_left(self._keys, prefix)
        return position < len(self._keys) and self._keys[position].startswith(prefix)

    def changes_after(self, prefix: str, revision: int) -> list[Change]:
        first = bisect_right(self._log, revision, key=_by_revision)
        return [change for change in self._log[first:] if change.key.startswith(prefix)]

    def check_revision(self, revision: int) -> None:
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)

    def nth_revision(self, count: int) -> int:
        """The revision to compact to for the oldest `count` changes to go."""
        return self._log[count - 1].revision

    def compact(self, revision: int) -> Sequence[Change]:
        """Forgets changes up to `revision` and returns them."""
        end = bisect_right(self._log, revision, key=_by_revision)
        gone = self._log[:end]
        del self._log[:end]
        emptied = False
        for change in gone:
            self.size -= _weight(change)
            chain = self._chains[change.key]
            if len(chain) == 1:
                del self._chains[change.key]
                emptied = True
            else:
                del chain[0]
        if emptied:
            self._chain_keys = [key for key in self._chain_keys if key in self._chains]
        self.compacted = max(self.compacted, revision)
        return gone


def _weight(change: Change) -> int:
    size = len(change.key)
    if change.entry is not None:
        size += len(change.entry.value)
    if change.previous is not None:
        size += len(change.previous.value)
    return size


def _slice(keys: list[str], prefix: str, start_after: str) -> list[str]:
    low = bisect_left(keys, prefix) if start_after < prefix else bisect_right(keys, start_after)
    end = _end_of(prefix)
    return keys[low : bisect_left(keys, end, lo=low) if end else len(keys)]


def _end_of(prefix: str) -> str:
    """The first key after all that start with `prefix`; empty: there is none."""
    stem = prefix.rstrip("\U0010ffff")
    return stem and stem[:-1] + chr(ord(stem[-1]) + 1)
