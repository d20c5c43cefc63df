"""Hands committed changes to watchers, through bounded buffers."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, Self

from dray.store.errors import SlowWatcher, StoreClosed, StoreError
from dray.store.history import History
from dray.store.interface import Change

DEFAULT_BUFFER: Final = 10_000
"""Changes that may wait for one watcher before it counts as slow."""


class Broadcaster:
    """All watchers of one store, grouped by prefix so that a change is matched once per prefix."""

    def __init__(self, history: History, buffer: int) -> None:
        self._history = history
        self._buffer = buffer
        self._groups: dict[str, set[BufferedWatch]] = {}

    def watch(self, prefix: str, revision: int) -> BufferedWatch:
        backlog: list[Change] = []
        if revision:
            self._history.check_revision(revision)
            backlog = self._history.changes_after(prefix, revision)
        watch = BufferedWatch(self, self._history, prefix, backlog, self._buffer)
        self._groups.setdefault(prefix, set()).add(watch)
        return watch

    def publish(self, changes: Sequence[Change]) -> None:
        """Gives whole commits to everyone who asked for one of their keys."""
        keys = sorted([change.key for change in changes])
        for prefix, watches in tuple(self._groups.items()):
            position = bisect_left(keys, prefix)
            if position < len(keys) and keys[position].startswith(prefix):
                matching = [change for change in changes if change.key.startswith(prefix)]
                for watch in tuple(watches):
                    watch.offer(matching)

    def drop_overtaken(self, compacted: int) -> None:
        """Ends watchers who still wait for changes that history no longer has: they would keep its memory."""
        for watches in tuple(self._groups.values()):
            for watch in tuple(watches):
                if watch.is_behind(compacted):
                    watch.end_as_slow()

    def forget(self, watch: BufferedWatch) -> None:
        watches = self._groups.get(watch.prefix)
        if watches is not None:
            watches.discard(watch)
            if not watches:
                del self._groups[watch.prefix]

    def close(self) -> None:
        for watches in tuple(self._groups.values()):
            for watch in tuple(watches):
                watch.end(StoreClosed())

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))


class BufferedWatch:
    """A `Watch`. See there for what it promises."""

    def __init__(
        self, broadcaster: Broadcaster, history: History, prefix: str, backlog: list[Change], buffer: int
    ) -> None:
        self.prefix = prefix
        self._broadcaster = broadcaster
        self._history = history
        self._waiting = backlog
        self._limit = buffer + len(backlog)  # a replay is no fault of the reader
        self._taken: list[Change] = []  # reversed: what __anext__ took out of the buffer but hasn't returned yet
        self._waiter: asyncio.Future[None] | None = None
        self._error: StoreError | None = None
        self._closed = False
        self._last_progress = history.revision

    @property
    def progress(self) -> int:
        if self._closed:
            return self._last_progress
        if self._taken:
            return self._taken[-1].revision - 1
        if self._waiting:
            return self._waiting[0].revision - 1
        return self._history.revision

    async def batch(self) -> Sequence[Change]:
        if self._taken:
            rest, self._taken = self._taken[::-1], []
            return rest
        while not self._waiting:
            if self._error is not None:
                raise self._error
            if self._closed:
                return ()
            waiter = self._waiter = asyncio.get_running_loop().create_future()
            try:
                await waiter
            finally:
                self._waiter = None
        changes, self._waiting = self._waiting, []
        return changes

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        if not self._taken:
            changes = await self.batch()
            if not changes:
                raise StopAsyncIteration
            self._taken = list(reversed(changes))
        return self._taken.pop()

    def offer(self, changes: list[Change]) -> None:
        if len(self._waiting) + len(changes) > self._limit:
            self.end_as_slow()
            return
        self._waiting.extend(changes)
        self._wake()

    def is_behind(self, compacted: int) -> bool:
        return bool(self._waiting) and self._waiting[0].revision <= compacted

    def end_as_slow(self) -> None:
        self.end(SlowWatcher(self.prefix, self.progress))

    def end(self, error: StoreError) -> None:
        self._error = error
        self.close()

    def close(self) -> None:
        if not self._closed:
            self._last_progress = self.progress
            self._closed = True
            self._waiting = []
            self._taken = []
            self._broadcaster.forget(self)
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
