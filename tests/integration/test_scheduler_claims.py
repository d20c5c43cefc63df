"""Claims in the way of a pod, and devices that must become ready."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dray.api.meta import Json
from dray.api.resources import PODS, RESOURCE_CLAIMS
from dray.scheduler.scheduler import Scheduler, SchedulerOptions
from dray.testing.builders import make_claim, make_class, make_device, make_pod
from tests.integration.scheduling import add_node, condition_of, devices_of, node_of, on, scheduling, users_of
from tests.integration.world import World


@pytest.fixture
async def world() -> World:
    world = await World.make()
    await world.create(make_class())
    return world


# Claims in the way


async def test_an_allocated_claim_that_nobody_uses_is_freed_when_it_stands_in_the_way(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    await add_node(world, "n2", "gpu-0")
    async with scheduling(world):
        await world.create(make_claim("c"), make_pod("first", claim="c", nodeSelector=on("n1")))
        await world.settle()
        patch = {"status": {"reservedFor": None}}
        await world.delete(PODS, "first", grace_period_seconds=0)
        await world.client.patch(RESOURCE_CLAIMS, "c", patch, "default", subresource="status")
        await world.create(make_pod("second", claim="c", nodeSelector=on("n2")))
        await world.settle()
    assert await node_of(world, "second") == "n2"


async def test_a_claim_that_is_in_use_is_not_freed(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    await add_node(world, "n2", "gpu-0")
    async with scheduling(world):
        await world.create(make_claim("c"), make_pod("first", claim="c", nodeSelector=on("n1")))
        await world.settle()
        await world.create(make_pod("second", claim="c", nodeSelector=on("n2")))
        await world.advance(100)
    assert await node_of(world, "second") is None
    assert await users_of(world, "c") == ["first"]
    assert (await condition_of(world, "second"))["reason"] == "Unschedulable"


async def test_what_a_killed_scheduler_left_reserved_for_the_pod_itself_is_freed_after_a_while(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    await world.create(make_claim("c"), make_pod("p", claim="c"))
    await world.allocate("c", "gpu-0", "p", node="gone")
    async with scheduling(world):
        await world.advance(5)
        assert await node_of(world, "p") is None  # another scheduler could be about to bind it
        for _ in range(5):
            await world.advance(5)
    assert await node_of(world, "p") == "n1"
    assert await devices_of(world, "c") == ["gpu-0"]


# Devices that must become ready


def make_slow_device(name: str) -> Json:
    return make_device(name) | {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}


async def report(world: World, claim: str, condition: str) -> None:
    result = (await world.get(RESOURCE_CLAIMS, claim))["status"]["allocation"]["devices"]["results"][0]
    device = {key: result[key] for key in ("driver", "pool", "device")}
    device["conditions"] = [
        {
            "type": condition,
            "status": "True",
            "reason": "Because",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]
    await world.client.patch(RESOURCE_CLAIMS, claim, {"status": {"devices": [device]}}, "default", subresource="status")


async def test_a_pod_is_bound_when_its_device_is_ready(world: World) -> None:
    await add_node(world, "n1", make_slow_device("gpu-0"))
    async with scheduling(world):
        await world.create(make_claim("c"), make_pod("p", claim="c"))
        await world.settle_writes()
        assert await devices_of(world, "c") == ["gpu-0"]
        assert await node_of(world, "p") is None
        await report(world, "c", "Attached")
        await world.settle()
    assert await node_of(world, "p") == "n1"


async def test_a_device_that_fails_is_given_up_for_another(world: World) -> None:
    await add_node(world, "n1", make_slow_device("gpu-0"), make_slow_device("gpu-1"))
    async with scheduling(world):
        await world.create(make_claim("c"), make_pod("p", claim="c"))
        await world.settle_writes()
        await report(world, "c", "Broken")
        await world.settle()
        claim = await world.get(RESOURCE_CLAIMS, "c")
        assert claim["status"] == {}
        await world.clock.advance(2)
        await world.settle_writes()
        assert await devices_of(world, "c") == ["gpu-0"]
        await report(world, "c", "Attached")
        await world.settle()
    assert await node_of(world, "p") == "n1"


async def test_a_device_that_does_not_answer_in_time_is_given_up(world: World) -> None:
    await add_node(world, "n1", make_slow_device("gpu-0"))
    async with scheduling(world, options=SchedulerOptions(binding_timeout=60)):
        await world.create(make_claim("c"), make_pod("p", claim="c"))
        await world.settle_writes()
        await world.clock.advance(59)
        assert await devices_of(world, "c") == ["gpu-0"]
        await world.clock.advance(1.5)
        await world.settle()
        assert (await world.get(RESOURCE_CLAIMS, "c"))["status"] == {}


async def test_after_a_restart_the_wait_for_devices_goes_on(world: World) -> None:
    await add_node(world, "n1", make_slow_device("gpu-0"))
    async with scheduling(world):
        await world.create(make_claim("c"), make_pod("p", claim="c"))
        await world.settle_writes()
    async with scheduling_without_rest(world):
        await world.settle_writes()
        assert await node_of(world, "p") is None
        await report(world, "c", "Attached")
        await world.settle_writes()
    assert await node_of(world, "p") == "n1"


@asynccontextmanager
async def scheduling_without_rest(world: World) -> AsyncIterator[Scheduler]:
    """For a scheduler that has something to wait for right at the start."""
    scheduler = Scheduler(world.client, world.clock)
    async with world.running(scheduler.run(), lambda: True):
        yield scheduler
