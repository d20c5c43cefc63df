"""The scheduler: who is tried when, and what is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from dray.api.claims import CLAIM_FINALIZER
from dray.api.features import parse_feature_gates
from dray.api.resources import NODES, PODS, RESOURCE_CLAIMS
from dray.scheduler.scheduler import Scheduler, SchedulerOptions
from dray.testing.builders import make_claim, make_class, make_device, make_node, make_pod, make_request, make_slice
from tests.integration.scheduling import add_node, condition_of, devices_of, node_of, on, reasons, scheduling, users_of
from tests.integration.world import World


@pytest.fixture
async def world() -> World:
    world = await World.make()
    await world.create(make_class())
    return world


# Placing


async def test_a_pod_gets_devices_a_reservation_and_a_node(world: World) -> None:
    await add_node(world, "n1", "gpu-0", "gpu-1")
    async with scheduling(world):
        await world.create(make_claim("c"), make_pod("p", claim="c"))
        await world.settle()
    claim = await world.get(RESOURCE_CLAIMS, "c")
    assert await node_of(world, "p") == "n1"
    assert await devices_of(world, "c") == ["gpu-0"]
    assert await users_of(world, "c") == ["p"]
    assert claim["metadata"]["finalizers"] == [CLAIM_FINALIZER]
    assert await reasons(world, "p") == ["Scheduled"]


async def test_devices_are_used_up_one_pod_after_the_other_and_never_twice(world: World) -> None:
    await add_node(world, "n1", "a", "b")
    await add_node(world, "n2", "a", "b")
    async with scheduling(world):
        for number in range(6):
            await world.create(make_claim(f"c{number}"), make_pod(f"p{number}", claim=f"c{number}"))
        await world.settle()
    bound = [number for number in range(6) if await node_of(world, f"p{number}")]
    held = [(await node_of(world, f"p{n}"), *await devices_of(world, f"c{n}")) for n in bound]
    assert sorted(held) == [("n1", "a"), ("n1", "b"), ("n2", "a"), ("n2", "b")]  # type: ignore[type-var]


async def test_two_pods_share_a_claim_and_its_node(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    await add_node(world, "n2", "gpu-0")
    async with scheduling(world):
        await world.create(make_claim("shared"), make_pod("a", claim="shared"), make_pod("b", claim="shared"))
        await world.settle()
    assert await node_of(world, "a") == await node_of(world, "b") is not None
    assert sorted(await users_of(world, "shared")) == ["a", "b"]
    assert len(await devices_of(world, "shared")) == 1


async def test_a_claim_that_is_allocated_already_decides_the_node(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    await add_node(world, "n2", "gpu-0")
    async with scheduling(world):
        await world.create(make_claim("shared"), make_pod("first", claim="shared", nodeSelector=on("n2")))
        await world.settle()
        await world.create(make_pod("second", claim="shared"))
        await world.settle()
    assert await node_of(world, "second") == "n2"


async def test_pods_of_other_schedulers_are_left_alone(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    async with scheduling(world):
        await world.create(make_claim("c"), make_pod("p", claim="c", schedulerName="other"))
        await world.settle()
        assert await node_of(world, "p") is None
        assert await devices_of(world, "c") == []
    async with scheduling(world, options=SchedulerOptions(name="other")):
        assert await node_of(world, "p") == "n1"


async def test_pods_without_claims_cause_no_work_on_devices(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    async with scheduling(world) as scheduler:
        await world.create(make_claim("c"), make_pod("with", claim="c"))
        await world.settle()
        statistics = scheduler.state.picture.index.statistics
        before = repr(statistics)
        for number in range(20):
            await world.create(make_pod(f"plain-{number}", requests={"cpu": "100m"}))
        await world.settle()
        assert repr(statistics) == before
    assert all([await node_of(world, f"plain-{number}") == "n1" for number in range(20)])


# Waiting


async def test_a_pod_with_gates_is_not_tried_until_they_are_gone(world: World) -> None:
    await add_node(world, "n1")
    async with scheduling(world) as scheduler:
        await world.create(make_pod("p", schedulingGates=[{"name": "example.com/wait"}]))
        await world.settle()
        assert scheduler.state.queue.counts()["gated"] == 1
        await world.client.patch(PODS, "p", {"spec": {"schedulingGates": []}}, "default")
        await world.settle()
    assert await node_of(world, "p") == "n1"


async def test_a_pod_waits_for_its_claim_and_goes_at_once_when_it_comes(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    async with scheduling(world) as scheduler:
        await world.create(make_pod("p", claim="c"))
        await world.settle()
        assert scheduler.state.queue.plugins() == {"DynamicResources": 1}
        assert scheduler.state.queue.counts()["gated"] == 1
        await world.create(make_claim("c"))
        await world.settle()  # the clock stands still: no timer helps
    assert await node_of(world, "p") == "n1"


async def test_a_pod_whose_claim_is_being_deleted_waits(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    claim = make_claim("c")
    claim["metadata"]["finalizers"] = ["example.com/hold"]
    await world.create(claim)
    await world.delete(RESOURCE_CLAIMS, "c")
    async with scheduling(world) as scheduler:
        await world.create(make_pod("p", claim="c"))
        await world.settle()
        assert scheduler.state.queue.counts()["gated"] == 1


async def test_a_pod_that_does_not_fit_says_why_and_goes_when_a_device_is_freed(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    async with scheduling(world):
        await world.create(make_claim("c1"), make_pod("first", claim="c1"))
        await world.settle()
        await world.create(make_claim("c2"), make_pod("second", claim="c2"))
        await world.settle()
        condition = await condition_of(world, "second")
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        kubernetes_says, *we_say = condition["message"].splitlines()
        assert kubernetes_says == "0/1 nodes are available: 1 cannot allocate all claims."
        assert we_say[0] == "Request gpu needs 1 device of class gpu.example.com, n1 has none free."
        assert "c1" in we_say[1]
        assert await reasons(world, "second") == ["FailedScheduling"]
        await world.delete(PODS, "first", grace_period_seconds=0)
        await world.client.patch(
            RESOURCE_CLAIMS,
            "c1",
            {"status": {"allocation": None, "reservedFor": None}},
            "default",
            subresource="status",
        )
        await world.settle()
    assert await node_of(world, "second") == "n1"
    assert (await condition_of(world, "second"))["status"] == "True"


@pytest.mark.parametrize("event", ["slice", "node", "label", "room"])
async def test_whatever_can_help_wakes_the_pod_at_once(world: World, event: str) -> None:
    if event != "node":
        labels = {} if event == "label" else {"zone": "a"}
        cpu = "1" if event == "room" else "16"
        capacity = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
        await world.create(make_node("n1", labels=labels, capacity=capacity))
    if event != "slice":
        await world.create(make_slice("n1", ["gpu-0"]))
    async with scheduling(world):
        await world.create(make_claim("c"), make_pod("p", claim="c", nodeSelector={"zone": "a"}, requests={"cpu": "2"}))
        await world.settle()
        assert await node_of(world, "p") is None
        match event:
            case "slice":
                await world.create(make_slice("n1", ["gpu-0"]))
            case "node":
                await world.create(make_node("n1", labels={"zone": "a"}))
            case "label":
                await world.client.patch(NODES, "n1", {"metadata": {"labels": {"zone": "a"}}})
            case "room":
                await world.client.patch(NODES, "n1", {"status": {"allocatable": {"cpu": "8"}}}, subresource="status")
        await world.settle()
    assert await node_of(world, "p") == "n1"


async def test_events_that_cannot_help_do_not_wake_anybody(world: World) -> None:
    await add_node(world, "n1", "gpu-0")
    async with scheduling(world) as scheduler:
        await world.create(make_claim("c", make_request(count=2)), make_pod("p", claim="c"))
        await world.settle()

        def attempts() -> float | None:
            return scheduler.registry.get_sample_value("scheduler_schedule_attempts_total", {"result": "unschedulable"})

        before = attempts()
        await world.create(make_claim("unrelated"), make_pod("other", claim="missing"))
        await world.client.patch(NODES, "n1", {"metadata": {"annotations": {"heartbeat": "1"}}})
        await world.settle()
        assert attempts() == before


async def test_the_important_go_first(world: World) -> None:
    await world.create(
        *({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{priority}", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "i"}], "priority": priority,
                     "resourceClaims": [{"name": "gpu", "resourceClaimName": f"c{priority}"}]},
        } for priority in (1, 3, 2))
    )  # fmt: skip
    await world.create(*(make_claim(f"c{priority}") for priority in (1, 2, 3)))
    async with scheduling(world):
        await add_node(world, "n1", "a", "b")
        await world.settle()
    assert [await node_of(world, f"p{priority}") for priority in (1, 2, 3)] == [None, "n1", "n1"]


# Searches that take long


SAME_ROOT = {"cel": {"expression": 'devices.all(d, d.attributes["gpu.example.com"].root == "a")'}}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search that looks at the clock is handed to a thread."""
    monkeypatch.setattr("dray.scheduler.scheduler.QUICK", -1.0)


