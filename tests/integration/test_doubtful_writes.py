"""A scheduler whose requests time out, and take effect later: what it wrote before is not taken back too soon."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from dray.api.errors import ServerTimeout, StatusError, TooManyRequests
from dray.api.meta import Json
from dray.api.resources import PODS, RESOURCE_CLAIMS
from dray.apiserver.local import LocalClient
from dray.runtime.client import Client
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

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

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


async def build(world: World) -> None:
    await world.create(make_class(), make_node("n1"), make_slice("n1", ["gpu-0"]), make_claim("claim"))


async def users_of(world: World, claim: str) -> list[str]:
    status = (await world.get(RESOURCE_CLAIMS, claim)).get("status", {})
    return [user["name"] for user in status.get("reservedFor", ())]


async def node_of(world: World, pod: str) -> str:
    return str((await world.get(PODS, pod))["spec"].get("nodeName", ""))


async def test_a_claim_stays_reserved_while_the_binding_may_still_come() -> None:
    world = await World.make()
    await build(world)
    server = SlowServer(LocalClient(world.registry))
    answers: list[StatusError] = [ServerTimeout("no answer"), TooManyRequests("busy"), TooManyRequests("busy")]
    server.fate = lambda verb, body: answers.pop(0) if body.get("kind") == "Binding" and answers else None
    scheduler = Scheduler(server, world.clock)
    async with world.running(scheduler.run(), lambda: scheduler.is_ready):
        await world.create(make_pod("pod", claim="claim"))
        await world.settle_writes()
        await world.clock.advance(0.1)  # the second copy is sent away unread: that says nothing about the first
        await world.settle_writes()
        assert await users_of(world, "claim") == ["pod"]
        assert await server.arrive() == ["done"]
        assert await node_of(world, "pod") == "n1"
        await world.clock.advance(10)
        await world.settle()
        assert await users_of(world, "claim") == ["pod"]
        assert not answers


async def test_a_reservation_that_is_yet_to_go_is_not_built_upon() -> None:
    world = await World.make()
    await build(world)
    server = SlowServer(LocalClient(world.registry))
    binds: list[StatusError] = [TooManyRequests("busy")]
    releases: list[StatusError] = [ServerTimeout("no answer")]

    def fate(verb: str, body: Json) -> StatusError | None:
        if body.get("kind") == "Binding":
            return binds.pop(0) if binds else None
        is_release = "reservedFor" in body.get("status", {}) and not body["status"]["reservedFor"]
        return releases.pop(0) if is_release and releases else None

    server.fate = fate
    scheduler = Scheduler(server, world.clock)
    async with world.running(scheduler.run(), lambda: scheduler.is_ready):
        await world.create(make_pod("pod", claim="claim"))
        await world.settle_writes()
        assert not binds
        assert not releases
        for _ in range(40):
            await world.clock.advance(0.5)
            await world.settle_writes()
        await server.arrive()
        assert await node_of(world, "pod") == "n1"
        assert await users_of(world, "claim") == ["pod"]
