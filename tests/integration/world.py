"""A cluster in the test's event loop, on a clock that the test moves: verbs to change it, to wait, and to look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

import dray.api.resources
from dray.api.errors import NotFound
from dray.api.meta import Json, ObjectKey
from dray.api.resources import EVENTS, PODS, RESOURCE_CLAIMS, Resource
from dray.apiserver.local import LocalClient
from dray.apiserver.registry import Registry
from dray.runtime.client import Client
from dray.runtime.events import EventRecorder
from dray.runtime.informers import Informers
from dray.runtime.queue import Reconcile, WorkQueue
from dray.store.memory import MemoryStore
from dray.testing.clock import FakeClock
from tests.integration.api_servers import start_registry

BY_KIND = {item.kind: item for item in vars(dray.api.resources).values() if isinstance(item, Resource)}
QUIET_ROUNDS = 15


class World:
    def __init__(self, registry: Registry, clock: FakeClock) -> None:
        self.registry = registry
        self.clock = clock
        self.client: Client = LocalClient(registry)
        self.recorder = EventRecorder(self.client, clock, "test")
        self.metrics = CollectorRegistry()
        self._is_idle: list[Callable[[], bool]] = []

    @classmethod
    async def make(cls) -> World:
        clock = FakeClock()
        return cls(await start_registry(clock), clock)

    # Changing

    async def create(self, *objects: Json) -> Json:
        """The last of them as it was stored."""
        created: Json = {}
        for obj in objects:
            created = await self.client.create(BY_KIND[obj["kind"]], obj, obj["metadata"].get("namespace", ""))
        return created

    async def set_phase(self, pod: str, phase: str) -> None:
        await self.client.patch(PODS, pod, {"status": {"phase": phase}}, "default", subresource="status")

    async def bind(self, pod: str, node: str) -> None:
        binding = {"metadata": {"name": pod}, "target": {"name": node}}
        await self.client.create(PODS, binding, "default", subresource="binding", name=pod)

    async def allocate(self, claim: str, device: str, *pods: str, node: str = "n1") -> None:
        """As a scheduler would: finalizer, allocation, reservations."""
        finalizers = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
        await self.client.patch(RESOURCE_CLAIMS, claim, finalizers, "default")
        found = await self.client.get(RESOURCE_CLAIMS, claim, "default")
        request = found["spec"]["devices"]["requests"][0]
        result = {"request": request["name"], "driver": "gpu.example.com", "pool": node, "device": device}
        if tolerations := request.get("exactly", {}).get("tolerations"):
            result["tolerations"] = tolerations
        users = [
            {"resource": "pods", "name": pod, "uid": (await self.get(PODS, pod))["metadata"]["uid"]} for pod in pods
        ]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        status = {"allocation": {"devices": {"results": [result]}, "nodeSelector": selector}, "reservedFor": users}
        await self.client.patch(RESOURCE_CLAIMS, claim, {"status": status}, "default", subresource="status")

    async def delete(self, resource: Resource, name: str, namespace: str = "default", **options: Any) -> None:
        await self.client.delete(resource, name, namespace if resource.namespaced else "", **options)

    # Looking

    async def get(self, resource: Resource, name: str, namespace: str = "default") -> Json:
        return await self.client.get(resource, name, namespace if resource.namespaced else "")

    async def exists(self, resource: Resource, name: str, namespace: str = "default") -> bool:
        try:
            await self.get(resource, name, namespace)
        except NotFound:
            return False
        return True

    async def all(self, resource: Resource, namespace: str = "") -> list[Json]:
        items: list[Json] = (await self.client.list(resource, namespace))["items"]
        return items

    async def names(self, resource: Resource, namespace: str = "") -> list[str]:
        return [obj["metadata"]["name"] for obj in await self.all(resource, namespace)]

    async def events(self, reason: str) -> list[str]:
        """The messages."""
        await self.recorder.flush()
        return [event["message"] for event in await self.all(EVENTS) if event["reason"] == reason]

    # Running

    @asynccontextmanager
    async def controlling(self, make: Callable[[Informers, WorkQueue[Any]], Reconcile[Any]]) -> AsyncIterator[None]:
        """One controller at work; `make` builds it and returns its reconcile."""
        informers = Informers(self.client, self.clock)
        queue: WorkQueue[Any] = WorkQueue("test", self.clock)
        reconcile = make(informers, queue)

        async def run() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(informers.run())
                await informers.wait_synced()
                group.create_task(queue.work(reconcile, 3))

        async with self.running(run(), lambda: informers.have_synced and queue.is_idle):
            yield

    @asynccontextmanager
    async def running(self, work: Any, is_idle: Callable[[], bool]) -> AsyncIterator[None]:
        """Some component at work; the block starts when it has found its peace."""
        task = asyncio.create_task(work)
        self._is_idle.append(is_idle)
        try:
            await self.settle()
            yield
            if task.done():
                task.result()
        finally:
            self._is_idle.remove(is_idle)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def settle(self) -> None:
        """Until nobody has anything to do at this time."""
        await self._wait_quiet(QUIET_ROUNDS, lambda: all(is_idle() for is_idle in self._is_idle))

    async def settle_writes(self) -> None:
        """Until nothing has changed for some time, although somebody may be waiting for something."""
        await self._wait_quiet(5 * QUIET_ROUNDS, lambda: True)

    async def _wait_quiet(self, rounds: int, is_idle: Callable[[], bool]) -> None:
        store = self.registry.store
        assert isinstance(store, MemoryStore)
        quiet, revision = 0, -1
        for _ in range(20_000):
            await asyncio.sleep(0)
            quiet = quiet + 1 if store.current_revision == revision and is_idle() else 0
            revision = store.current_revision
            if quiet >= rounds:
                return
        raise AssertionError("this doesn't settle")

    async def advance(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        await self.settle()


def key(name: str, namespace: str = "default") -> ObjectKey:
    return ObjectKey(namespace, name)