@pytest.mark.usefixtures("impatient")
async def test_a_long_search_goes_on_beside_everything_else(world: World) -> None:
    await add_node(world, "n1", make_device("gpu-0", root="b"), make_device("gpu-1", root="a"))
    async with scheduling_patiently(world, SchedulerOptions()):
        await world.create(make_claim("c", constraints=[SAME_ROOT]), make_pod("p", claim="c"))
        await wait_for(lambda: node_of(world, "p"))
    assert await devices_of(world, "c") == ["gpu-1"]


@pytest.mark.usefixtures("impatient")
async def test_a_search_that_takes_too_long_ends_with_a_word_about_that(world: World) -> None:
    await add_node(world, "n1", make_device("gpu-0", root="a"))
    async with scheduling_patiently(world, SchedulerOptions(filter_timeout=1e-9)) as scheduler:
        await world.create(make_claim("c", constraints=[SAME_ROOT]), make_pod("p", claim="c"))
        await wait_for(lambda: condition_of(world, "p"))
        assert scheduler.state.queue.plugins() == {"DynamicResources": 1}
    condition = await condition_of(world, "p")
    assert condition["message"] == "0/1 nodes are available: 1 timed out trying to allocate devices."


@pytest.mark.usefixtures("impatient")
async def test_without_a_limit_a_search_takes_its_time(world: World) -> None:
    await add_node(world, "n1", make_device("gpu-0", root="a"))
    gates = parse_feature_gates("DRASchedulerFilterTimeout=false")
    async with scheduling_patiently(world, SchedulerOptions(filter_timeout=1e-9, gates=gates)):
        await world.create(make_claim("c", constraints=[SAME_ROOT]), make_pod("p", claim="c"))
        await wait_for(lambda: node_of(world, "p"))


