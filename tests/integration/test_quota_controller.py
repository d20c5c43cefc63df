"""The count of what a quota limits, and how it goes together with the server's own bookkeeping."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.errors import Forbidden
from dray.api.meta import Json
from dray.api.resources import RESOURCE_CLAIMS, RESOURCE_QUOTAS
from dray.controllers.quotas import RECOUNT, QuotaController
from dray.runtime.informers import Informers
from dray.runtime.queue import Reconcile, WorkQueue
from dray.testing.builders import make_claim, make_pod
from tests.integration.world import World

COUNT = "count/resourceclaims.resource.k8s.io"
DEVICES = "gpu.example.com.deviceclass.resource.k8s.io/devices"


@pytest.fixture
async def world() -> World:
    return await World.make()


def at_work(world: World) -> Any:
    def make(informers: Informers, queue: WorkQueue[Any]) -> Reconcile[Any]:
        return QuotaController(world.client, world.clock, informers.of(RESOURCE_QUOTAS), queue).reconcile

    return world.controlling(make)


def make_quota(hard: dict[str, str]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": hard},
    }


async def status(world: World) -> Json:
    found: Json = (await world.get(RESOURCE_QUOTAS, "q"))["status"]
    return found


async def test_a_new_quota_counts_what_is_there(world: World) -> None:
    await world.create(make_claim("a"), make_claim("b"), make_pod("p"))
    quota = make_quota({COUNT: "5", DEVICES: "8", "pods": "3", "configmaps": "9"})
    async with at_work(world):
        await world.create(quota)
        await world.settle()
    assert (await status(world))["used"] == {COUNT: "2", DEVICES: "2", "pods": "1", "configmaps": "1"}


async def test_once_counted_the_quota_holds(world: World) -> None:
    quota = make_quota({COUNT: "2"})
    await world.create(make_claim("a"))
    async with at_work(world):
        await world.create(quota)
        await world.settle()
        await world.create(make_claim("b"))
        with pytest.raises(Forbidden, match="exceeded quota: q"):
            await world.create(make_claim("c"))
        await world.delete(RESOURCE_CLAIMS, "a")
        await world.create(make_claim("c"))
        await world.settle()
    assert (await status(world))["used"] == {COUNT: "2"}


async def test_new_limits_are_counted_anew(world: World) -> None:
    quota = make_quota({COUNT: "2"})
    await world.create(make_claim("a"))
    async with at_work(world):
        await world.create(quota)
        await world.settle()
        hard = {"spec": {"hard": {COUNT: "7", DEVICES: "9"}}}
        await world.client.patch(RESOURCE_QUOTAS, "q", hard, "default")
        await world.settle()
    assert await status(world) == {"hard": {COUNT: "7", DEVICES: "9"}, "used": {COUNT: "1", DEVICES: "1"}}


async def test_a_wrong_total_is_put_right_in_time(world: World) -> None:
    quota = make_quota({COUNT: "2"})
    async with at_work(world):
        await world.create(quota)
        await world.settle()
        await world.advance(5)
        wrong = {"status": {"hard": {COUNT: "2"}, "used": {COUNT: "2"}}}
        await world.client.patch(RESOURCE_QUOTAS, "q", wrong, "default", subresource="status")
        await world.advance(RECOUNT)
        await world.settle()
    assert (await status(world))["used"] == {COUNT: "0"}
