"""Writes that fail, several schedulers at once: nothing in flight is given twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dray.api.errors import Conflict
from dray.api.meta import Json
from dray.api.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.runtime.client import Client
from dray.scheduler.scheduler import Scheduler, SchedulerOptions
from dray.testing.builders import make_claim, make_class, make_node, make_pod, make_slice
from tests.integration.scheduling import add_node, condition_of, devices_of, node_of, reasons, scheduling, users_of
from tests.integration.world import World


@pytest.fixture
async def world() -> World:
    world = await World.make()
    await world.create(make_class())
    return world


# Writes that fail


class Failing:
    """A client on which the next calls that match fail, before or after they take effect."""

    def __init__(self, client: Client, *, joins_steps: bool = True) -> None:
        self._client = client
        self.joins_steps = joins_steps
        self._plans: list[tuple[str, str, Exception, bool, int]] = []
        self.calls: list[str] = []

    def fail(self, verb: str, subresource: str, error: Exception, *, after: bool = False, times: int = 1) -> None:
        self._plans.append((verb, subresource, error, after, times))

    def __getattr__(self, verb: str) -> Any:
        call = getattr(self._client, verb)
        if verb == "watch":
            return call

        async def attempt(*arguments: Any, **options: Any) -> Any:
            name, subresource = verb, options.get("subresource", "")
            if verb == "patch_steps":
                name, subresource = "patch", arguments[2][-1].subresource
            for number, (wanted, part, error, after, times) in enumerate(self._plans):
                if (wanted, part) == (name, subresource):
                    self._plans[number] = (wanted, part, error, after, times - 1)
                    if times == 1:
                        del self._plans[number]
                    if after:
                        await call(*arguments, **options)
                    raise error
            return await call(*arguments, **options)

        return attempt


@pytest.mark.parametrize("joins_steps", [True, False])
async def test_a_claim_that_cannot_be_written_is_rolled_back_and_tried_again(world: World, joins_steps: bool) -> None:
    await add_node(world, "n1", "gpu-0")
    client = Failing(world.client, joins_steps=joins_steps)
    client.fail("patch", "status", Conflict("somebody was faster"))
    async with scheduling(world, client):  # type: ignore[arg-type]
        await world.create(make_claim("c"), make_pod("p", claim="c"))
        await world.settle()
        assert await node_of(world, "p") is None
        await world.create(make_claim("c2"), make_pod("p2", claim="c2"))
        await world.settle()
        assert await node_of(world, "p2") == "n1"  # the device was free again at once
        await world.delete(PODS, "p2", grace_period_seconds=0)
        patch = {"status": {"allocation": None, "reservedFor": None}}
        await world.client.patch(RESOURCE_CLAIMS, "c2", patch, "default", subresource="status")
        await world.advance(2)
    assert await node_of(world, "p") == "n1"


@pytest.mark.parametrize("joins_steps", [True, False])
@pytest.mark.parametrize("after", [False, True])
async def test_while_a_write_is_in_doubt_its_device_is_not_given_to_others(
    world: World, after: bool, joins_steps: bool
) -> None:
    await add_node(world, "n1", "gpu-0")
    client = Failing(world.client, joins_steps=joins_steps)
    client.fail("patch", "status", ConnectionError("the line went dead"), after=after)
    async with scheduling_with(world, client):
        await world.create(make_claim("c"), make_pod("p", claim="c"))
        await world.settle_writes()
        await world.create(make_claim("c2"), make_pod("p2", claim="c2"))
        await world.settle_writes()
        assert await node_of(world, "p2") is None
        await world.clock.advance(1)
        await world.settle_writes()
    assert await node_of(world, "p") == "n1"
    assert await devices_of(world, "c") == ["gpu-0"]
    assert await devices_of(world, "c2") == []


@asynccontextmanager
async def scheduling_with(world: World, client: Failing) -> AsyncIterator[Scheduler]:
    """For schedulers that are kept waiting by their client."""
    scheduler = Scheduler(client, world.clock)  # type: ignore[arg-type]
    async with world.running(scheduler.run(), lambda: scheduler.is_ready):
        yield scheduler


@pytest.mark.parametrize("after", [False, True])
async def test_a_bind_whose_answer_got_lost_is_followed_up(world: World, after: bool) -> None:
    await add_node(world, "n1", "gpu-0")
    client = Failing(world.client)
    client.fail("create", "binding", ConnectionError("the line went dead"), after=after)
    async with scheduling_with(world, client):
        await world.create(make_claim("c"), make_pod("p", claim="c"))
        await world.settle_writes()
        assert await node_of(world, "p") == ("n1" if after else None)
        assert await users_of(world, "c") == ["p"]
        await world.clock.advance(2)
        await world.settle_writes()
    assert await node_of(world, "p") == "n1"
    assert await users_of(world, "c") == ["p"]
    assert (await reasons(world, "p")).count("Scheduled") == 1


async def test_a_second_pod_goes_on_when_the_decision_about_the_shared_claim_failed(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    client = Failing(world.client)
    client.fail("patch", "status", Conflict("somebody was faster"))
    async with scheduling(world, client):  # type: ignore[arg-type]
        await world.create(make_pod("a", claim="c"), make_pod("b", claim="c"), make_claim("c"))
        await world.settle()
        assert await node_of(world, "b") == "n1"
        await world.advance(2)
    assert await node_of(world, "a") == "n1"


async def test_the_room_of_a_pod_that_somebody_else_bound_is_counted_where_it_is(world: World) -> None:
    small = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    await world.create(make_node("n1", capacity=small), make_node("n2", capacity=small))
    async with scheduling(world):
        await world.create(make_pod("p", requests={"cpu": "1"}, schedulerName="other"))
        await world.bind("p", "n1")
        await world.create(make_pod("q", requests={"cpu": "1"}))
        await world.settle()
        assert await node_of(world, "q") == "n2"
        await world.delete(PODS, "p", grace_period_seconds=0)
        await world.create(make_pod("r", requests={"cpu": "1"}))
        await world.settle()
    assert await node_of(world, "r") == "n1"


async def test_a_rejection_never_overwrites_the_news_of_a_binding(world: World) -> None:
    await add_node(world, "n1")
    async with scheduling(world):
        await world.create(make_claim("c"), make_pod("p", claim="c"))
        await world.create(make_slice("n1", ["gpu-0"]))
        await world.settle()
    assert await node_of(world, "p") == "n1"
    assert (await condition_of(world, "p"))["status"] == "True"


# Several schedulers


class Hesitant:
    """A client that keeps writes of claims back until the test lets them go."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.go = asyncio.Event()
        self.waiting = 0

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._client, verb)

    async def patch_steps(self, *arguments: Any) -> Json:
        if arguments[0] is RESOURCE_CLAIMS:
            self.waiting += 1
            await self.go.wait()
        return await self._client.patch_steps(*arguments)


