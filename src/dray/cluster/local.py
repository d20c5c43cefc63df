"""A whole cluster in one process: API server on an embedded store, controllers, scheduler, nodes with their drivers.

The parts are those of a real cluster, and talk as there: drivers and agents by gRPC over Unix sockets, everybody with
the API through a client of their own. Only that client is short-circuited: it calls the registry instead of HTTPS.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dray.api.errors import BadRequest, NotFound
from dray.api.features import ALL_GATES, FeatureGates
from dray.apiserver.local import LocalClient
from dray.apiserver.pod_logs import LogRequest
from dray.apiserver.server import ApiServer, ServerOptions
from dray.apiserver.users import ADMIN, UserInfo
from dray.cluster.identities import CONTROLLERS, SCHEDULER, driver_identity, node_identity
from dray.cluster.models import Model
from dray.cluster.nodes import LocalNode, LocalNodeOptions, RuntimeName
from dray.cluster.podfeeds import SharedPods
from dray.cluster.setup import UP_LABEL, prepare_objects
from dray.cluster.simulated import simulated_controller, simulated_drivers
from dray.controllers.assembly import Controllers
from dray.driver.base import Driver
from dray.node.agent import NodeOptions
from dray.node.logs import LogMissing, LogQuery, read_log
from dray.runtime.clock import Clock, SystemClock
from dray.runtime.informers import Informers
from dray.scheduler.scheduler import Scheduler, SchedulerOptions

log = logging.getLogger(__name__)

MakeDriver = Callable[[str, Path], Driver]
"""A driver for a node: its name, and a directory for the driver's files."""


@dataclass(frozen=True)
class ClusterOptions:
    data_dir: Path
    model: Model
    nodes: int = 0
    """0: as many as the model suggests."""
    runtime: RuntimeName = "process"
    port: int = 0
    memory: bool = False
    gates: FeatureGates = ALL_GATES
    images: tuple[Path, ...] = ()
    drivers: Mapping[str, MakeDriver] = field(default_factory=dict)
    """Drivers of others, on every node; they replace those of the model with the same name."""
    wipe_delay: float = 30.0
    call_timeout: float = 45.0

    @property
    def node_names(self) -> list[str]:
        return [f"node-{number}" for number in range(1, (self.nodes or self.model.default_nodes) + 1)]


