"""Writes to a store as fast as it can and says what was acknowledged, until somebody kills it.

Run as `python -m tests.e2e.store_writer PATH`. Each line is `revision key value`, printed after the write returned.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from dray.store.interface import Compare, Put
from dray.store.retention import Retention
from dray.store.sqlite import SqliteStore

WRITERS = 16


def acknowledge(revision: int, key: str, value: bytes) -> None:
    os.write(1, b"%d %s %s\n" % (revision, key.encode(), value))


async def write(store: SqliteStore, writer: int) -> None:
    """Counts up under one key; every third step also makes a pair that must never be seen half."""
    key = f"/count/{writer}"
    current = await store.get(key)
    count = 0 if current is None else int(current.value)
    expected = 0 if current is None else current.mod_revision
    while True:
        count += 1
        value = b"%d" % count
        if count % 3:
            expected = (await store.put(key, value, expected=expected)).mod_revision
        else:
            pair = [Put(f"/pair/{writer}/{count}/left", value), Put(f"/pair/{writer}/{count}/right", value)]
            committed = await store.commit([Compare(key, expected)], [Put(key, value), *pair])
            expected = committed.revision
            acknowledge(expected, pair[1].key, value)
        acknowledge(expected, key, value)


async def main(path: Path) -> None:
    store = await SqliteStore.open(path, retention=Retention(changes=5_000))
    acknowledge(store.current_revision, "/opened", b"0")
    await asyncio.gather(*(write(store, writer) for writer in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
