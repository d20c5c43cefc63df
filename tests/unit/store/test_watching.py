"""Watches: what they deliver, how they end."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

from dray.store.errors import SlowWatcher, StoreClosed
from dray.store.interface import Put, Store
from tests.unit.store.conftest import OpenStore


async def test_a_watch_replays_and_then_follows(store: Store) -> None:
    await store.put("/a/1", b"x")
    start = store.current_revision
    await store.put("/a/2", b"y")
    with closing(await store.watch("/a/", start)) as watch:
        await store.delete("/a/1")
        await store.put("/b", b"not asked for")
        replayed, followed = await anext(watch), await anext(watch)
    assert (replayed.key, replayed.value, replayed.created) == ("/a/2", b"y", True)
    assert (followed.key, followed.deleted, followed.previous_value) == ("/a/1", True, b"x")


async def test_a_watch_from_now_sees_only_what_comes(store: Store) -> None:
    await store.put("/a", b"old")
    with closing(await store.watch("/")) as watch:
        await store.put("/a", b"new")
        change = await anext(watch)
    assert (change.value, change.previous_value, change.created) == (b"new", b"old", False)


async def test_all_watchers_get_the_same_change(store: Store) -> None:
    with closing(await store.watch("/")) as one, closing(await store.watch("/a")) as other:
        await store.put("/a", b"x")
        assert await anext(one) is await anext(other)


async def test_a_commit_arrives_whole(store: Store) -> None:
    with closing(await store.watch("/")) as watch:
        waiting = asyncio.create_task(watch.batch())
        await asyncio.sleep(0)
        await store.commit([], [Put("/a", b"x"), Put("/b", b"y")])
        assert [change.key for change in await waiting] == ["/a", "/b"]


async def test_a_cancelled_wait_loses_nothing(store: Store) -> None:
    with closing(await store.watch("/")) as watch:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watch.batch(), 0.001)
        await store.put("/a", b"x")
        assert [change.key for change in await watch.batch()] == ["/a"]


async def test_progress_grows_with_what_was_handed_out_and_with_what_does_not_match(store: Store) -> None:
    with closing(await store.watch("/a")) as watch:
        first = await store.put("/a1", b"x")
        second = await store.put("/a2", b"x")
        assert watch.progress == first.mod_revision - 1
        await anext(watch)
        assert watch.progress == second.mod_revision - 1
        await anext(watch)
        other = await store.put("/b", b"x")
        assert watch.progress == other.mod_revision


async def test_a_reader_who_falls_behind_is_ended_and_the_others_go_on(open_store: OpenStore) -> None:
    store = await open_store(watch_buffer=3)
    slow, quick = await store.watch("/"), await store.watch("/")
    start = store.current_revision
    for i in range(4):
        await store.put(f"/{i}", b"x")
        await anext(quick)
    with pytest.raises(SlowWatcher) as ended:
        await slow.batch()
    assert ended.value.revision == slow.progress == start
    await store.put("/more", b"x")
    assert (await anext(quick)).key == "/more"


async def test_a_long_replay_is_no_fault_of_the_reader(open_store: OpenStore) -> None:
    store = await open_store(watch_buffer=3)
    start = store.current_revision
    for i in range(10):
        await store.put(f"/{i}", b"x")
    with closing(await store.watch("/", start)) as watch:
        await store.put("/10", b"x")
        assert len(await watch.batch()) == 11


async def test_a_reader_overtaken_by_compaction_is_ended(store: Store) -> None:
    watch = await store.watch("/")
    await store.put("/a", b"x")
    await store.compact(store.current_revision)
    with pytest.raises(SlowWatcher):
        await anext(watch)


async def test_a_closed_watch_ends_the_iteration(store: Store) -> None:
    watch = await store.watch("/")
    waiting = asyncio.create_task(watch.batch())
    await asyncio.sleep(0)
    watch.close()
    assert list(await waiting) == []
    assert [change async for change in watch] == []


async def test_closing_the_store_ends_its_watches(store: Store) -> None:
    watch = await store.watch("/")
    waiting = asyncio.create_task(watch.batch())
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(StoreClosed):
        await waiting
