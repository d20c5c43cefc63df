"""The scheduler: who is tried when, what is written, and that nothing in flight is given twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dray.api.claims import CLAIM_FINALIZER
from dray.api.errors import Conflict
from dray.api.features import parse_feature_gates
from dray.api.meta import Json
from dray.api.resources import EVENTS, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.runtime.client import Client
from dray.scheduler.scheduler import Scheduler, SchedulerOptions
from dray.testing.builders import make_claim, make_class, make_device, make_node, make_pod, make_request, make_slice
from tests.integration.world import World


@pytest.fixture
async def world() -> World:
    world = await World.make()
    await world.create(make_class())
    return world


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


def on(node: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": node}


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
