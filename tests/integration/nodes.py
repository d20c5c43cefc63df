"""A node agent on an API in memory, for tests that bind pods and allocate claims themselves."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from dray.api.errors import NotFound
from dray.api.meta import Json
from dray.api.resources import EVENTS, PODS, RESOURCE_CLAIMS
from dray.cluster.memory import add_allocated_claim, memory_api
from dray.cluster.nodes import RuntimeName, make_runtime
from dray.driver import Driver, DriverPaths, DriverRunner
from dray.node.agent import NodeAgent, NodeOptions
from dray.node.leftovers import end_all_containers
from dray.runtime.client import Client
from dray.runtime.clock import Clock, SystemClock
from dray.testing.builders import make_pod
from dray.testing.waiting import eventually

DRIVER = "gpu.example.com"
NODE = "node-1"


class NodeUnderTest:
    def __init__(self, client: Client, root: Path, runtime: RuntimeName, clock: Clock, **options: Any) -> None:
        self.client = client
        self.root = root
        self.clock = clock
        self.runtime = runtime
        self.options = NodeOptions(NODE, root, **options)
        self.agent: NodeAgent | None = None
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        runtime = make_runtime(self.runtime, self.clock)
        self.agent = NodeAgent(self.client, self.clock, runtime, self.options)
        self._running = asyncio.create_task(self.agent.run())
        agent, running = self.agent, self._running
        await eventually(lambda: agent.is_ready or running.done(), "the agent is ready")
        if running.done():
            running.result()

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None

    async def wait_up(self, driver: str = DRIVER) -> None:
        assert self.agent is not None
        plugins = self.agent.plugins
        await eventually(lambda: driver in plugins.up, f"driver {driver} is up")

    @asynccontextmanager
    async def driver(self, driver: Driver) -> AsyncIterator[None]:
        """A driver that runs on this node while the block does."""
        runner = DriverRunner(driver, self.client, node_name=NODE, paths=DriverPaths.under(self.root))
        running = asyncio.create_task(runner.run())
        await self.wait_up(driver.name)
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    # Pods and claims

    async def add_pod(
        self,
        name: str = "pod",
        *claims: Json,
        command: str = "",
        allocate: bool = True,
        uses: Sequence[Json] = (),
        **spec: Any,
    ) -> Json:
        """A pod that was bound to this node, with a claim of its own unless claims are given.

        `uses` is what its container uses of them, if not all: the claims are called c0, c1 and so on.
        """
        pod = make_pod(name, **{"restartPolicy": "Never", "terminationGracePeriodSeconds": 2, **spec})
        container = pod["spec"]["containers"][0]
        if command:
            container["command"] = ["sh", "-c", command]
        if allocate and not claims:
            claims = (await add_allocated_claim(self.client, DRIVER, [(NODE, "gpu-0")], name=f"{name}-claim"),)
        if claims:
            pod["spec"]["resourceClaims"] = [
                {"name": f"c{n}", "resourceClaimName": claim["metadata"]["name"]} for n, claim in enumerate(claims)
            ]
            container["resources"] = {"claims": list(uses) or [{"name": f"c{n}"} for n in range(len(claims))]}
        pod["spec"]["nodeName"] = NODE
        created = await self.client.create(PODS, pod, "default")
        for claim in claims:
            await self.reserve(claim, created)
        return created

    async def reserve(self, claim: Json, pod: Json) -> None:
        current = await self.client.get(RESOURCE_CLAIMS, claim["metadata"]["name"], "default")
        user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        status = {**current["status"], "reservedFor": [*(current["status"].get("reservedFor") or ()), user]}
        await self.client.update(RESOURCE_CLAIMS, {**current, "status": status}, subresource="status")

    async def pod(self, name: str = "pod") -> Json | None:
        try:
            return await self.client.get(PODS, name, "default")
        except NotFound:
            return None

    async def wait_phase(self, phase: str, name: str = "pod") -> Json:
        async def reached() -> Json | None:
            pod = await self.pod(name)
            return pod if pod is not None and pod["status"].get("phase") == phase else None

        found: Json = await eventually(reached, f"pod {name} is {phase}")
        return found

    async def wait_gone(self, name: str = "pod") -> None:
        async def gone() -> bool:
            return await self.pod(name) is None

        await eventually(gone, f"pod {name} is gone")

    async def delete_pod(self, name: str = "pod") -> None:
        await self.client.delete(PODS, name, "default")

    async def events(self, reason: str) -> list[str]:
        found = await self.client.list(EVENTS, "default")
        return [item["message"] for item in found["items"] if item["reason"] == reason]

    def log(self, pod: Json, container: str = "main", attempt: int = 0) -> str:
        return (self.root / "pods" / pod["metadata"]["uid"] / container / f"{attempt}.log").read_text()


@asynccontextmanager
async def running_node(
    runtime: RuntimeName = "simulated", clock: Clock | None = None, **options: Any
) -> AsyncIterator[NodeUnderTest]:
    root = Path(tempfile.mkdtemp(prefix="dray-node-"))
    try:
        async with memory_api() as client:
            node = NodeUnderTest(client, root, runtime, clock or SystemClock(), **options)
            await node.start()
            try:
                yield node
            finally:
                await node.stop()
                await end_all_containers(root / "pods", 0.5)
    finally:
        shutil.rmtree(root)