@asynccontextmanager
async def scheduling_patiently(world: World, options: SchedulerOptions) -> AsyncIterator[Scheduler]:
    """With threads, nobody can say when everything is quiet."""
    scheduler = Scheduler(world.client, world.clock, options)
    async with world.running(scheduler.run(), lambda: scheduler.is_ready):
        yield scheduler


async def wait_for(find: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(20):
        while not await find():  # noqa: ASYNC110 - a thread is at work
            await asyncio.sleep(0.01)


async def test_the_numbers_tell_of_waiting_pods_and_of_constraints(world: World) -> None:
    await add_node(world, "n1", make_device("gpu-0", root="a"))
    async with scheduling(world) as scheduler:
        await world.create(make_claim("c", constraints=[SAME_ROOT]), make_pod("p", claim="c"))
        await world.create(make_claim("d"), make_pod("q", claim="d"))
        await world.create(make_pod("big", requests={"cpu": "100"}))
        await world.settle()

        def value(name: str, **labels: str) -> float | None:
            return scheduler.registry.get_sample_value(name, labels)

        assert value("scheduler_pending_pods", queue="unschedulable") == 2
        assert value("scheduler_unschedulable_pods", plugin="DynamicResources") == 1
        assert value("scheduler_unschedulable_pods", plugin="NodeResourcesFit") == 1
        assert value("scheduler_schedule_attempts_total", result="scheduled") == 1
        assert value("scheduler_claims_allocated_total", constraints="cel") == 1
        assert value("cel_expression_constraint_cost_count") == 1
        assert (value("cel_expression_constraint_evaluations_total") or 0) >= 1