async def test_of_two_schedulers_that_choose_one_device_the_later_takes_it_back(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    for name in ("one", "two"):
        await world.create(make_claim(f"c-{name}"), make_pod(f"p-{name}", claim=f"c-{name}", schedulerName=name))
    clients = {name: Hesitant(world.client) for name in ("one", "two")}
    async with scheduling_as(world, "one", clients["one"]), scheduling_as(world, "two", clients["two"]):
        assert all(client.waiting for client in clients.values())  # both have decided
        for client in clients.values():
            client.go.set()
            await world.settle_writes()
        for _ in range(20):
            await world.clock.advance(1)
            await world.settle_writes()
            held = await devices_of(world, "c-one") + await devices_of(world, "c-two")
            assert held == ["gpu-0"]
        assert await node_of(world, "p-one") == "n1"
        assert await node_of(world, "p-two") is None
        assert (await world.get(RESOURCE_CLAIMS, "c-two"))["status"] == {}


async def test_two_schedulers_for_the_same_pod_end_with_one_binding(world: World) -> None:
    await add_node(world, "n1", "gpu-0", "gpu-1")
    await world.create(make_claim("c"), make_pod("p", claim="c"))
    clients = [Hesitant(world.client), Hesitant(world.client)]
    name = SchedulerOptions().name
    async with scheduling_as(world, name, clients[0]), scheduling_as(world, name, clients[1]):
        assert all(client.waiting for client in clients)
        for client in reversed(clients):
            client.go.set()
            await world.settle_writes()
        await world.clock.advance(30)
        await world.settle_writes()
    assert await node_of(world, "p") == "n1"
    assert await devices_of(world, "c") == ["gpu-0"]
    assert await users_of(world, "c") == ["p"]


@asynccontextmanager
async def scheduling_as(world: World, name: str, client: Hesitant) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(client, world.clock, SchedulerOptions(name=name))  # type: ignore[arg-type]
    async with world.running(scheduler.run(), lambda: scheduler.is_ready):
        await world.settle_writes()
        yield scheduler


async def test_slices_that_shrink_leave_what_is_in_use_alone(world: World) -> None:
    await add_node(world, "n1", "gpu-0", "gpu-1")
    async with scheduling(world):
        await world.create(make_claim("c"), make_pod("p", claim="c"))
        await world.settle()
        patch = {"spec": {"devices": [{"name": "gpu-1"}], "pool": {"generation": 2}}}
        await world.client.patch(RESOURCE_SLICES, "n1-gpu.example.com", patch)
        await world.create(make_pod("sharer", claim="c"), make_claim("c2"), make_pod("p2", claim="c2"))
        await world.settle()
    assert await node_of(world, "sharer") == "n1"
    assert await devices_of(world, "c") == ["gpu-0"]
    assert await devices_of(world, "c2") == ["gpu-1"]
