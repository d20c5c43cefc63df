"""A scheduler at work in a world, and what became of pods and claims."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dray.api.meta import Json
from dray.api.resources import EVENTS, PODS, RESOURCE_CLAIMS
from dray.runtime.client import Client
from dray.scheduler.scheduler import Scheduler, SchedulerOptions
from dray.testing.builders import make_node, make_slice
from tests.integration.world import World


@asynccontextmanager
async def scheduling(
    world: World, client: Client | None = None, options: SchedulerOptions | None = None
) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(client or world.client, world.clock, options)
    # Pods that back off don't count: they wait for the test's clock.
    async with world.running(scheduler.run(), lambda: scheduler.is_ready and not scheduler.is_working):
        yield scheduler


async def add_node(world: World, name: str, *devices: str | Json) -> None:
    await world.create(make_node(name))
    if devices:
        await world.create(make_slice(name, devices))


async def node_of(world: World, pod: str) -> str | None:
    found: str | None = (await world.get(PODS, pod))["spec"].get("nodeName")
    return found


async def devices_of(world: World, claim: str) -> list[str]:
    allocation = (await world.get(RESOURCE_CLAIMS, claim)).get("status", {}).get("allocation")
    return [result["device"] for result in allocation["devices"]["results"]] if allocation else []


async def users_of(world: World, claim: str) -> list[str]:
    status = (await world.get(RESOURCE_CLAIMS, claim)).get("status", {})
    return [user["name"] for user in status.get("reservedFor", [])]


async def condition_of(world: World, pod: str) -> Json:
    conditions = (await world.get(PODS, pod)).get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == "PodScheduled"), {})


async def reasons(world: World, pod: str) -> list[str]:
    return [e["reason"] for e in await world.all(EVENTS) if e["involvedObject"]["name"] == pod]


def on(node: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": node}
