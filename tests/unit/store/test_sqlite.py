"""What the embedded store promises beyond the others: it survives, and refuses what it can't trust."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dray.store import sqlite as sqlite_store
from dray.store.errors import DamagedFile, ForeignFile, Overloaded, StorageFailed, StoreInUse, StoreUnusable
from dray.store.interface import Put
from dray.store.retention import Retention
from dray.store.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def rows_in(path: Path) -> int:
    """Rows of a closed store's file."""
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM log").fetchone()
    return int(count)


def overwrite(path: Path, offset: int, data: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR)
    os.pwrite(descriptor, data, offset)
    os.close(descriptor)


def write_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def read_file(path: Path) -> bytes:
    return path.read_bytes()


async def test_everything_is_there_after_a_restart(path: Path) -> None:
    store = await SqliteStore.open(path)
    start = store.current_revision
    await store.put("/a", b"one")
    await store.put("/a", b"two")
    await store.commit([], [Put("/b", b""), Put("/c", b"\0")])
    await store.delete("/b")
    before, revision = await store.range("/"), store.current_revision
    await store.close()

    store = await SqliteStore.open(path)
    assert store.current_revision == revision
    assert await store.range("/") == before
    with closing(await store.watch("/", start)) as watch:
        assert [(change.key, change.value) for change in await watch.batch()] == [
            ("/a", b"one"),
            ("/a", b"two"),
            ("/b", b""),
            ("/c", b"\0"),
            ("/b", None),
        ]
    await store.close()


