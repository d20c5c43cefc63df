"""Requests that time out and take effect later, and what other schedulers left: nobody loses what they rely on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dray.api.errors import Conflict, ServerTimeout, StatusError, TooManyRequests
from dray.api.meta import Json
from dray.api.resources import NODES, PODS, RESOURCE_CLAIMS
from dray.apiserver.local import LocalClient
from dray.runtime.client import Client, WatchEvent
from dray.scheduler.binding import ADOPTED
from dray.scheduler.scheduler import Scheduler
from dray.testing.builders import make_claim, make_class, make_node, make_pod, make_slice
from tests.integration.world import World


class SlowServer:
    """A client for whom some calls fail while they are still on their way. `arrive` lets them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._on_their_way: list[Callable[[], Awaitable[Any]]] = []
        self.fate: Callable[[str, Json], StatusError | None] = lambda verb, body: None
        """Of a write: how it seems to fail. One that times out is on its way."""
        self.speaks = asyncio.Event()
        """Watches are silent until it is set."""
        self.speaks.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    @asynccontextmanager
    async def watch(self, *arguments: Any, **options: Any) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        async with self._client.watch(*arguments, **options) as events:

            async def heard() -> AsyncIterator[WatchEvent]:
                async for event in events:
                    await self.speaks.wait()
                    yield event

            yield heard()

    async def create(self, *arguments: Any, **options: Any) -> Json:
        return await self._send("create", arguments[1], lambda: self._client.create(*arguments, **options))

    async def patch_steps(self, *arguments: Any) -> Json:
        patch = arguments[2][0].patch
        return await self._send("patch", patch, lambda: self._client.patch_steps(*arguments))

    async def _send(self, verb: str, body: Json, call: Callable[[], Awaitable[Json]]) -> Json:
        error = self.fate(verb, body)
        if error is None:
            return await call()
        if isinstance(error, ServerTimeout):
            self._on_their_way.append(call)
        raise error

    async def arrive(self) -> list[str]:
        """What becomes of them."""
        results = await asyncio.gather(*(call() for call in self._on_their_way), return_exceptions=True)
        self._on_their_way.clear()
        return ["done" if isinstance(result, dict) else type(result).__name__ for result in results]


