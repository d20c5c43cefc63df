"""Run a driver without hardware and without a cluster: an API in memory, a node in a temporary directory, a kubelet
that does what the test says. gRPC over Unix sockets and the CDI files are real.

    async def test_a_container_learns_its_gpu():
        async with run_driver(MyGpus()) as node:
            prepared = await node.prepare("gpu-0")
            expect_prepared(prepared, env={"GPU": "gpu-0"})
            await node.unprepare(prepared)
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dray.api.cdi import ContainerEdits
from dray.api.meta import Json
from dray.api.resources import RESOURCE_SLICES
from dray.cluster.driverchecks import Checks
from dray.cluster.kubelets import FakeKubelet
from dray.cluster.memory import add_allocated_claim, add_node, memory_api, share_of
from dray.driver.base import Driver
from dray.driver.runner import DriverPaths, DriverRunner
from dray.node.cdi import CdiRegistry
from dray.runtime.client import Client

WAIT_SECONDS = 10.0


class PrepareRefused(AssertionError):
    """The driver did not prepare a claim; the text is what it said."""


@dataclass(frozen=True)
class PreparedClaim:
    claim: Json
    devices: tuple[Any, ...]
    """The Device messages of the driver's answer."""
    edits: ContainerEdits
    """What a container with all devices of the claim would get."""

    @property
    def env(self) -> dict[str, str]:
        return dict(item.split("=", 1) for item in self.edits.env)


