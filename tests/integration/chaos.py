"""A small cluster under fire: users come and go, drivers change their minds, calls fail, components die.

Everything runs in one event loop on a clock that jumps, so a seed plays many minutes in a second or two.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dray.api.errors import NotFound, StatusError
from dray.api.meta import Json
from dray.api.resources import DEVICE_TAINT_RULES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.apiserver.local import LocalClient
from dray.controllers.assembly import Controllers
from dray.scheduler.scheduler import Scheduler, SchedulerOptions
from dray.testing.builders import make_claim, make_class, make_node, make_pod, make_request, make_slice, make_template
from tests.integration.faults import FaultyClient
from tests.integration.history import History
from tests.integration.invariants import find_violations, take_snapshot
from tests.integration.world import World

NODE_COUNT = 4
DEVICES = 4
SHARED_CLAIMS = 3


@dataclass(frozen=True)
class Chaos:
    """What goes wrong."""

    failure_rate: float = 0.0
    """Of all calls of the components; half of them fail after they took effect."""
    schedulers: tuple[str, ...] = ("default-scheduler",)
    restarts: float = 0.0
    """Probability per step that a component is cancelled in the middle of things and started anew."""
    devices_change: bool = False
    nodes_come_and_go: bool = False
    steps: int = 120


@dataclass
class Component:
    """A component that can be killed and started again."""

    make: Callable[[FaultyClient], Scheduler | Controllers]
    client: FaultyClient
    running: Scheduler | Controllers = field(init=False)
    task: asyncio.Task[None] = field(init=False)

    def start(self) -> None:
        self.running = self.make(self.client)
        self.task = asyncio.create_task(self.running.run())

    async def kill(self) -> None:
        if self.task.done():
            self.task.result()  # it must not have died by itself
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


class Battle:
    def __init__(self, world: World, chaos: Chaos, seed: int) -> None:
        self._world = world
        self._chaos = chaos
        self._random = random.Random(seed)
        self._history = History()
        self._pods: list[str] = []
        self._count = 0
        self._devices = {f"n{n}": [f"gpu-{d}" for d in range(DEVICES)] for n in range(NODE_COUNT)}
        self._generation = 1
        self._components = [
            Component(self._make_controllers, self._client(seed)),
            *(
                Component(self._scheduler_maker(name), self._client(seed * 100 + number))
                for number, name in enumerate(chaos.schedulers)
            ),
        ]

    def _client(self, seed: int) -> FaultyClient:
        return FaultyClient(LocalClient(self._world.registry), self._chaos.failure_rate, seed)

    def _make_controllers(self, client: FaultyClient) -> Controllers:
        return Controllers(client, self._world.clock, root_ca="")

    def _scheduler_maker(self, name: str) -> Callable[[FaultyClient], Scheduler]:
        return lambda client: Scheduler(client, self._world.clock, SchedulerOptions(name=name))

    async def fight(self) -> list[str]:
        """Play all steps, let things settle, and say what is wrong then."""
        await self._build()
        async with self._history.recording(self._world.client):
            for component in self._components:
                component.start()
            try:
                for _ in range(self._chaos.steps):
                    await self._step()
                await self._calm_down()
            finally:
                for component in self._components:
                    await component.kill()
        snapshot = await take_snapshot(self._world.client)
        problems = find_violations(snapshot, devices_changed=self._chaos.devices_change)
        problems += self._history.find_lapses()
        return [*problems, self._history.format(*problems)] if problems else []

    @property
    def bound(self) -> set[str]:
        """UIDs of all pods that ever had a node."""
        return self._history.bound_pods

    async def _build(self) -> None:
        await self._world.create(make_class())
        pair = make_request(count=2)
        await self._world.create(make_template("one"), make_template("two", pair))
        for number in range(SHARED_CLAIMS):
            await self._world.create(make_claim(f"shared-{number}"))
        for name, devices in self._devices.items():
            await self._world.create(make_node(name), make_slice(name, devices))

    async def _step(self) -> None:
        actions: list[Callable[[], Any]] = [self._add_pod] * 5 + [self._end_pod] * 4 + [self._wait] * 3
        if self._chaos.devices_change:
            actions += [self._change_devices, self._change_taints]
        if self._chaos.nodes_come_and_go:
            actions += [self._change_node]
        with suppress(StatusError):  # users are refused now and then
            await self._random.choice(actions)()
        if self._random.random() < self._chaos.restarts:
            component = self._random.choice(self._components)
            await component.kill()
            component.start()
        for _ in range(self._random.randrange(30)):
            await asyncio.sleep(0)

    async def _add_pod(self) -> None:
        self._count += 1
        name = f"p{self._count}"
        scheduler = self._random.choice(self._chaos.schedulers)
        if self._random.random() < 0.25:
            claim = f"shared-{self._random.randrange(SHARED_CLAIMS)}"
            pod = make_pod(name, claim=claim, schedulerName=scheduler)
        else:
            template = self._random.choice(("one", "one", "two"))
            pod = make_pod(name, template=template, schedulerName=scheduler)
        self._pods.append(name)
        await self._world.create(pod)

    async def _end_pod(self) -> None:
        if not self._pods:
            return
        name = self._pods.pop(self._random.randrange(len(self._pods)))
        pod = await self._world.get(PODS, name)
        if pod["spec"].get("nodeName") and self._random.random() < 0.5:
            await self._world.set_phase(name, self._random.choice(("Succeeded", "Failed")))
        else:
            await self._world.delete(PODS, name, grace_period_seconds=0)
            if self._random.random() < 0.2:  # another of the same name, as a StatefulSet would
                self._pods.append(name)
                await self._world.create(make_pod(name, template="one", schedulerName=self._chaos.schedulers[0]))

    async def _wait(self) -> None:
        await self._world.clock.advance(self._random.choice((0.01, 0.1, 1.0, 3.0)))

    async def _change_devices(self) -> None:
        name = self._random.choice(list(self._devices))
        self._generation += 1
        count = self._random.randrange(1, DEVICES + 1)
        devices = [{"name": f"gpu-{d}"} for d in sorted(self._random.sample(range(DEVICES), count))]
        patch = {"spec": {"devices": devices, "pool": {"generation": self._generation}}}
        await self._world.client.patch(RESOURCE_SLICES, f"{name}-gpu.example.com", patch)

    async def _change_taints(self) -> None:
        name = f"rule-{self._random.randrange(2)}"
        rule: Json = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": name},
            "spec": {
                "deviceSelector": {"driver": "gpu.example.com", "pool": self._random.choice(list(self._devices))},
                "taint": {"key": "broken", "effect": self._random.choice(("NoSchedule", "NoExecute"))},
            },
        }
        if await self._world.exists(DEVICE_TAINT_RULES, name):
            await self._world.delete(DEVICE_TAINT_RULES, name)
        else:
            await self._world.create(rule)

    async def _change_node(self) -> None:
        name = self._random.choice(list(self._devices))
        spec = (await self._world.get(NODES, name)).get("spec") or {}
        change = None if spec.get("unschedulable") else True
        await self._world.client.patch(NODES, name, {"spec": {"unschedulable": change}})

    async def _calm_down(self) -> None:
        """No more bad luck; deleted pods lose their agents' grace; then time passes until nothing happens."""
        for component in self._components:
            component.client.is_calm = True
        quiet = 0
        revision = -1
        for _ in range(300):
            await self._finish_deleted_pods()
            await self._world.clock.advance(2.0)
            for _ in range(50):
                await asyncio.sleep(0)
            now = self._world.registry.store.current_revision
            quiet = quiet + 1 if now == revision else 0
            revision = now
            if quiet >= 20:
                return
        raise AssertionError("this doesn't settle")

    async def _finish_deleted_pods(self) -> None:
        """What node agents would do."""
        for pod in await self._world.all(PODS):
            if "deletionTimestamp" in pod["metadata"]:
                try:
                    await self._world.delete(PODS, pod["metadata"]["name"], grace_period_seconds=0)
                except NotFound:
                    continue


async def count_allocated(world: World) -> int:
    return sum("allocation" in claim.get("status", {}) for claim in await world.all(RESOURCE_CLAIMS))
