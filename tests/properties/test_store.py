"""Both stores against a model so simple that it can't be wrong: a list with the full state at every revision."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from dray.store.errors import Compacted, FutureRevision, RevisionMismatch, StoreError
from dray.store.interface import Change, Compare, Delete, Operation, Put, RangeResult, Store, Watch
from dray.store.memory import MemoryStore
from dray.store.sqlite import SqliteStore

T = TypeVar("T")
State = dict[str, tuple[bytes, int, int]]
"""Key to value, create revision, mod revision."""
Delivered = tuple[int, str, bytes | None, bytes | None]
"""A change: revision, key, value, previous value."""

KEYS = [f"/{folder}/{name}" for folder in "ab" for name in ("1", "2", "20", "é")] + ["/a", "/c"]
keys = st.sampled_from(KEYS)
prefixes = st.sampled_from(["", "/", "/a", "/a/", "/a/2", "/b/", "/nothing"])
values = st.binary(max_size=8)
positions = st.floats(0, 1)


class Model:
    def __init__(self) -> None:
        self.states: list[State] = [{}, {}]
        self.log: list[Delivered] = []
        self.compacted = 1

    @property
    def revision(self) -> int:
        return len(self.states) - 1

    def mod_revision(self, key: str) -> int:
        return self.states[-1].get(key, (b"", 0, 0))[2]

    def commit(self, operations: list[Operation]) -> None:
        state, revision = dict(self.states[-1]), self.revision + 1
        for operation in operations:
            previous = state.get(operation.key)
            before = None if previous is None else previous[0]
            match operation:
                case Put(key, value):
                    state[key] = (value, revision if previous is None else previous[1], revision)
                    self.log.append((revision, key, value, before))
                case Delete(key):
                    if state.pop(key, None) is not None:
                        self.log.append((revision, key, None, before))
        if state != self.states[-1]:
            self.states.append(state)

    def changes(self, prefix: str, after: int) -> list[Delivered]:
        return [change for change in self.log if change[0] > after and change[1].startswith(prefix)]


class Follower:
    """A watch, with where it started and what it has delivered."""

    def __init__(self, watch: Watch, prefix: str, start: int) -> None:
        self.watch = watch
        self.prefix = prefix
        self.start = start
        self.got: list[Change] = []


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.model = Model()
        self.followers: list[Follower] = []
        self.store = self.run(self.open_store())

    async def open_store(self) -> Store:
        return MemoryStore()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(call, 10))

    def pick_revision(self, position: float, beyond: int = 1) -> int:
        """Any revision from 1 to a little after the current one."""
        return 1 + round(position * (self.model.revision + beyond - 1))

    def commit(self, compares: list[Compare], operations: list[Operation]) -> None:
        holds = all(self.model.mod_revision(compare.key) == compare.revision for compare in compares)
        try:
            committed = self.run(self.store.commit(compares, operations))
        except RevisionMismatch as mismatch:
            there = 0 if mismatch.current is None else mismatch.current.mod_revision
            agrees = there == self.model.mod_revision(mismatch.key)
            assert agrees
            assert not holds
            return
        assert holds
        self.model.commit(operations)
        assert committed.revision == self.model.revision

    @rule(key=keys, value=values)
    def write(self, key: str, value: bytes) -> None:
        self.commit([], [Put(key, value)])

    @rule(key=keys, value=values, position=positions)
    def write_if(self, key: str, value: bytes, position: float) -> None:
        expected = self.model.mod_revision(key) if position < 0.5 else self.pick_revision(position)
        self.commit([Compare(key, expected)], [Put(key, value)])

    @rule(key=keys)
    def delete(self, key: str) -> None:
        there = self.model.mod_revision(key)
        try:
            entry = self.run(self.store.delete(key))
        except RevisionMismatch:
            assert not there
        else:
            assert entry.mod_revision == there
            self.model.commit([Delete(key)])

    @rule(written=st.dictionaries(keys, st.none() | values, min_size=1, max_size=4), compared=st.sets(keys, max_size=2))
    def write_many(self, written: dict[str, bytes | None], compared: set[str]) -> None:
        compares = [Compare(key, self.model.mod_revision(key)) for key in compared]
        self.commit(compares, [Delete(key) if value is None else Put(key, value) for key, value in written.items()])

    @rule(written=st.lists(st.tuples(keys, values), min_size=2, max_size=6))
    def write_concurrently(self, written: list[tuple[str, bytes]]) -> None:
        """All compare with what they saw before any of them wrote; the first of each key wins."""
        seen = [self.model.mod_revision(key) for key, _ in written]

        async def write_all() -> list[object]:
            calls = (
                self.store.put(key, value, expected=revision)
                for (key, value), revision in zip(written, seen, strict=True)
            )
            return list(await asyncio.gather(*calls, return_exceptions=True))

        results = self.run(write_all())
        done: set[str] = set()
        for (key, value), result in zip(written, results, strict=True):
            assert isinstance(result, RevisionMismatch) == (key in done)
            if key not in done:
                self.model.commit([Put(key, value)])
                done.add(key)

    @rule(prefix=prefixes, position=positions, limit=st.integers(0, 4), start_after=st.just("") | keys)
    def read(self, prefix: str, position: float, limit: int, start_after: str) -> None:
        revision = self.pick_revision(position)
        try:
            result: RangeResult = self.run(
                self.store.range(prefix, revision=revision, limit=limit, start_after=start_after)
            )
        except Compacted:
            assert revision < self.model.compacted
            return
        except FutureRevision:
            assert revision > self.model.revision
            return
        state = self.model.states[revision]
        matching = sorted(key for key in state if key.startswith(prefix) and key > start_after)
        shown = matching[:limit] if limit else matching
        assert [(entry.key, (entry.value, entry.create_revision, entry.mod_revision)) for entry in result.entries] == [
            (key, state[key]) for key in shown
        ]
        assert result.remaining == len(matching) - len(shown)
        assert result.revision == revision

    @precondition(lambda self: len(self.followers) < 4)
    @rule(prefix=prefixes, position=positions)
    def start_watch(self, prefix: str, position: float) -> None:
        revision = self.pick_revision(position)
        try:
            watch = self.run(self.store.watch(prefix, revision))
        except Compacted:
            assert revision < self.model.compacted
        except FutureRevision:
            assert revision > self.model.revision
        else:
            self.followers.append(Follower(watch, prefix, revision))

    @precondition(lambda self: self.followers)
    @rule(index=st.integers(0, 3), count=st.integers(1, 5))
    def follow(self, index: int, count: int) -> None:
        follower = self.followers[index % len(self.followers)]
        expected = self.model.changes(follower.prefix, follower.start)
        for _ in range(min(count, len(expected) - len(follower.got))):
            follower.got.append(self.run(anext(follower.watch)))

    @precondition(lambda self: self.followers)
    @rule(index=st.integers(0, 3))
    def stop_watch(self, index: int) -> None:
        self.followers.pop(index % len(self.followers)).watch.close()

    @rule(position=positions)
    def compact(self, position: float) -> None:
        revision = self.pick_revision(position, beyond=0)
        if revision < self.model.compacted:
            return
        # A reader with older changes in front of it would be ended; that has tests of its own.
        for follower in list(self.followers):
            if follower.watch.progress < revision:
                self.followers.remove(follower)
                follower.watch.close()
        self.run(self.store.compact(revision))
        self.model.compacted = revision

    @invariant()
    def revisions_agree(self) -> None:
        assert self.store.current_revision == self.model.revision
        assert self.store.compacted_revision == self.model.compacted

    @invariant()
    def watches_deliver_every_change_in_order_and_know_how_far_they_are(self) -> None:
        for follower in self.followers:
            expected = self.model.changes(follower.prefix, follower.start)
            got = [(change.revision, change.key, change.value, change.previous_value) for change in follower.got]
            assert got == expected[: len(got)]
            rest = expected[len(got) :]
            assert follower.watch.progress == (rest[0][0] - 1 if rest else self.model.revision)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.close()


class SqliteMachine(StoreMachine):
    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        super().__init__()

    async def open_store(self) -> Store:
        return await SqliteStore.open(Path(self.folder.name) / "store.db")

    @rule()
    def restart(self) -> None:
        """Watches end with the store and resume from where they were."""
        resumed = [(follower, follower.watch.progress) for follower in self.followers]
        self.run(self.store.close())
        for follower in self.followers:
            with pytest.raises(StoreError):
                self.run(anext(follower.watch))
        self.store = self.run(self.open_store())
        self.followers = []
        for follower, progress in resumed:
            if progress >= self.model.compacted:
                watch = self.run(self.store.watch(follower.prefix, progress))
                self.followers.append(Follower(watch, follower.prefix, progress))

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestMemoryStore = StoreMachine.TestCase
TestMemoryStore.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestSqliteStore = SqliteMachine.TestCase
TestSqliteStore.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [StoreMachine, SqliteMachine])
def test_the_stores_agree_with_the_model_for_long(machine: type[StoreMachine]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=600, stateful_step_count=60, deadline=None))
