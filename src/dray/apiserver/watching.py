"""Watches: the store's changes as events, written once however many watch.

A watcher with selectors sees an object that starts to match as ADDED and one that stops to match as DELETED. The
object in a DELETED event is the last one that matched, with the revision of the change that ended it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from typing import Final

from dray.api.errors import ServerTimeout, StatusError
from dray.api.meta import Json
from dray.apiserver import refusals
from dray.apiserver.listing import entry_filter, object_filter, parse_revision
from dray.apiserver.options import ListOptions
from dray.apiserver.record_cache import Batch, Event, RecordCache
from dray.apiserver.records import Record, encode_json
from dray.apiserver.registry import Registry
from dray.apiserver.resources import Row
from dray.apiserver.targets import Target
from dray.runtime.client import EventType
from dray.store.errors import Compacted, FutureRevision, SlowWatcher, StoreClosed
from dray.store.interface import Change, Watch

BOOKMARK_SECONDS: Final = 60.0
SHORTEST_TIMEOUT: Final = 1800.0
"""Watches without a timeout of their own end after this, or up to twice as long, as in Kubernetes."""

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


@asynccontextmanager
async def watch_objects(
    registry: Registry, target: Target, options: ListOptions
) -> AsyncIterator[AsyncIterator[Batch]]:
    """Batches of events, until the timeout. Raises Expired if the asked revision is gone."""
    row = target.row
    prefix = row.range_prefix(target.namespace)
    store = registry.store
    initial: list[Event] = []
    revision = parse_revision(options.resource_version) if options.resource_version else 0
    if options.send_initial_events or revision == 0:
        # Everything as of now, then what changes. Without a revision a watch begins with all there is.
        if revision > store.current_revision:
            raise refusals.too_large_revision(revision, store.current_revision)
        initial, revision = await _initial_events(registry, row, prefix, options)
    try:
        watch = await store.watch(prefix, revision)
    except Compacted as error:
        text = f"too old resource version: {error.revision} ({error.compacted})"
        raise refusals.expired(text) from None
    except FutureRevision:
        watch = await store.watch(prefix)
    with closing(watch):
        yield _follow(registry, row, prefix, watch, initial, options, max(revision, 0))


async def _initial_events(registry: Registry, row: Row, prefix: str, options: ListOptions) -> tuple[list[Event], int]:
    result = await registry.store.range(prefix)
    matches = entry_filter(row, options) if options.selects else None
    events = [
        Event(EventType.ADDED, Record.from_entry(row, entry))
        for entry in result.entries
        if matches is None or matches(entry)
    ]
    if options.send_initial_events and options.allow_bookmarks:
        events.append(_bookmark(row, result.revision, initial_events_end=True))
    return events, result.revision


async def _follow(
    registry: Registry,
    row: Row,
    prefix: str,
    watch: Watch,
    initial: list[Event],
    options: ListOptions,
    after: int,
) -> AsyncIterator[Batch]:
    if initial:
        yield Batch(initial)
    select = _selector(row, options, registry.records) if options.selects else None
    deadline = registry.clock.monotonic() + (options.timeout_seconds or _default_timeout(id(watch)))
    while True:
        left = deadline - registry.clock.monotonic()
        if left <= 0:
            return
        try:
            async with asyncio.timeout(min(left, BOOKMARK_SECONDS)):
                changes = await watch.batch()
        except TimeoutError:
            # The bookmark before the end lets a client resume without a new list.
            if options.allow_bookmarks and watch.progress > after:
                yield Batch([_bookmark(row, watch.progress)])
            continue
        except (SlowWatcher, StoreClosed) as error:
            raise watch_error(error) from None
        if not changes:
            return
        if changes[0].revision <= after:  # asked for a revision that hadn't come yet
            changes = [change for change in changes if change.revision > after]
        if select is None:
            if changes:
                yield registry.records.batch(row, prefix, changes)
        elif events := [event for change in changes for event in select(change)]:
            yield Batch(events)


def watch_error(error: SlowWatcher | StoreClosed) -> StatusError:
    if isinstance(error, SlowWatcher):
        return refusals.expired(f"the watch fell too far behind; it got everything up to {error.revision}")
    return ServerTimeout("the server is shutting down")


def _default_timeout(seed: int) -> float:
    """Spread out, so that clients which started together don't come back together."""
    return SHORTEST_TIMEOUT * (1 + (seed // 16 % 1000) / 1000)


def _selector(row: Row, options: ListOptions, cache: RecordCache) -> Callable[[Change], Iterator[Event]]:
    """What a change means to someone who sees only some objects."""
    matches = object_filter(options)

    def select(change: Change) -> Iterator[Event]:
        before = change.previous is not None and matches(cache.previous(row, change).obj)
        after = change.entry is not None and matches(cache.current(row, change).obj)
        match before, after:
            case True, True:
                yield Event(EventType.MODIFIED, cache.current(row, change))
            case True, False:
                yield Event(EventType.DELETED, cache.previous(row, change))
            case False, True:
                yield Event(EventType.ADDED, cache.current(row, change))

    return select


def _bookmark(row: Row, revision: int, *, initial_events_end: bool = False) -> Event:
    metadata: Json = {"resourceVersion": str(revision)}
    if initial_events_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return Event(EventType.BOOKMARK, BookmarkRecord(row, metadata))


class BookmarkRecord(Record):
    """An empty object that says how far the watch is."""

    __slots__ = ("metadata",)

    def __init__(self, row: Row, metadata: Json) -> None:
        super().__init__(row, b"", 0)
        self.metadata = metadata

    def to_json(self, version: str) -> Json:
        row = self.of
        zero = row.strategy.zero(version)
        return {**zero, "kind": row.kind, "apiVersion": row.api_version(version), "metadata": self.metadata}

    def to_bytes(self, version: str) -> bytes:
        return encode_json(self.to_json(version))
