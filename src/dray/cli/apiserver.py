"""`dray apiserver`: the Kubernetes API over an embedded store."""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
from pathlib import Path
from typing import Annotated, Final

import typer

from dray.api.names import check_dns_subdomain
from dray.apiserver.certificates import BadCertificate
from dray.apiserver.server import DEFAULT_PORT, ApiServer, ServerOptions
from dray.apiserver.serving import CannotListen, is_loopback
from dray.apiserver.tokens import BadTokenFile
from dray.cli.gates import read_gates
from dray.runtime.logs import LogFormat, setup_logs
from dray.runtime.memory import calm_garbage_collector
from dray.store.errors import StoreUnusable

MOST_DESCRIPTORS: Final = 65_536


def run(
    data_dir: Annotated[
        Path, typer.Option(help="Folder for the store, certificates, tokens and kubeconfig files. Made if needed.")
    ],
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes any free one.", min=0, max=65535)
    ] = DEFAULT_PORT,
    bind: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    name: Annotated[
        list[str] | None,
        typer.Option(help="Another name or address under which clients reach the server. May be repeated."),
    ] = None,
    node: Annotated[
        list[str] | None, typer.Option(help="Write a kubeconfig for the node of this name, too. May be repeated.")
    ] = None,
    memory: Annotated[bool, typer.Option("--memory", help="Keep objects in memory only.")] = False,
    feature_gates: Annotated[
        str, typer.Option(help="Features to turn off or on, e.g. DRAAdminAccess=false. All are on.")
    ] = "",
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="Log more; twice for even more.")] = 0,
    log_format: Annotated[LogFormat, typer.Option(help="How to log.")] = "text",
) -> None:
    """Serve the Kubernetes API for DRA until interrupted. kubectl works with the kubeconfig that it writes.

    Exit status: 0 after an interrupt, 1 if the server can't start.
    """
    setup_logs(verbose, log_format)
    _allow_many_connections()
    nodes = tuple(node or ())
    for given in nodes:
        if problems := check_dns_subdomain(given):
            typer.echo(f"--node {given}: {problems[0]}", err=True)
            raise typer.Exit(1)
    options = ServerOptions(
        data_dir=data_dir.expanduser(),
        host=bind,
        port=port,
        names=tuple(name or ()),
        memory=memory,
        gates=read_gates(feature_gates),
    )
    try:
        calm_garbage_collector()
        asyncio.run(_serve(options, nodes))
    except (StoreUnusable, BadCertificate, BadTokenFile, CannotListen, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


def _allow_many_connections() -> None:
    """Each connection takes a file descriptor, and the usual limit of 1024 was made for other programs."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, MOST_DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


async def _serve(options: ServerOptions, nodes: tuple[str, ...]) -> None:
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for interrupt in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(interrupt, interrupted.set)
    server = await ApiServer.open(options)
    await server.start()
    # Objects that live long are plain JSON without cycles: looking through all of them often finds nothing.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    try:
        kubeconfig = server.write_kubeconfigs(nodes)
        typer.echo(f"Listening on {server.address}")
        if not is_loopback(options.host):
            typer.echo(f"  reachable from other machines: bound to {options.host}")
        typer.echo(f"  objects     {'in memory only' if options.memory else options.data_dir / 'dray.db'}")
        typer.echo(f"  kubeconfig  {kubeconfig}")
        typer.echo(f"Try: kubectl --kubeconfig {kubeconfig} api-resources")
        await interrupted.wait()
        typer.echo("Stopping.")
    finally:
        await server.stop()
