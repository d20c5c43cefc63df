"""kill -9 of API server, controllers and scheduler under load: everything settles, and nothing is given twice."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path

import pytest

from dray.api.errors import StatusError
from dray.api.resources import PODS
from dray.runtime.http_client import HttpClient
from dray.testing.builders import make_class, make_node, make_pod, make_slice, make_template
from tests.e2e.control_planes import (
    ApiServerProcess,
    Process,
    connect,
    make_controllers,
    make_scheduler,
    running,
    serving,
    wait_until,
    wait_until_true,
)
from tests.integration.invariants import find_double_use, find_violations, take_snapshot
from tests.integration.world import BY_KIND

SEEDS = 20
KILLS = 4
NODES = 4
DEVICES = 4
SETTLE_SECONDS = 120.0


class Load:
    """Users who start pods and end them, as long as the server lets them."""

    def __init__(self, client: HttpClient, seed: int) -> None:
        self._client = client
        self._random = random.Random(seed)
        self._names: list[str] = []
        self._count = 0

    async def build(self) -> None:
        for obj in (
            make_class(),
            make_template("one"),
            *(make_node(f"n{n}") for n in range(NODES)),
            *(make_slice(f"n{n}", [f"gpu-{d}" for d in range(DEVICES)]) for n in range(NODES)),
        ):
            await self._client.create(BY_KIND[obj["kind"]], obj, obj["metadata"].get("namespace", ""))

    async def run(self) -> None:
        while True:
            with contextlib.suppress(StatusError):  # the server is away now and then
                await self._act()
            await asyncio.sleep(self._random.random() * 0.05)

    async def _act(self) -> None:
        if len(self._names) < 24 and self._random.random() < 0.6:
            self._count += 1
            name = f"p{self._count}"
            await self._client.create(PODS, make_pod(name, template="one"), "default")
            self._names.append(name)
        elif self._names:
            name = self._names.pop(self._random.randrange(len(self._names)))
            await self._client.delete(PODS, name, "default", grace_period_seconds=0)


async def kill_now_and_then(
    server: ApiServerProcess, components: list[Process], kills: int, rng: random.Random
) -> None:
    for _ in range(kills):
        await asyncio.sleep(0.5 + rng.random())  # under load
        victim = rng.choice([server.process, *components])
        await victim.kill()
        if victim is server.process:
            await server.start()
        else:
            await victim.start()


async def settles(client: HttpClient, last: dict[str, list[str]]) -> bool:
    try:
        before = await take_snapshot(client)
        await asyncio.sleep(0.5)
        after = await take_snapshot(client)
    except StatusError as error:
        last["problems"] = [str(error)]
        return False
    assert find_double_use(after) == []
    last["problems"] = find_violations(after)
    return not last["problems"] and before.pods == after.pods and before.claims == after.claims


async def play(tmp_path: Path, seed: int, kills: int) -> None:
    rng = random.Random(seed)
    async with serving(tmp_path) as server:
        components = [
            make_controllers(
                server.component_kubeconfig("controllers"), tmp_path / "controllers.log", "--no-leader-elect"
            ),
            make_scheduler(server.component_kubeconfig("scheduler"), tmp_path / "scheduler.log", "--no-leader-elect"),
        ]
        async with running(*components), connect(server.kubeconfig) as client:
            load = Load(client, seed)
            await load.build()
            users = asyncio.create_task(load.run())
            try:
                await wait_until_true(lambda: has_bound_pods(client), "the first pods are bound")
                await kill_now_and_then(server, components, kills, rng)
            finally:
                users.cancel()
                await asyncio.gather(users, return_exceptions=True)
            last: dict[str, list[str]] = {}
            try:
                await wait_until_true(lambda: settles(client, last), "everything settles", SETTLE_SECONDS)
            except AssertionError as error:
                logs = [f"{part.name}:\n{part.log.read_text()[-3000:]}" for part in (server.process, *components)]
                raise AssertionError("\n".join((f"{error}: {last}", *logs))) from None


async def has_bound_pods(client: HttpClient) -> bool:
    pods = (await client.list(PODS))["items"]
    return sum("nodeName" in pod["spec"] for pod in pods) >= 4


async def test_a_control_plane_survives_the_death_of_its_parts(tmp_path: Path) -> None:
    await play(tmp_path, seed=0, kills=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, SEEDS))
async def test_a_control_plane_survives_more_deaths(tmp_path: Path, seed: int) -> None:
    await play(tmp_path, seed, KILLS)


@pytest.mark.slow
async def test_when_the_leading_scheduler_is_killed_another_takes_over(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        controllers = make_controllers(server.component_kubeconfig("controllers"), tmp_path / "controllers.log")
        schedulers = [
            make_scheduler(server.component_kubeconfig("scheduler"), tmp_path / f"scheduler-{number}.log")
            for number in range(2)
        ]
        async with running(controllers, *schedulers), connect(server.kubeconfig) as client:
            await Load(client, 0).build()
            await client.create(PODS, make_pod("first", template="one"), "default")
            await wait_until_true(lambda: is_bound(client, "first"), "the leader schedules")
            leader = next(scheduler for scheduler in schedulers if "leads with lease" in scheduler.log.read_text())
            await leader.kill()
            await client.create(PODS, make_pod("second", template="one"), "default")
            await wait_until_true(lambda: is_bound(client, "second"), "the other one took over")
            await leader.start()
            await wait_until(lambda: leader.log.read_text().count("metrics and health") == 2, "it stands by")


async def is_bound(client: HttpClient, name: str) -> bool:
    return "nodeName" in (await client.get(PODS, name, "default"))["spec"]
