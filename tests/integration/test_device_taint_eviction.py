"""Pods leave tainted devices: at once, when their time of toleration is over, or not at all."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from dray.api.meta import Json
from dray.api.pods import view_pod
from dray.api.resources import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.controllers.tainteviction import DeviceTaintEviction
from dray.runtime.decoding import decode_claim, decode_rule, decode_slice
from dray.runtime.informers import Informers
from dray.runtime.queue import Reconcile, WorkQueue
from dray.testing.builders import make_claim, make_pod, make_request, make_slice
from tests.integration.world import World


@pytest.fixture
async def world() -> World:
    return await World.make()


def at_work(world: World) -> AbstractAsyncContextManager[None]:
    def make(informers: Informers, queue: WorkQueue[Any]) -> Reconcile[Any]:
        return DeviceTaintEviction(
            world.client,
            world.clock,
            informers.typed(RESOURCE_CLAIMS, decode_claim),
            informers.typed(RESOURCE_SLICES, decode_slice),
            informers.typed(DEVICE_TAINT_RULES, decode_rule),
            informers.typed(PODS, view_pod),
            world.recorder,
            queue,
        ).reconcile

    return world.controlling(make)


async def start_pod(world: World, *, tolerations: list[Json] | None = None) -> None:
    """Pod `p` on node `n1`, with device `gpu-0` in claim `c`; `gpu-1` is free."""
    request = make_request(tolerations=tolerations) if tolerations else make_request()
    await world.create(make_slice("n1", ["gpu-0", "gpu-1"]), make_claim("c", request), make_pod("p", claim="c"))
    await world.allocate("c", "gpu-0", "p")
    await world.bind("p", "n1")


def make_rule(effect: str = "NoExecute", name: str = "rule", **selector: str) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": selector, "taint": {"key": "broken", "value": "yes", "effect": effect}},
    }


async def is_evicted(world: World) -> bool:
    return "deletionTimestamp" in (await world.get(PODS, "p"))["metadata"]


@pytest.mark.parametrize(
    "selector",
    [
        {"driver": "gpu.example.com"},
        {"driver": "gpu.example.com", "pool": "n1"},
        {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"},
    ],
)
async def test_a_rule_evicts_the_pods_of_the_devices_it_selects(world: World, selector: dict[str, str]) -> None:
    async with at_work(world):
        await start_pod(world)
        await world.settle()
        await world.create(make_rule(**selector))
        await world.settle()
        assert await is_evicted(world)
        conditions = (await world.get(PODS, "p"))["status"]["conditions"]
        (condition,) = [c for c in conditions if c["type"] == "DisruptionTarget"]
        assert condition["reason"] == "DeletionByDeviceTaintManager"
        assert len(await world.events("DeviceTaintManagerEviction")) == 1


@pytest.mark.parametrize(
    "rule",
    [
        make_rule("NoSchedule", driver="gpu.example.com"),
        make_rule("None", driver="gpu.example.com"),
        make_rule(driver="other.example.com"),
        make_rule(driver="gpu.example.com", pool="n1", device="gpu-1"),
    ],
)
async def test_other_rules_leave_it_alone(world: World, rule: Json) -> None:
    async with at_work(world):
        await start_pod(world)
        await world.create(rule)
        await world.advance(1000)
        assert not await is_evicted(world)


async def test_a_taint_of_the_driver_evicts_as_well(world: World) -> None:
    async with at_work(world):
        await start_pod(world)
        device = {"name": "gpu-0", "taints": [{"key": "hot", "effect": "NoExecute"}]}
        patch = {"spec": {"devices": [device, {"name": "gpu-1"}], "pool": {"generation": 2}}}
        await world.client.patch(RESOURCE_SLICES, "n1-gpu.example.com", patch)
        await world.settle()
        assert await is_evicted(world)


async def test_who_tolerates_stays(world: World) -> None:
    async with at_work(world):
        await start_pod(world, tolerations=[{"key": "broken", "operator": "Exists", "effect": "NoExecute"}])
        await world.create(make_rule(driver="gpu.example.com"))
        await world.advance(10_000)
        assert not await is_evicted(world)


async def test_who_tolerates_for_a_time_stays_for_that_time(world: World) -> None:
    toleration = {"key": "broken", "operator": "Equal", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 60}
    async with at_work(world):
        await start_pod(world, tolerations=[toleration])
        await world.create(make_rule(driver="gpu.example.com"))
        await world.settle()
        await world.advance(59)
        assert not await is_evicted(world)
        await world.advance(2)
        assert await is_evicted(world)


async def test_a_taint_that_is_taken_back_in_time_evicts_nobody(world: World) -> None:
    toleration = {"key": "broken", "operator": "Exists", "tolerationSeconds": 60}
    async with at_work(world):
        await start_pod(world, tolerations=[toleration])
        await world.create(make_rule(driver="gpu.example.com"))
        await world.advance(30)
        await world.delete(DEVICE_TAINT_RULES, "rule")
        await world.advance(1000)
        assert not await is_evicted(world)


async def test_the_time_counts_from_the_taint_not_from_our_start(world: World) -> None:
    toleration = {"key": "broken", "operator": "Exists", "tolerationSeconds": 60}
    await start_pod(world, tolerations=[toleration])
    await world.create(make_rule(driver="gpu.example.com"))
    await world.clock.advance(50)
    async with at_work(world):
        assert not await is_evicted(world)
        await world.advance(11)
        assert await is_evicted(world)


async def test_a_pod_that_takes_a_tainted_device_later_is_evicted_too(world: World) -> None:
    async with at_work(world):
        await world.create(make_rule(driver="gpu.example.com"))
        await start_pod(world)
        await world.settle()
        assert await is_evicted(world)