async def test_revisions_only_grow_even_if_the_last_write_was_compacted_away(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.put("/a", b"x")
    await store.delete("/a")
    revision = store.current_revision
    await store.compact(revision)
    await store.close()
    store = await SqliteStore.open(path)
    await store.close()
    assert rows_in(path) == 0
    store = await SqliteStore.open(path)
    assert (store.current_revision, store.compacted_revision) == (revision, revision)
    await store.close()


async def test_compaction_deletes_rows_that_nobody_needs(path: Path) -> None:
    store = await SqliteStore.open(path, retention=Retention(changes=10))
    for i in range(200):
        await store.put("/a", b"%d" % i)
    await store.put("/b", b"x")
    await store.close()
    assert rows_in(path) <= 13
    store = await SqliteStore.open(path)
    assert [entry.value for entry in (await store.range("/")).entries] == [b"199", b"x"]
    await store.close()


async def test_files_are_for_the_owner_only(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.put("/a", b"x")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    await store.close()
    assert set(modes.values()) == {0o600}, modes


async def test_two_servers_cannot_share_a_file(path: Path) -> None:
    store = await SqliteStore.open(path)
    with pytest.raises(StoreInUse, match=rf"in use by another dray process \(pid {os.getpid()}\).*another data"):
        await SqliteStore.open(path)
    await store.close()
    await (await SqliteStore.open(path)).close()


async def test_an_empty_file_left_by_a_crash_is_used(path: Path) -> None:
    write_file(path, b"")
    await (await SqliteStore.open(path)).close()


async def test_a_file_left_by_a_crash_before_its_tables_were_made_is_used(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    await (await SqliteStore.open(path)).close()


async def test_text_is_refused(path: Path) -> None:
    write_file(path, b"hello " * 100)
    with pytest.raises(DamagedFile, match="doesn't start as a SQLite file does"):
        await SqliteStore.open(path)
    assert read_file(path) == b"hello " * 100


async def test_a_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
        connection.commit()
    before = read_file(path)
    with pytest.raises(ForeignFile, match=r"another program.*Choose another data directory, or move the file away"):
        await SqliteStore.open(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 7")
    with pytest.raises(ForeignFile, match="application id 0x7"):
        await SqliteStore.open(path)
    assert len(read_file(path)) == len(before)


async def test_a_newer_format_is_refused(path: Path) -> None:
    await (await SqliteStore.open(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ForeignFile, match=r"another version of dray \(format 99"):
        await SqliteStore.open(path)


async def fill(path: Path) -> None:
    store = await SqliteStore.open(path)
    await asyncio.gather(*(store.put(f"/{i:03}", b"%d" % i * 500) for i in range(200)))
    await store.close()


async def test_a_flipped_byte_in_a_value_is_noticed(path: Path) -> None:
    await fill(path)
    overwrite(path, read_file(path).index(b"123" * 100) + 50, b"?")
    with pytest.raises(DamagedFile, match=r"'/123' has a wrong checksum.*Restore it from a backup, or move it away"):
        await SqliteStore.open(path)


@pytest.mark.parametrize("page", [1, 7, 20])
async def test_an_overwritten_page_is_noticed(path: Path, page: int) -> None:
    await fill(path)
    overwrite(path, page * 4096, os.urandom(4096))
    with pytest.raises(DamagedFile):
        await SqliteStore.open(path)


async def test_a_truncated_file_is_noticed(path: Path) -> None:
    await fill(path)
    write_file(path, read_file(path)[:8192])
    with pytest.raises(DamagedFile):
        await SqliteStore.open(path)


async def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="Check the path"):
        await SqliteStore.open(tmp_path / "missing" / "store.db")


async def test_a_full_disk_gives_errors_to_writers_while_readers_go_on(path: Path) -> None:
    store = await SqliteStore.open(path, max_pages=64)
    watch = await store.watch("/")
    written = 0
    with pytest.raises(StorageFailed, match="full"):
        while True:
            await store.put(f"/{written:03}", b"x" * 3000)
            written += 1
    revision = store.current_revision
    assert len((await store.range("/")).entries) == written == len(await watch.batch())
    with pytest.raises(StorageFailed):
        await store.put("/big", b"x" * 10_000)
    assert store.current_revision == revision
    await store.close()

    store = await SqliteStore.open(path)
    assert len((await store.range("/")).entries) == written
    assert (await store.put("/more", b"x")).mod_revision == revision + 1
    await store.close()


async def test_a_full_disk_recovers_when_history_is_dropped(path: Path) -> None:
    store = await SqliteStore.open(path, max_pages=64)
    with pytest.raises(StorageFailed):
        while True:
            await store.put("/a", b"x" * 3000)
    await store.compact(store.current_revision)
    await store.put("/a", b"x" * 3000)
    await store.close()


async def test_losers_against_a_write_that_failed_are_told_of_the_failure(path: Path) -> None:
    store = await SqliteStore.open(path, max_pages=8)
    winner, loser = await asyncio.gather(
        store.put("/a", b"x" * 100_000, expected=0),
        store.put("/a", b"y" * 100_000, expected=0),
        return_exceptions=True,
    )
    assert isinstance(winner, StorageFailed)
    assert isinstance(loser, StorageFailed)
    assert await store.get("/a") is None
    await store.close()


async def test_a_file_size_limit_of_the_system_is_survived(path: Path) -> None:
    """RLIMIT_FSIZE acts in the middle of a write, as a full disk does."""
    program = f"""
import asyncio, resource
from pathlib import Path
from dray.store.errors import StorageFailed
from dray.store.sqlite import SqliteStore

async def main():
    store = await SqliteStore.open(Path({str(path)!r}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    written = failed = 0
    while failed < 3:
        try:
            await store.put(f"/{{written:03}}", b"x" * 3000, expected=0)
            written += 1
        except StorageFailed:
            failed += 1
    assert len((await store.range("/")).entries) == written
    print(written)

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=subprocess.PIPE)
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    store = await SqliteStore.open(path)
    assert len((await store.range("/")).entries) == int(output)
    assert await store.put("/after", b"x")
    await store.close()


async def test_too_many_waiting_writes_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "MAX_WAITING", 5)
    store = await SqliteStore.open(path)
    results = await asyncio.gather(*(store.put(f"/{i}", b"x") for i in range(10)), return_exceptions=True)
    refused = [result for result in results if isinstance(result, Overloaded)]
    assert refused
    assert len((await store.range("/")).entries) == 10 - len(refused)
    await store.close()


async def test_closing_finishes_the_writes_that_wait(path: Path) -> None:
    store = await SqliteStore.open(path)
    writes = [asyncio.create_task(store.put(f"/{i}", b"x")) for i in range(20)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*writes)
    store = await SqliteStore.open(path)
    assert len((await store.range("/")).entries) == 20
    await store.close()