class DriverUnderTest:
    """One driver on one node; made by `run_driver`."""

    def __init__(
        self, make_driver: Callable[[], Driver], client: Client, node_name: str, root: Path, *, version: str = ""
    ) -> None:
        self._make_driver = make_driver
        self._version = version
        self._paths = DriverPaths.under(root)
        self._running: asyncio.Task[None] | None = None
        self._runner: DriverRunner | None = None
        self.client = client
        self.node_name = node_name
        self.driver = make_driver()
        self.kubelet = FakeKubelet(self._paths.registry / f"{self.driver.name}-reg.sock")

    async def start(self) -> None:
        self._runner = DriverRunner(self.driver, self.client, node_name=self.node_name, paths=self._paths)
        self._running = asyncio.create_task(self._runner.run())
        await self._or_fail(self.kubelet.register(version=self._version))
        await self._or_fail(self._runner.wait_published())

    async def _or_fail(self, work: Any) -> None:
        """Wait for something, but not for a driver that has failed."""
        waiting = asyncio.ensure_future(work)
        assert self._running is not None
        async with asyncio.timeout(WAIT_SECONDS):
            await asyncio.wait((waiting, self._running), return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            self._running.result()
        waiting.result()

    async def stop(self) -> None:
        """In good order, as with SIGTERM."""
        await self.kubelet.close()
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None

    async def find_end(self) -> str:
        """How the driver failed, if it did; else empty."""
        if self._running is None or not self._running.done() or self._running.cancelled():
            return ""
        return f"the driver has ended: {self._running.exception()!r}"

    async def kill(self) -> None:
        """Without warning: what was under way stays half done. `start` runs a new instance of the driver."""
        if self._runner is not None:
            await self._runner.abort()
        await self.stop()
        self.driver = self._make_driver()

    async def published(self) -> dict[str, Json]:
        """The devices that the cluster knows, by name."""
        found = await self.client.list(RESOURCE_SLICES, field_selector=f"spec.driver={self.driver.name}")
        return {device["name"]: device for item in found["items"] for device in item["spec"].get("devices") or ()}

    async def wait_published(self) -> None:
        """Until what the driver announced with `refresh` has arrived."""
        assert self._runner is not None
        async with asyncio.timeout(WAIT_SECONDS):
            await self._runner.wait_published()

    async def allocate(
        self,
        *devices: str,
        pool: str = "",
        request: str = "devices",
        config: Sequence[Json] = (),
        class_config: Sequence[Json] = (),
        consumed: Mapping[str, str] | None = None,
    ) -> Json:
        """A claim that has these devices, which needn't be free.

        `config` and `class_config` are opaque parameters as the claim and its class give them, `consumed` is what the
        claim takes of devices that are shared.
        """
        pool = pool or self.node_name
        entries = [
            {"source": source, "opaque": {"driver": self.driver.name, "parameters": parameters}}
            for source, given in (("FromClass", class_config), ("FromClaim", config))
            for parameters in given
        ]
        known = {
            device.name: device
            for item in (*self.driver.pools(self.node_name), *self.driver.cluster_pools())
            if item.name == pool
            for device in item.devices
        }
        return await add_allocated_claim(
            self.client,
            self.driver.name,
            {request: [(pool, device) for device in devices]},
            config=entries,
            shares={(pool, name): share_of(known[name], consumed) for name in devices if name in known},
        )

    async def prepare(
        self,
        *devices: str,
        pool: str = "",
        request: str = "devices",
        config: Sequence[Json] = (),
        class_config: Sequence[Json] = (),
        consumed: Mapping[str, str] | None = None,
    ) -> PreparedClaim:
        """Allocate devices by name and prepare them. Raises PrepareRefused."""
        claim = await self.allocate(
            *devices, pool=pool, request=request, config=config, class_config=class_config, consumed=consumed
        )
        return await self.prepare_claim(claim)

    async def prepare_claim(self, claim: Json) -> PreparedClaim:
        answers = await self.kubelet.prepare(claim)
        answer = answers[claim["metadata"]["uid"]]
        if answer.error:
            raise PrepareRefused(answer.error)
        names = [name for device in answer.devices for name in device.cdi_device_ids]
        return PreparedClaim(claim, answer.devices, CdiRegistry(self._paths.cdi).resolve(names))

    async def unprepare(self, prepared: PreparedClaim) -> None:
        errors = await self.kubelet.unprepare(prepared.claim)
        error = errors[prepared.claim["metadata"]["uid"]]
        if error:
            raise AssertionError(f"unprepare failed: {error}")

    @property
    def cdi_files(self) -> list[Path]:
        return sorted(self._paths.cdi.glob("*.json"))


@asynccontextmanager
async def run_driver(
    driver: Driver | Callable[[], Driver], *, node_name: str = "node-1", version: str = ""
) -> AsyncIterator[DriverUnderTest]:
    """`driver` is a driver, or something that makes one: then a restart has a new one, as in real life.

    `version` makes the kubelet speak another version than the best: `v1beta1.DRAPlugin`.
    """
    make = (lambda: driver) if isinstance(driver, Driver) else driver
    with tempfile.TemporaryDirectory(prefix="dray-") as root:
        async with memory_api() as client:
            await add_node(client, node_name)
            node = DriverUnderTest(make, client, node_name, Path(root), version=version)
            await node.start()
            try:
                yield node
            finally:
                await node.stop()


def expect_prepared(
    prepared: PreparedClaim,
    *,
    env: Mapping[str, str] | None = None,
    mounts: Mapping[str, str] | None = None,
    device_nodes: Sequence[str] | None = None,
) -> None:
    """Fails unless a container would get at least this: variables, mounts (inside: outside), device nodes."""
    for name, value in (env or {}).items():
        assert prepared.env.get(name) == value, f"variable {name} is {prepared.env.get(name)!r}, expected {value!r}"
    found = {mount.container_path: mount.host_path for mount in prepared.edits.mounts}
    for inside, outside in (mounts or {}).items():
        assert found.get(inside) == outside, f"mount {inside} shows {found.get(inside)!r}, expected {outside!r}"
    nodes = {node.path for node in prepared.edits.device_nodes}
    for path in device_nodes or ():
        assert path in nodes, f"device node {path} is missing; there are {sorted(nodes)}"


async def check_driver(driver: Driver | Callable[[], Driver]) -> None:
    """Everything that `dray driver check` checks. Fails with a list of what is wrong."""
    async with run_driver(driver) as node:
        results = [result async for result in Checks(node).run()]
    problems = [f"{result.name}: {result.detail}" for result in results if result.outcome == "failed"]
    assert not problems, "\n".join(problems)
