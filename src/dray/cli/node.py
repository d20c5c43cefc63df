"""`dray node`: the agent of one node, against any cluster."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from dray.cli.components import ContextOption, HealthBindOption, HealthPortOption, KubeconfigOption, VerboseOption
from dray.cli.exits import UNUSABLE
from dray.cluster.datadir import DEFAULT
from dray.cluster.inventories import find_model
from dray.cluster.model_files import BadModel
from dray.cluster.nodes import LocalNode, LocalNodeOptions
from dray.cluster.simulated import simulated_drivers
from dray.driver.plugin import SocketPathTooLong
from dray.node.agent import AlreadyRunning, NodeOptions
from dray.node.logserver import FINGERPRINT, LogServer
from dray.runtime.access import BadAccess
from dray.runtime.clock import SystemClock
from dray.runtime.health import serving_health
from dray.runtime.http_client import HttpClient
from dray.runtime.kubeconfig import find_access
from dray.runtime.logs import LogFormat, setup_logs


def run(
    name: Annotated[str, typer.Argument(help="Name of the node.")],
    root: Annotated[
        Path | None, typer.Option(help="Directory for everything of the node.", show_default="~/.dray/nodes/NAME")
    ] = None,
    runtime: Annotated[
        Literal["process", "simulated"], typer.Option(help="Run containers as local processes, or only pretend to.")
    ] = "process",
    label: Annotated[list[str] | None, typer.Option(help="Label of the node: KEY=VALUE. May be repeated.")] = None,
    address: Annotated[str, typer.Option(help="Address of the node, where the API server fetches logs.")] = "127.0.0.1",
    image_dir: Annotated[
        list[Path] | None, typer.Option(help="Folder of folders that stand for images. May be repeated.")
    ] = None,
    model: Annotated[str, typer.Option(help="Run simulated drivers too: a model of `dray up`.")] = "",
    model_node: Annotated[int, typer.Option(help="Which of the model's nodes this is.", min=0)] = 0,
    model_nodes: Annotated[int, typer.Option(help="How many nodes of the model there are.", min=1)] = 1,
    keep_containers: Annotated[
        bool, typer.Option("--keep-containers", help="Leave containers running at the end, for the next start.")
    ] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = "",
    health_port: HealthPortOption = 0,
    health_bind: HealthBindOption = "127.0.0.1",
    verbose: VerboseOption = 0,
    log_format: Annotated[LogFormat, typer.Option(help="How to log.")] = "text",
) -> None:
    """Run the pods that the cluster gives to this node, with devices that drivers prepare, until interrupted.

    Drivers register in ROOT/plugins_registry, as with a kubelet.

    Exit status: 0 after an interrupt, 1 if it can't start, 2 for bad options.
    """
    setup_logs(verbose, log_format)
    root = (root or DEFAULT / "nodes" / name).expanduser().absolute()
    try:
        labels = dict(_read_label(text) for text in label or ())
        images = tuple(map(_read_folder, image_dir or ()))
        _check_address(address)
        drivers = simulated_drivers(find_model(model), model_node, model_nodes, name, root) if model else {}
    except BadModel as error:
        _fail(f"--model: {error}", UNUSABLE)
    except (ValueError, OSError) as error:
        _fail(error, UNUSABLE)
    options = LocalNodeOptions(NodeOptions(name, root, labels=labels, address=address), runtime, images, drivers)
    try:
        asyncio.run(_run(options, kubeconfig, context, health_port, health_bind, keep_containers))
    except (BadAccess, AlreadyRunning, SocketPathTooLong, OSError) as error:
        _fail(error, 1)


def _fail(error: object, status: int) -> NoReturn:
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(status)


def _read_label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise ValueError(f"--label {text}: must be KEY=VALUE")
    return key, value


def _read_folder(place: Path) -> Path:
    found = place.expanduser().absolute()
    if not found.is_dir():
        raise ValueError(f"--image-dir: {place} is not a directory")
    return found


def _check_address(text: str) -> None:
    try:
        ipaddress.ip_address(text)
    except ValueError as error:
        raise ValueError(f"--address: {error}") from None


async def _run(
    options: LocalNodeOptions,
    kubeconfig: Path | None,
    context: str,
    health_port: int,
    health_bind: str,
    keep_containers: bool,
) -> None:
    access = find_access(kubeconfig, context)
    clock = SystemClock()
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(error: BaseException) -> None:
        if not failed.done():
            failed.set_exception(error)

    async with HttpClient(access, agent="dray-node") as client, _serving_logs(options, access.authority) as served:
        node = LocalNode(served, client, lambda driver: client, clock, fail)
        await node.start()
        assert node.agent is not None
        agent = node.agent
        async with serving_health(agent.registry, lambda: agent.is_ready, port=health_port, host=health_bind) as port:
            typer.echo(f"Node {node.name} of {access.server}")
            typer.echo(f"  directory           {node.root}")
            typer.echo(f"  metrics and health  http://{health_bind}:{port}/metrics")
            try:
                await _until_interrupted(failed)
            finally:
                await node.stop(keep_containers=keep_containers)
    typer.echo("Stopped.")


@contextlib.asynccontextmanager
async def _serving_logs(options: LocalNodeOptions, authority: bytes | None) -> AsyncIterator[LocalNodeOptions]:
    """The options with the port where logs are served; without an authority to know the API server by, none are."""
    if authority is None:
        yield options
        return
    agent = options.agent
    server = LogServer(agent.pods, authority, agent.address, SystemClock().now)
    port = await server.start()
    try:
        annotations = {**agent.annotations, FINGERPRINT: server.fingerprint}
        yield replace(options, agent=replace(agent, log_port=port, annotations=annotations))
    finally:
        await server.stop()


async def _until_interrupted(failed: asyncio.Future[None]) -> None:
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for interrupt in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(interrupt, interrupted.set)
    waiting = asyncio.ensure_future(interrupted.wait())
    await asyncio.wait((waiting, failed), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if failed.done():
        failed.result()
