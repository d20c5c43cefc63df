"""kill -9 of API server, controllers and scheduler under load: everything settles, and nothing is given twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from pathlib import Path
from typing import NamedTuple

import pytest

from dray.api.errors import AlreadyExists, StatusError
from dray.api.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.runtime.http_client import HttpClient
from dray.testing.builders import make_claim, make_class, make_node, make_pod, make_slice, make_template
from tests.e2e.control_planes import (
    ApiServerProcess,
    Process,
    connect,
    make_controllers,
    make_scheduler,
    running,
    serving,
    wait_until_true,
)
from tests.integration.history import History, describe
from tests.integration.invariants import Snapshot, find_violations, take_snapshot
from tests.integration.world import BY_KIND

SEEDS = 20
KILLS = 6
NODES = 4
DEVICES = 4
SETTLE_SECONDS = 120.0


class Situation(NamedTuple):
    """Who is killed, how many schedulers there are, and what else happens."""

    victims: tuple[str, ...] = ("apiserver", "controllers", "scheduler")
    schedulers: int = 1
    devices_change: bool = False


SITUATIONS = {
    "anybody is killed": Situation(),
    "the API server is killed": Situation(("apiserver",)),
    "the controllers are killed": Situation(("controllers",)),
    "the scheduler is killed": Situation(("scheduler",)),
    "one of two schedulers is killed": Situation(("scheduler-0", "scheduler-1"), schedulers=2),
    "anybody is killed while slices shrink": Situation(
        ("apiserver", "controllers", "scheduler-0", "scheduler-1"), schedulers=2, devices_change=True
    ),
}
CASES = [
    pytest.param(name, seed, marks=() if (name, seed) == ("anybody is killed", 0) else pytest.mark.slow)
    for name in SITUATIONS
    for seed in range(SEEDS)
]


class Load:
    """Users who start pods and end them, and drivers that change their minds, as long as the server lets them."""

    def __init__(self, client: HttpClient, seed: int, *, devices_change: bool = False) -> None:
        self._client = client
        self._random = random.Random(seed)
        self._devices_change = devices_change
        self._generation = 1
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
        if self._devices_change and self._random.random() < 0.2:
            await self._change_devices()
        elif len(self._names) < 24 and self._random.random() < 0.6:
            self._count += 1
            name = f"p{self._count}"
            await self._client.create(PODS, make_pod(name, template="one"), "default")
            self._names.append(name)
        elif self._names:
            name = self._names.pop(self._random.randrange(len(self._names)))
            await self._client.delete(PODS, name, "default", grace_period_seconds=0)

    async def _change_devices(self) -> None:
        self._generation += 1
        count = self._random.randrange(1, DEVICES + 1)
        devices = [{"name": f"gpu-{d}"} for d in sorted(self._random.sample(range(DEVICES), count))]
        patch = {"spec": {"devices": devices, "pool": {"generation": self._generation}}}
        await self._client.patch(RESOURCE_SLICES, f"n{self._random.randrange(NODES)}-gpu.example.com", patch)


class Battle:
    """One control plane under load, some of whose processes are killed and started again."""

    def __init__(self, server: ApiServerProcess, client: HttpClient, situation: Situation, seed: int) -> None:
        self._server = server
        self._client = client
        self._situation = situation
        self._random = random.Random(seed)
        self._load = Load(client, seed, devices_change=situation.devices_change)
        self._history = History()
        self._looks: list[Snapshot] = []
        self._problems: list[str] = []
        folder = server.folder.parent
        names = ["scheduler"] if situation.schedulers == 1 else [f"scheduler-{n}" for n in range(situation.schedulers)]
        kubeconfig = server.component_kubeconfig("scheduler")
        self.components = [
            make_controllers(
                server.component_kubeconfig("controllers"), folder / "controllers.log", "--no-leader-elect"
            ),
            *(make_scheduler(kubeconfig, folder / f"{name}.log", "--no-leader-elect", name=name) for name in names),
        ]

    async def fight(self, kills: int) -> None:
        """Whatever fails, tells what there is."""
        try:
            async with self._history.recording(self._client):
                await self._load.build()
                await self._kill_under_load(kills)
                for process in (self._server, *self.components):
                    await process.wait_ready()
                await wait_until_true(self._is_settled, "everything settles", SETTLE_SECONDS)
                await wait_until_true(self._is_all_recorded, "the last changes are recorded")
            lapses = self._history.find_lapses()
            assert lapses == [], self._history.format(*lapses)
        except (AssertionError, StatusError) as error:
            raise AssertionError(self._report(error)) from error

    async def _kill_under_load(self, kills: int) -> None:
        users = asyncio.create_task(self._load.run())
        try:
            await wait_until_true(self._has_bound_pods, "the first pods are bound")
            everybody = {process.name: process for process in (self._server, *self.components)}
            for _ in range(kills):
                await asyncio.sleep(0.2 + 1.5 * self._random.random())  # under load
                victim = everybody[self._random.choice(self._situation.victims)]
                await victim.kill()  # it may not be up again from last time
                await victim.start()
        finally:
            users.cancel()
            ended = await asyncio.gather(users, return_exceptions=True)
        assert isinstance(ended[0], asyncio.CancelledError), ended

    async def _has_bound_pods(self) -> bool:
        pods = (await self._client.list(PODS))["items"]
        return sum("nodeName" in pod["spec"] for pod in pods) >= 4

    async def _is_settled(self) -> bool:
        """Nothing is wrong, and nothing changes for a while."""
        self._looks = [*self._looks[-1:], await take_snapshot(self._client)]
        before, after = self._looks[0], self._looks[-1]
        self._problems = find_violations(after, devices_changed=self._situation.devices_change)
        is_quiet = len(self._looks) == 2 and before.pods == after.pods and before.claims == after.claims
        if not is_quiet or self._problems:
            await asyncio.sleep(0.5)
        return is_quiet and not self._problems

    async def _is_all_recorded(self) -> bool:
        """Who sees these has seen everything before."""
        for resource, obj in ((PODS, make_pod("end", schedulerName="nobody")), (RESOURCE_CLAIMS, make_claim("end"))):
            with contextlib.suppress(AlreadyExists):
                await self._client.create(resource, obj, "default")
        return all(self._history.has_seen(resource, "end") for resource in (PODS, RESOURCE_CLAIMS))

    def _report(self, error: Exception) -> str:
        parts = [str(error), "--- problems at the last look:", *self._problems]
        if self._looks:
            last = self._looks[-1]
            folder = self._server.folder.parent
            (folder / "objects.json").write_text(json.dumps(last._asdict(), indent=1))
            (folder / "history.txt").write_text(self._history.format())
            parts += [f"--- objects, in full in {folder}:"]
            parts += [describe(obj["metadata"]["name"], obj) for obj in (*last.pods, *last.claims)]
            parts += ["--- how it came:", self._history.format(*self._problems) if self._problems else "see there"]
        return "\n".join([*parts, *(process.describe() for process in (self._server, *self.components))])


@pytest.mark.parametrize(("situation", "seed"), CASES)
async def test_a_control_plane_survives_the_death_of_its_parts(tmp_path: Path, situation: str, seed: int) -> None:
    async with serving(tmp_path) as server, connect(server.kubeconfig) as client:
        battle = Battle(server, client, SITUATIONS[situation], seed)
        async with running(*battle.components):
            await battle.fight(KILLS)


@pytest.mark.slow
async def test_when_the_leading_scheduler_is_killed_another_takes_over(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, connect(server.kubeconfig) as client:
        kubeconfig = server.component_kubeconfig("scheduler")
        schedulers = [make_scheduler(kubeconfig, tmp_path / f"scheduler-{number}.log") for number in range(2)]
        controllers = make_controllers(server.component_kubeconfig("controllers"), tmp_path / "controllers.log")
        async with running(controllers, *schedulers):
            await Load(client, 0).build()
            await expect_bound(client, "first", [controllers, *schedulers])
            (leader,) = (scheduler for scheduler in schedulers if leads(scheduler))
            await leader.kill()
            await expect_bound(client, "second", [controllers, *schedulers])
            (successor,) = (scheduler for scheduler in schedulers if scheduler is not leader)
            assert leads(successor)
            await leader.start()
            await leader.wait_ready()
            await expect_bound(client, "third", [controllers, *schedulers])
            assert not leads(leader), "the lease is not for the taking"


def leads(component: Process) -> bool:
    return "leads with lease" in component.output


async def expect_bound(client: HttpClient, name: str, components: list[Process]) -> None:
    async def is_bound() -> bool:
        return "nodeName" in (await client.get(PODS, name, "default"))["spec"]

    await client.create(PODS, make_pod(name, template="one"), "default")
    await wait_until_true(
        is_bound, f"pod {name} is bound", on_failure=lambda: "\n".join(part.describe() for part in components)
    )
