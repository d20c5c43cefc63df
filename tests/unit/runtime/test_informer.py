"""Informers: nothing is lost between list and watch, nothing that vanished is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dray.api.errors import Expired, NotFound, ServiceUnavailable
from dray.api.meta import Json, ObjectKey
from dray.api.resources import CONFIG_MAPS, NODES
from dray.runtime.client import WatchEvent
from dray.runtime.informer import Informer
from dray.runtime.informers import Informers
from dray.testing.clock import FakeClock
from tests.unit.runtime.scripted_client import ScriptedClient, event, make_object, page


class Follower:
    """An informer that notes what it was told."""

    def __init__(
        self, lists: list[Json | Exception], watches: list[list[WatchEvent | Exception]], **options: Any
    ) -> None:
        self.client = ScriptedClient(lists, watches)
        self.clock = FakeClock()
        self.informer: Informer[Json] = Informer(self.client, NODES, clock=self.clock, **options)  # type: ignore[arg-type]
        self.told: list[str] = []
        self.informer.add_handler(self._note)

    def _note(self, old: Json | None, new: Json | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        self.told.append(f"+{name}" if old is None else f"-{name}" if new is None else f"~{name}")

    @asynccontextmanager
    async def running(self, seconds: float = 0.0) -> AsyncIterator[None]:
        task = asyncio.create_task(self.informer.run())
        try:
            await self.clock.settle()
            await self.clock.advance(seconds)
            yield
            assert not task.done(), task.exception()
        finally:
            task.cancel()

    @property
    def names(self) -> set[str]:
        return {obj["metadata"]["name"] for obj in self.informer}


async def test_the_watch_starts_at_the_revision_of_the_list() -> None:
    follower = Follower([page(7, make_object("a", 3))], [[event("ADDED", make_object("b", 8))]])
    async with follower.running():
        assert follower.client.asked[1] == "watch from 7"
        assert follower.told == ["+a", "+b"]
        assert follower.informer.has_synced


async def test_pages_are_read_to_the_end_before_the_watch_starts() -> None:
    first = page(9, make_object("a", 1), token="more")
    follower = Follower([first, page(9, make_object("b", 2))], [[]])
    async with follower.running():
        assert follower.client.asked == ["list limit=500 continue=", "list limit=500 continue=more", "watch from 9"]
        assert follower.names == {"a", "b"}


async def test_changes_and_deletions_reach_copy_and_handlers() -> None:
    changes: list[WatchEvent | Exception] = [
        event("MODIFIED", make_object("a", 2)),
        event("ADDED", make_object("b", 3)),
        event("DELETED", make_object("a", 4)),
    ]
    follower = Follower([page(1, make_object("a", 1))], [changes])
    async with follower.running():
        assert follower.told == ["+a", "~a", "+b", "-a"]
        assert follower.names == {"b"}


async def test_a_broken_watch_goes_on_from_the_last_event() -> None:
    watches: list[list[WatchEvent | Exception]] = [
        [event("ADDED", make_object("b", 5)), ServiceUnavailable("broken")],
        [event("ADDED", make_object("c", 6))],
    ]
    follower = Follower([page(1)], watches)
    async with follower.running(1):
        assert follower.client.asked == ["list limit=500 continue=", "watch from 1", "watch from 5"]
        assert follower.told == ["+b", "+c"]


async def test_bookmarks_move_the_point_to_go_on_from() -> None:
    follower = Follower([page(1)], [[event("BOOKMARK", make_object("", 50)), ServiceUnavailable("broken")], []])
    async with follower.running(1):
        assert follower.client.asked[-1] == "watch from 50"


async def test_an_expired_revision_leads_to_a_new_list_that_reports_what_changed_and_what_vanished() -> None:
    lists: list[Json | Exception] = [
        page(1, make_object("a", 1), make_object("b", 1), make_object("c", 1)),
        page(90, make_object("a", 1), make_object("b", 80)),
    ]
    follower = Follower(lists, [[Expired("too old")], []])
    async with follower.running(1):
        assert follower.told == ["+a", "+b", "+c", "~b", "-c"]
        assert follower.client.asked[-1] == "watch from 90"


async def test_pages_that_expire_are_asked_for_at_once() -> None:
    lists = [page(1, make_object("a", 1), token="more"), Expired("too old"), page(2, make_object("b", 2))]
    follower = Follower(lists, [[]])
    async with follower.running(1):
        assert follower.client.asked[2] == "list limit=0 continue="
        assert follower.names == {"b"}


async def test_a_server_that_is_away_is_waited_for_with_growing_pauses() -> None:
    away = [ServiceUnavailable("away")] * 6
    follower = Follower([*away, page(1, make_object("a", 1))], [[]])
    async with follower.running(3.0):  # tries after 0, 0.1, 0.3, 0.7 and 1.5 seconds
        assert len(follower.client.asked) == 5
        assert not follower.informer.has_synced
        await follower.clock.advance(3.4)
        assert follower.names == {"a"}


async def test_a_server_that_only_hangs_up_does_not_keep_us_busy() -> None:
    follower = Follower([page(1)], [[] for _ in range(100)])
    async with follower.running(2.0):
        assert len(follower.client.asked) < 8


async def test_a_resource_that_the_server_does_not_have_is_empty_until_it_has_it() -> None:
    follower = Follower([NotFound("no such resource"), page(1, make_object("a", 1))], [[]])
    async with follower.running():
        assert follower.informer.has_synced
        assert follower.names == set()
        await follower.clock.advance(60)
        assert follower.names == {"a"}


async def test_an_object_that_cannot_be_read_leaves_the_others_alone() -> None:
    def decode(obj: Json) -> Json:
        if obj.get("bad"):
            raise ValueError("what is this?")
        return obj

    objects = make_object("a", 1), make_object("b", 1, bad=True), make_object("c", 1)
    follower = Follower([page(1, *objects)], [[]], decode=decode)
    async with follower.running():
        assert follower.names == {"a", "c"}


async def test_an_index_follows_every_change() -> None:
    changes: list[WatchEvent | Exception] = [
        event("MODIFIED", make_object("a", 2, zone="y")),
        event("ADDED", make_object("b", 3, zone="x")),
        event("DELETED", make_object("b", 4)),
    ]
    follower = Follower([page(1, make_object("a", 1, zone="x"))], [changes])
    follower.informer.add_index("zone", lambda obj: [obj["zone"]] if "zone" in obj else [])
    async with follower.running():
        assert follower.informer.by_index("zone", "x") == []
        assert [obj["metadata"]["name"] for obj in follower.informer.by_index("zone", "y")] == ["a"]


async def test_a_late_handler_is_told_what_is_there() -> None:
    follower = Follower([page(1, make_object("a", 1))], [[]])
    async with follower.running():
        late: list[Json | None] = []
        follower.informer.add_handler(lambda old, new: late.append(new))
        assert [obj["metadata"]["name"] for obj in late if obj] == ["a"]


async def test_informers_of_one_resource_share_a_watch() -> None:
    client = ScriptedClient([page(1, make_object("a", 1))], [[event("ADDED", make_object("b", 2))]])
    informers = Informers(client, FakeClock())  # type: ignore[arg-type]
    plain, named = informers.of(NODES), informers.typed(NODES, _name_of)
    assert informers.of(NODES) is plain
    assert informers.typed(NODES, _name_of) is named
    assert informers.of(CONFIG_MAPS) is not plain
    informers = Informers(client, FakeClock())  # type: ignore[arg-type]
    plain, named = informers.of(NODES), informers.typed(NODES, _name_of)
    task = asyncio.create_task(informers.run())
    await informers.wait_synced()
    await FakeClock.settle()
    task.cancel()
    assert client.asked == ["list limit=500 continue=", "watch from 1"]
    assert plain.get(ObjectKey("", "b")) == make_object("b", 2)
    assert list(named) == ["a", "b"]


def _name_of(obj: Json) -> str:
    return str(obj["metadata"]["name"])
