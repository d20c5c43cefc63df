"""The embedded store: memory for reads, a SQLite log for durability, group commit in between.

Writes queue up while the disk is busy; the writer then takes all of them, decides each over the visible state plus
those before it in the batch, writes the batch in one transaction, and only then shows it to readers and answers.
So concurrent writers share one sync, nothing is visible before it is durable, and revisions have no gaps.

If the disk refuses a batch, none of it happened: everyone in it gets StorageFailed, also those who lost a compare
against a write of the same batch, since that write doesn't exist.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from dray.store.commits import plan_commit
from dray.store.database import Database, Loaded, RowKey, obsolete_rows
from dray.store.errors import Overloaded, RevisionMismatch, StorageFailed, StoreClosed
from dray.store.interface import Change, Committed, Compare, Entry, Operation
from dray.store.local import LocalStore
from dray.store.retention import Retention
from dray.store.watching import DEFAULT_BUFFER

MAX_WAITING: Final = 10_000
MAX_BATCH: Final = 1_000
MAX_DELETED_ROWS: Final = 2_000
"""Rows that compaction deletes along with one batch, so that no writer waits long for it."""


class _Request(NamedTuple):
    compares: Sequence[Compare]
    operations: Sequence[Operation]
    answer: asyncio.Future[Committed]


class _Batch:
    """Commits that will be written together, decided in order."""

    def __init__(self, revision: int, lookup: Callable[[str], Entry | None]) -> None:
        self.revision = revision
        self.commits: list[Committed] = []
        self._answers: list[tuple[asyncio.Future[Committed], Committed | Exception]] = []
        self._lookup = lookup
        self._pending: dict[str, Entry | None] = {}

    def get(self, key: str) -> Entry | None:
        return self._pending[key] if key in self._pending else self._lookup(key)

    def add(self, request: _Request) -> None:
        try:
            changes = plan_commit(self.get, self.revision + 1, request.compares, request.operations)
        except (RevisionMismatch, ValueError) as error:
            self._answers.append((request.answer, error))
            return
        if changes:
            self.revision += 1
            self._pending.update((change.key, change.entry) for change in changes)
        committed = Committed(self.revision, changes)
        if changes:
            self.commits.append(committed)
        self._answers.append((request.answer, committed))

    def succeed(self) -> None:
        for answer, result in self._answers:
            _answer(answer, result)

    def fail(self, error: Exception) -> None:
        """Answers those who have no answer yet."""
        for answer, _ in self._answers:
            _answer(answer, error)


class SqliteStore(LocalStore):
    """A `Store` in one SQLite file. Made with `open`."""

    def __init__(
        self,
        database: Database,
        executor: ThreadPoolExecutor,
        loaded: Loaded,
        *,
        retention: Retention | None,
        clock: Callable[[], float],
        watch_buffer: int,
    ) -> None:
        super().__init__(retention=retention, clock=clock, watch_buffer=watch_buffer)
        self._history.load(loaded.live, loaded.changes, revision=loaded.revision, compacted=loaded.compacted)
        self._database = database
        self._executor = executor
        self._obsolete: list[RowKey] = loaded.leftover
        self._saved_compaction = loaded.compacted
        self._disk_refuses = False
        self._requests: list[_Request] = []
        self._wake = asyncio.Event()
        self._writer = asyncio.create_task(self._write_batches(), name="store writer")

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.monotonic,
        watch_buffer: int = DEFAULT_BUFFER,
        max_pages: int | None = None,
    ) -> SqliteStore:
        """Opens or makes the file. Raises StoreUnusable with a text that says what to do.

        `max_pages` bounds the file, in pages of 4 KiB.
        """
        loop = asyncio.get_running_loop()
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        try:
            database = await loop.run_in_executor(executor, lambda: Database(path, max_pages=max_pages))
            try:
                loaded = await loop.run_in_executor(executor, database.load)
            except BaseException:
                database.close()
                raise
        except BaseException:
            executor.shutdown(wait=False)
            raise
        return cls(database, executor, loaded, retention=retention, clock=clock, watch_buffer=watch_buffer)

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> Committed:
        self._check_open()
        if len(self._requests) >= MAX_WAITING:
            raise Overloaded(len(self._requests))
        answer: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        self._requests.append(_Request(compares, operations, answer))
        self._wake.set()
        return await answer

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._wake.set()
        await self._writer
        self._watchers.close()
        await self._run(self._database.close)
        self._executor.shutdown(wait=False)

    def _forget(self, revision: int) -> Sequence[Change]:
        gone = super()._forget(revision)
        self._obsolete.extend(obsolete_rows(gone))
        self._wake.set()
        return gone

    async def _write_batches(self) -> None:
        try:
            while True:
                idle = not self._requests and (self._disk_refuses or not self._has_compacted())
                if idle and self._closed:
                    return
                if idle:
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                batch = _Batch(self._history.revision, self._history.get)
                for request in self._requests[:MAX_BATCH]:
                    batch.add(request)
                del self._requests[:MAX_BATCH]
                await self._finish(batch)
        finally:  # whatever ends the writer, nobody is left waiting for it
            self._closed = True
            for request in self._requests:
                _answer(request.answer, StoreClosed())

    async def _finish(self, batch: _Batch) -> None:
        try:
            await self._write([change for committed in batch.commits for change in committed.changes])
        except StorageFailed as error:
            batch.fail(error)
            # Time goes on while the disk is full, so old history may go and make room.
            self._compact_if_due()
        else:
            self._show(batch.commits)
            batch.succeed()
            # Writers go first: what they keep of their objects saves watchers the decoding.
            if batch.commits:
                self._publish(batch.commits)
        finally:
            batch.fail(StoreClosed())

    async def _write(self, changes: Sequence[Change]) -> None:
        """Writes changes, and makes some of a compaction durable on the way if the disk lets us."""
        if self._has_compacted():
            obsolete, compacted = self._obsolete[:MAX_DELETED_ROWS], self._history.compacted
            try:
                await self._run(self._database.write, changes, compacted, obsolete)
            except StorageFailed:
                self._disk_refuses = True  # until a write has shown that it is well again
            else:
                self._disk_refuses = False
                del self._obsolete[: len(obsolete)]
                self._saved_compaction = compacted
                return
        if changes:
            await self._run(self._database.write, changes, self._saved_compaction, ())
            self._disk_refuses = False

    def _has_compacted(self) -> bool:
        return bool(self._obsolete) or self._saved_compaction < self._history.compacted

    async def _run(self, call: Callable[..., None], *arguments: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._executor, call, *arguments)


def _answer(answer: asyncio.Future[Committed], result: Committed | Exception) -> None:
    if answer.done():  # who asked has gone
        return
    if isinstance(result, Committed):
        answer.set_result(result)
    else:
        answer.set_exception(result)
