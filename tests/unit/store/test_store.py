"""What every store promises to its users."""

from __future__ import annotations

import asyncio

import pytest

from dray.store.errors import Compacted, FutureRevision, RevisionMismatch, StoreClosed
from dray.store.interface import MAX_OPERATIONS, Compare, Delete, Put, Store


async def keys_in(store: Store, prefix: str, *, revision: int = 0) -> list[str]:
    return [entry.key for entry in (await store.range(prefix, revision=revision)).entries]


async def test_an_empty_store_has_a_revision_that_lists_can_carry(store: Store) -> None:
    assert store.current_revision == 1
    assert (await store.range("/")).revision == 1


async def test_a_write_gets_the_next_revision_and_can_be_read(store: Store) -> None:
    before = store.current_revision
    entry = await store.put("/a", b"one", expected=0)
    assert entry.mod_revision == entry.create_revision == before + 1 == store.current_revision
    assert await store.get("/a") == entry


async def test_an_update_keeps_the_create_revision(store: Store) -> None:
    created = await store.put("/a", b"one")
    updated = await store.put("/a", b"two", expected=created.mod_revision)
    assert (updated.create_revision, updated.value) == (created.create_revision, b"two")


async def test_a_key_that_is_made_again_has_a_new_create_revision(store: Store) -> None:
    first = await store.put("/a", b"one")
    await store.delete("/a")
    second = await store.put("/a", b"two", expected=0)
    assert second.create_revision > first.create_revision


async def test_a_stale_write_is_refused_and_told_what_is_there(store: Store) -> None:
    stale = await store.put("/a", b"one")
    current = await store.put("/a", b"two")
    with pytest.raises(RevisionMismatch) as refused:
        await store.put("/a", b"three", expected=stale.mod_revision)
    assert refused.value.current == current
    assert store.current_revision == current.mod_revision


async def test_creating_what_exists_is_refused(store: Store) -> None:
    await store.put("/a", b"one")
    with pytest.raises(RevisionMismatch):
        await store.put("/a", b"two", expected=0)


async def test_deleting_returns_what_was_there(store: Store) -> None:
    entry = await store.put("/a", b"one")
    assert await store.delete("/a", expected=entry.mod_revision) == entry
    assert await store.get("/a") is None


async def test_deleting_nothing_is_refused_and_costs_no_revision(store: Store) -> None:
    before = store.current_revision
    with pytest.raises(RevisionMismatch) as refused:
        await store.delete("/a")
    assert refused.value.current is None
    assert store.current_revision == before


async def test_a_commit_writes_all_keys_at_one_revision(store: Store) -> None:
    old = await store.put("/old", b"x")
    committed = await store.commit(
        [Compare("/old", old.mod_revision), Compare("/new", 0)],
        [Put("/new", b"y"), Delete("/old"), Put("/count", b"1")],
    )
    assert [change.revision for change in committed.changes] == [committed.revision] * 3
    assert await keys_in(store, "/") == ["/count", "/new"]


async def test_a_commit_with_one_failed_compare_writes_nothing(store: Store) -> None:
    await store.put("/a", b"one")
    with pytest.raises(RevisionMismatch) as refused:
        await store.commit([Compare("/b", 0), Compare("/a", 0)], [Put("/b", b"x"), Put("/a", b"x")])
    assert refused.value.key == "/a"
    assert await keys_in(store, "/") == ["/a"]


async def test_a_commit_that_changes_nothing_costs_no_revision(store: Store) -> None:
    before = store.current_revision
    committed = await store.commit([], [Delete("/a")])
    assert (committed.revision, committed.changes) == (before, ())


async def test_a_commit_may_write_a_key_only_once(store: Store) -> None:
    with pytest.raises(ValueError, match="only once"):
        await store.commit([], [Put("/a", b"x"), Delete("/a")])
    with pytest.raises(ValueError, match="at most"):
        await store.commit([], [Put(f"/{i}", b"x") for i in range(MAX_OPERATIONS + 1)])


async def test_a_key_that_no_file_can_hold_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="surrogates"):
        await store.put("/\ud800", b"x")
    assert await store.put("/é\U0010ffff", b"x")


async def test_a_range_is_sorted_and_keeps_to_its_prefix(store: Store) -> None:
    for key in ["/b/2", "/a", "/b/10", "/b", "/b0", "/b/1", "/b/\U0010ffffz"]:
        await store.put(key, b"x")
    assert await keys_in(store, "/b/") == ["/b/1", "/b/10", "/b/2", "/b/\U0010ffffz"]


async def test_pages_of_a_range_tell_how_much_remains(store: Store) -> None:
    for i in range(5):
        await store.put(f"/a/{i}", b"x")
    first = await store.range("/a/", limit=2)
    assert [entry.key for entry in first.entries] == ["/a/0", "/a/1"]
    assert first.remaining == 3
    last = await store.range("/a/", limit=3, start_after="/a/1")
    assert [entry.key for entry in last.entries] == ["/a/2", "/a/3", "/a/4"]
    assert last.remaining == 0


async def test_pages_at_one_revision_see_nothing_of_later_writes(store: Store) -> None:
    for i in range(4):
        await store.put(f"/a/{i}", b"old")
    first = await store.range("/a/", limit=2)
    await store.put("/a/3", b"new")
    await store.put("/a/25", b"new")
    await store.delete("/a/2")
    second = await store.range("/a/", limit=2, start_after="/a/1", revision=first.revision)
    assert [(entry.key, entry.value) for entry in second.entries] == [("/a/2", b"old"), ("/a/3", b"old")]
    assert second.revision == first.revision


async def test_reading_before_the_compaction_or_in_the_future_is_refused(store: Store) -> None:
    for i in range(3):
        await store.put("/a", b"%d" % i)
    await store.compact(3)
    assert store.compacted_revision == 3
    assert (await store.range("/", revision=3)).entries[0].value == b"1"
    with pytest.raises(Compacted):
        await store.range("/", revision=2)
    with pytest.raises(Compacted):
        await store.watch("/", 2)
    with pytest.raises(FutureRevision):
        await store.range("/", revision=5)
    with pytest.raises(FutureRevision):
        await store.watch("/", 5)
    with pytest.raises(FutureRevision):
        await store.compact(5)


async def test_concurrent_increments_lose_nothing(store: Store) -> None:
    await store.put("/counter", b"0")

    async def increment() -> None:
        entry = await store.get("/counter")
        while entry is not None:
            try:
                await store.put("/counter", b"%d" % (int(entry.value) + 1), expected=entry.mod_revision)
            except RevisionMismatch as mismatch:
                entry = mismatch.current
            else:
                return

    await asyncio.gather(*(increment() for _ in range(64)))
    entry = await store.get("/counter")
    assert entry is not None
    assert entry.value == b"64"


async def test_a_closed_store_refuses_writes_and_watches(store: Store) -> None:
    await store.close()
    with pytest.raises(StoreClosed):
        await store.put("/a", b"x")
    with pytest.raises(StoreClosed):
        await store.watch("/")
