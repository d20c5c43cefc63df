"""Drivers and node agents as processes of their own, killed with -9 in the middle of their work."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from dray.api.resources import DEVICE_CLASSES, EVENTS, PODS, RESOURCE_SLICES
from dray.cluster.local import ClusterOptions, LocalCluster
from dray.cluster.models import Model, alike, make_class
from dray.node.leftovers import end_all_containers
from dray.testing.waiting import eventually
from tests.e2e.slow_driver import NAME
from tests.integration.clusters import add_pod, read_log, wait_gone, wait_phase

NO_DEVICES = Model("none", "no devices", alike())
NO_NODES = Model("none", "no nodes", alike(), default_nodes=0)


class Killable:
    """A process that the test starts, kills and starts again."""

    def __init__(self, *arguments: str, log: Path, **env: str) -> None:
        self._arguments = arguments
        self._log = log
        self._env = {**os.environ, **env}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", *self._arguments), env=self._env, stdout=log, stderr=log
            )

    async def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
            await self._process.wait()
            self._process = None


class World:
    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.root = folder / "nodes" / "node-1"
        self.root.mkdir(parents=True, exist_ok=True)
        self.driver = Killable(
            *("tests.e2e.slow_driver", "--node-name", "node-1", "--root", str(self.root)),
            *("--kubeconfig", str(cluster.kubeconfig)),
            log=folder / "driver.log",
            DIARY=str(folder),
        )
        kubeconfigs = cluster.server.write_kubeconfigs(("node-1",)).parent / "kubeconfigs"
        self.agent = Killable(
            *("dray", "node", "node-1", "--root", str(self.root)),
            *("--kubeconfig", str(kubeconfigs / "node-node-1.kubeconfig")),
            log=folder / "agent.log",
        )

    @property
    def diary(self) -> list[str]:
        file = self.folder / "diary"
        return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def prepared(self) -> list[str]:
        return os.listdir(self.folder / "prepared")

    async def wait_published(self) -> None:
        async def published() -> bool:
            return bool((await self.cluster.client.list(RESOURCE_SLICES))["items"])

        await eventually(published, "the driver's devices are published", seconds=30)

    async def wait_event(self, text: str) -> None:
        async def recorded() -> bool:
            events = await self.cluster.client.list(EVENTS)
            return any(text in event["message"] for event in events["items"])

        await eventually(recorded, f"an event says {text!r}", seconds=30)


@asynccontextmanager
async def world(model: Model) -> AsyncIterator[World]:
    folder = Path(tempfile.mkdtemp(prefix="dray-"))
    try:
        async with LocalCluster(ClusterOptions(folder, model, memory=True, nodes=model.default_nodes and 1)) as cluster:
            await cluster.client.create(DEVICE_CLASSES, make_class(NAME))
            here = World(cluster, folder)
            try:
                yield here
            finally:
                await here.driver.kill()
                await here.agent.kill()
                await end_all_containers(here.root / "pods", 0.5)
    finally:
        shutil.rmtree(folder)


async def test_a_driver_killed_in_the_middle_of_prepare_starts_over_when_it_is_back() -> None:
    async with world(NO_DEVICES) as here:
        await here.driver.start()
        await here.wait_published()
        (here.folder / "hold").touch()
        await add_pod(here.cluster, "pod", NAME, command="echo $DEVICE; exec sleep 1000")
        await eventually(lambda: here.diary == ["prepare"], "prepare is under way", seconds=30)
        await here.driver.kill()
        await here.wait_event("Failed to prepare dynamic resources")
        (here.folder / "hold").unlink()
        await here.driver.start()
        pod = await wait_phase(here.cluster, "pod", "Running")
        await eventually(lambda: read_log(here.cluster, pod) == "device-0\n", "the container says its device")
        assert here.diary == ["prepare", "unprepare", "prepare", "prepared"]
        await here.cluster.client.delete(PODS, "pod", "default")
        await wait_gone(here.cluster, "pod")
        assert here.diary[4:] == ["unprepare"]
        assert here.prepared == []
        assert not list((here.root / "cdi").glob("*.json"))


async def test_a_driver_killed_while_a_pod_uses_its_device_is_needed_to_let_the_pod_go() -> None:
    async with world(NO_DEVICES) as here:
        await here.driver.start()
        await here.wait_published()
        await add_pod(here.cluster, "pod", NAME)
        await wait_phase(here.cluster, "pod", "Running")
        await here.driver.kill()
        await here.cluster.client.delete(PODS, "pod", "default")
        await here.wait_event("Failed to unprepare dynamic resources")
        await here.driver.start()
        await wait_gone(here.cluster, "pod")
        assert here.diary == ["prepare", "prepared", "unprepare"]
        assert here.prepared == []


async def kill_agents(here: World, rounds: int, seed: int) -> None:
    """In every round a pod comes and goes, and the agent is killed somewhere on the way, twice."""
    chance = random.Random(seed)
    await here.agent.start()
    await here.driver.start()
    for number in range(rounds):
        await here.wait_published()
        name, pids = f"pod-{number}", here.folder / f"pids-{number}"
        await add_pod(here.cluster, name, NAME, command=f"echo $$$$ >> {pids}; sleep 0.2; exit 3")
        await asyncio.sleep(chance.uniform(0, 0.8))
        await here.agent.kill()
        await here.agent.start()
        done = await wait_phase(here.cluster, name, "Failed")
        assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
        await here.cluster.client.delete(PODS, name, "default")
        await asyncio.sleep(chance.uniform(0, 0.3))
        await here.agent.kill()
        await here.agent.start()
        await wait_gone(here.cluster, name)
        assert len(pids.read_text().split()) == 1, "the container ran more than once"
        assert here.prepared == []
        assert here.diary.count("prepare") == here.diary.count("prepared") == here.diary.count("unprepare")


async def test_an_agent_killed_at_a_random_point_leaves_nothing_undone() -> None:
    async with world(NO_NODES) as here:
        await kill_agents(here, rounds=1, seed=7)


@pytest.mark.slow
async def test_an_agent_killed_at_many_random_points_leaves_nothing_undone() -> None:
    async with world(NO_NODES) as here:
        await kill_agents(here, rounds=12, seed=random.randrange(2**32))
