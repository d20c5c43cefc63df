"""`kill -9` at any moment: what was acknowledged is there, nothing is there by half, revisions only grow."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dray.store.interface import Change
from dray.store.sqlite import SqliteStore
from tests.e2e.store_writer import WRITERS


class Expectations:
    """What the killed writers were told, over all rounds."""

    def __init__(self) -> None:
        self.revision = 1
        self.written: dict[str, tuple[int, int]] = {}
        """Key to the highest acknowledged (value, revision)."""

    def note(self, line: bytes) -> None:
        if not line.endswith(b"\n"):  # killed while it spoke
            return
        revision, key, value = line.split()
        self.revision = max(self.revision, int(revision))
        known = self.written.get(key.decode(), (0, 0))
        self.written[key.decode()] = max(known, (int(value), int(revision)))


async def run_and_kill(path: Path, lines: int, expected: Expectations) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.e2e.store_writer", str(path), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    for _ in range(lines):
        expected.note(await process.stdout.readline())
    process.kill()
    for line in (await process.stdout.read()).splitlines(keepends=True):
        expected.note(line)
    assert await process.wait() == -9


async def check(path: Path, expected: Expectations, seen_revision: int) -> int:
    store = await SqliteStore.open(path)
    entries = {entry.key: entry for entry in (await store.range("/")).entries}
    assert store.current_revision >= expected.revision
    for key, (value, revision) in expected.written.items():
        if key == "/opened":
            continue
        assert key in entries, f"{key} was acknowledged at {revision} and is gone"
        assert int(entries[key].value) >= value
        assert entries[key].mod_revision >= revision
    for writer in range(WRITERS):
        counter = entries.get(f"/count/{writer}")
        last = expected.written.get(f"/count/{writer}", (0, 0))[0]
        if counter is not None:
            assert last <= int(counter.value) <= last + 1, "at most the write in flight was kept unacknowledged"
    for key, entry in entries.items():
        if key.startswith("/pair/"):
            twin = key.replace("left", "right") if key.endswith("left") else key.replace("right", "left")
            assert entries[twin].mod_revision == entry.mod_revision
    for key, entry in entries.items():
        expected.written[key] = (int(entry.value), entry.mod_revision)
    await check_replay(store, max(seen_revision, store.compacted_revision))
    revision = store.current_revision
    await store.close()
    return revision


async def check_replay(store: SqliteStore, start: int) -> None:
    """A watch that resumes gets every change since, without gaps, up to what is there now."""
    state = {entry.key: entry for entry in (await store.range("/", revision=start)).entries}
    changes: list[Change] = []
    if store.current_revision > start:
        with closing(await store.watch("/", start)) as watch:
            changes = list(await watch.batch())
    revisions = sorted({change.revision for change in changes})
    assert revisions == list(range(start + 1, store.current_revision + 1))
    for change in changes:
        assert state.get(change.key) == change.previous
        assert change.entry is not None
        state[change.key] = change.entry
    assert [state[key] for key in sorted(state)] == (await store.range("/")).entries


async def crash_repeatedly(path: Path, times: int) -> None:
    expected, revision = Expectations(), 1
    randomness = random.Random(times)
    for _ in range(times):
        await run_and_kill(path, randomness.choice((1, 5, 50, 500, 2000)), expected)
        before, revision = revision, await check(path, expected, revision)
        assert revision >= before
    assert expected.revision > times


async def test_a_killed_store_keeps_its_promises(tmp_path: Path) -> None:
    await crash_repeatedly(tmp_path / "store.db", 5)


@pytest.mark.slow
async def test_a_store_killed_fifty_times_keeps_its_promises(tmp_path: Path) -> None:
    await crash_repeatedly(tmp_path / "store.db", 50)