class Scene:
    """One node with one device, a claim, and a scheduler behind a slow server."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.server = SlowServer(LocalClient(world.registry))

    @classmethod
    async def make(cls) -> Scene:
        world = await World.make()
        await world.create(make_class(), make_node("n1"), make_slice("n1", ["gpu-0"]), make_claim("claim"))
        return cls(world)

    def fail(self, *, binds: list[StatusError] | None = None, releases: list[StatusError] | None = None) -> None:
        """The first requests of these kinds."""

        def fate(verb: str, body: Json) -> StatusError | None:
            status = body.get("status", {})
            is_release = "reservedFor" in status and not status["reservedFor"]
            errors = binds if body.get("kind") == "Binding" else releases if is_release else None
            return errors.pop(0) if errors else None

        self.server.fate = fate

    @asynccontextmanager
    async def scheduling(self) -> AsyncIterator[None]:
        scheduler = Scheduler(self.server, self.world.clock)
        async with self.world.running(scheduler.run(), lambda: scheduler.is_ready):
            yield

    async def pass_time(self, seconds: float) -> None:
        while seconds > 0:
            await self.world.clock.advance(min(seconds, 0.5))
            await self.world.settle_writes()
            seconds -= 0.5

    async def reserve(self) -> None:
        """As another scheduler would."""
        pod = await self.world.get(PODS, "pod")
        user = {"resource": "pods", "name": "pod", "uid": pod["metadata"]["uid"]}
        patch = {"status": {"reservedFor": [user]}}
        await self.world.client.patch(RESOURCE_CLAIMS, "claim", patch, "default", subresource="status")

    async def claim(self) -> Json:
        return await self.world.get(RESOURCE_CLAIMS, "claim")

    async def users(self) -> list[str]:
        return [user["name"] for user in (await self.claim()).get("status", {}).get("reservedFor", ())]

    async def node(self) -> str:
        return str((await self.world.get(PODS, "pod"))["spec"].get("nodeName", ""))


async def test_a_claim_stays_reserved_while_the_binding_may_still_come() -> None:
    scene = await Scene.make()
    binds: list[StatusError] = [ServerTimeout("no answer"), TooManyRequests("busy"), TooManyRequests("busy")]
    scene.fail(binds=binds)
    async with scene.scheduling():
        await scene.world.create(make_pod("pod", claim="claim"))
        await scene.pass_time(0.1)  # the second copy is sent away unread: that says nothing about the first
        assert await scene.users() == ["pod"]
        assert await scene.server.arrive() == ["done"]
        assert await scene.node() == "n1"
        await scene.pass_time(10)
        assert await scene.users() == ["pod"]
        assert not binds


async def test_a_reservation_that_is_yet_to_go_is_not_built_upon() -> None:
    scene = await Scene.make()
    scene.fail(binds=[TooManyRequests("busy")], releases=[ServerTimeout("no answer")])
    async with scene.scheduling():
        await scene.world.create(make_pod("pod", claim="claim"))
        await scene.pass_time(20)
        assert await scene.server.arrive() == ["Conflict"]
        assert await scene.node() == "n1"
        assert await scene.users() == ["pod"]


async def test_who_takes_back_leaves_alone_what_another_scheduler_reserved_meanwhile() -> None:
    scene = await Scene.make()
    scene.fail(binds=[TooManyRequests("busy")], releases=[ServerTimeout("no answer")])
    async with scene.scheduling():
        await scene.world.create(make_pod("pod", claim="claim"))
        await scene.world.settle_writes()
        assert await scene.server.arrive() == ["done"]
        await scene.reserve()
        await scene.pass_time(0.2)  # the release is sent again
        assert await scene.users() == ["pod"]


async def test_a_reservation_that_was_found_is_marked_so_that_nobody_takes_it_back() -> None:
    scene = await Scene.make()
    await scene.world.create(make_pod("pod", claim="claim"))
    await scene.world.allocate("claim", "gpu-0", "pod")
    found = await scene.claim()
    async with scene.scheduling():
        await scene.pass_time(0.5)
        assert await scene.node() == "n1"
    release = {
        "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
        "status": {"reservedFor": None},
    }
    with pytest.raises(Conflict):
        await scene.world.client.patch(RESOURCE_CLAIMS, "claim", release, "default", subresource="status")


async def test_a_write_that_was_found_done_may_be_the_same_one_of_another_scheduler_and_is_marked() -> None:
    scene = await Scene.make()
    writes: list[StatusError] = [ServerTimeout("no answer")]
    scene.server.fate = lambda verb, body: writes.pop() if verb == "patch" and writes else None
    async with scene.scheduling():
        await scene.world.create(make_pod("pod", claim="claim"))
        await scene.world.settle_writes()
        assert await scene.server.arrive() == ["done"]
        assert ADOPTED not in (await scene.claim())["metadata"].get("annotations", {})
        await scene.pass_time(1)
        assert await scene.node() == "n1"
    assert ADOPTED in (await scene.claim())["metadata"]["annotations"]


async def test_a_scheduler_that_has_not_heard_of_the_binding_takes_nothing_back() -> None:
    scene = await Scene.make()
    await scene.world.create(make_pod("pod", claim="claim"))
    await scene.world.allocate("claim", "gpu-0", "pod")
    await scene.world.client.patch(NODES, "n1", {"spec": {"unschedulable": True}})
    await scene.world.create(make_node("n2"), make_slice("n2", ["gpu-0"]))  # it would fit there
    async with scene.scheduling():
        await scene.pass_time(1)
        scene.server.speaks.clear()
        await scene.world.bind("pod", "n1")
        before = await scene.claim()
        await scene.pass_time(30)
        assert await scene.claim() == before


async def test_reservations_of_pods_that_wait_for_each_other_go_after_a_while() -> None:
    scene = await Scene.make()
    world = scene.world
    await world.create(make_pod("pod", claim="claim"), make_pod("other", claim="claim"))
    await world.allocate("claim", "gpu-0", "pod", "other")
    await world.client.patch(NODES, "n1", {"spec": {"unschedulable": True}})
    await world.create(make_node("n2"), make_slice("n2", ["gpu-0"]))
    async with scene.scheduling():
        await scene.pass_time(60)
        assert await scene.node() == "n2"