class LocalCluster:
    """`start`, then, always, `stop`; or `async with`."""

    def __init__(self, options: ClusterOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._server: ApiServer | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._failure: asyncio.Future[None] | None = None
        self._pods: SharedPods | None = None
        self.nodes: dict[str, LocalNode] = {}
        self.scheduler: Scheduler | None = None
        self.controllers: Controllers | None = None
        self.kubeconfig = options.data_dir / "admin.kubeconfig"

    async def __aenter__(self) -> LocalCluster:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    @property
    def server(self) -> ApiServer:
        assert self._server is not None, "the cluster isn't running"
        return self._server

    @property
    def address(self) -> str:
        return self.server.address

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Of processes beside this one."""
        return ()

    @property
    def client(self) -> LocalClient:
        """An administrator's."""
        return self.client_of(ADMIN, "dray-up")

    def client_of(self, user: UserInfo, agent: str) -> LocalClient:
        return LocalClient(self.server.registry, user=user, agent=agent)

    async def start(self) -> None:
        """Everything is up when this returns, and devices are published. Raises what ApiServer and drivers raise."""
        self._failure = asyncio.get_running_loop().create_future()
        options = self._options
        self._server = await ApiServer.open(
            ServerOptions(options.data_dir, port=options.port, memory=options.memory, gates=options.gates), self._clock
        )
        self._server.logs = _NodeLogs(self)
        await self._server.start()
        try:
            self.kubeconfig = self._server.write_kubeconfigs(tuple(options.node_names))
            await prepare_objects(self.client, options.model, options.node_names, options.data_dir)
            self._start_control_plane()
            await self._start_nodes()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """In good order: nodes, then who acts on them, then the API. What was stored stays."""
        await asyncio.gather(*(node.stop() for node in self.nodes.values()))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self.nodes.clear()
        if self._server is not None:
            await self._server.stop()
            self._server = None

    async def wait_failed(self) -> None:
        """Waits for ever, or raises what ended a part of the cluster."""
        assert self._failure is not None, "the cluster isn't running"
        await asyncio.shield(self._failure)

    def _fail(self, error: BaseException) -> None:
        if self._failure is not None and not self._failure.done():
            self._failure.set_exception(error)

    def _start_control_plane(self) -> None:
        """Controllers and scheduler share their copies of the cluster."""
        registry = self.server.registry
        controllers_client = LocalClient(registry, user=CONTROLLERS, agent="dray-controllers", shares_answers=True)
        scheduler_client = LocalClient(registry, user=SCHEDULER, agent="dray-scheduler", shares_answers=True)
        informers = Informers(controllers_client, self._clock)
        root_ca = self.server.authority.pem.decode()
        self.controllers = Controllers(controllers_client, self._clock, root_ca=root_ca, informers=informers)
        scheduling = SchedulerOptions(gates=self._options.gates)
        self.scheduler = Scheduler(scheduler_client, self._clock, scheduling, informers=informers)
        self._run("copies of the cluster", informers.run())
        self._run("controllers", self.controllers.run())
        self._run("scheduler", self.scheduler.run())

    def _run(self, name: str, work: Any) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)
            self._fail(error)

    # Nodes

    async def _start_nodes(self) -> None:
        pools = self._options.model.make_cluster_pools(len(self._options.node_names))
        for driver, cluster_pools in pools.items():
            client = self.client_of(driver_identity(driver), f"dra-controller-{driver}")
            controller = simulated_controller(driver, cluster_pools, client, self._clock)
            self._run(f"pools of {driver}", controller.run())
            await controller.wait_published()
        self._pods = SharedPods(self.client, self._clock)
        self._run("pods of all nodes", self._pods.run())
        for index, name in enumerate(self._options.node_names):
            self.nodes[name] = self._make_node(index, name)
        for node in self.nodes.values():
            await node.start()
        failing = asyncio.ensure_future(self.wait_failed())
        ready = asyncio.gather(*(node.wait_ready() for node in self.nodes.values()))
        await asyncio.wait((failing, ready), return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            ready.cancel()
            failing.result()
        failing.cancel()
        ready.result()

    def _make_node(self, index: int, name: str) -> LocalNode:
        options = self._options
        kind = options.model.make_node(index)
        root = options.data_dir / "nodes" / name
        root.mkdir(parents=True, exist_ok=True)
        agent = NodeOptions(
            name=name,
            root=root,
            labels={UP_LABEL: "true", **kind.labels},
            wipe_delay=options.wipe_delay,
            call_timeout=options.call_timeout,
            durable=False,
        )
        drivers = simulated_drivers(options.model, index, len(options.node_names), name, root)
        drivers |= {driver: _other(make, driver, name, root) for driver, make in options.drivers.items()}
        return LocalNode(
            LocalNodeOptions(agent, options.runtime, options.images, drivers),
            self.client_of(node_identity(name), "dray-node"),
            lambda driver: self.client_of(driver_identity(driver, name), f"dra-driver-{driver}"),
            self._clock,
            self._fail,
            self._pods,
        )


def _other(make: MakeDriver, driver: str, node: str, root: Path) -> Callable[[], Driver]:
    return lambda: make(node, root / "devices" / driver)


class _NodeLogs:
    """The logs of nodes in this process."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    async def read(self, request: LogRequest) -> AsyncIterator[bytes]:
        node = self._cluster.nodes.get(request.node)
        if node is None:
            raise BadRequest(f"node {request.node} is not part of this cluster")
        directory = node.root / "pods" / request.pod_uid / request.container
        query = LogQuery(request.follow, request.previous, request.tail_lines, request.limit_bytes)
        try:
            async for piece in read_log(directory, query):
                yield piece
        except LogMissing as missing:
            raise NotFound(str(missing), details={}) from missing
