"""What the commands that run a component share: find the cluster, wait to lead, run, stop in good order."""

from __future__ import annotations

import asyncio
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from prometheus_client import CollectorRegistry

from dray.runtime.access import BadAccess
from dray.runtime.client import Client
from dray.runtime.clock import Clock, SystemClock
from dray.runtime.health import serving_health
from dray.runtime.http_client import HttpClient
from dray.runtime.kubeconfig import find_access
from dray.runtime.leases import LeaderElector, LostLease
from dray.runtime.memory import calm_garbage_collector

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(help="Kubeconfig file. Without it: $KUBECONFIG, ~/.kube/config, or the pod's service account."),
]
ContextOption = Annotated[str, typer.Option(help="Context in the kubeconfig file, if not the current one.")]
LeaderElectOption = Annotated[
    bool, typer.Option(help="Act only while holding a lease, so that several can run and one acts.")
]
HealthPortOption = Annotated[
    int,
    typer.Option(help="Port for /metrics, /healthz and /readyz; 0 takes any free one.", min=0, max=65535),
]
HealthBindOption = Annotated[str, typer.Option(help="Address for /metrics, /healthz and /readyz.")]
FeatureGatesOption = Annotated[
    str, typer.Option(help="Features to turn off or on, e.g. DRAAdminAccess=false. All are on.")
]
VerboseOption = Annotated[int, typer.Option("--verbose", "-v", count=True, help="Log more; twice for even more.")]


class Component(Protocol):
    @property
    def registry(self) -> CollectorRegistry: ...

    @property
    def is_ready(self) -> bool: ...

    async def run(self) -> None: ...


@dataclass(frozen=True)
class ComponentOptions:
    name: str
    """In the server's logs, and of the lease."""
    purpose: str
    """What it does, for the first line of output."""
    kubeconfig: Path | None
    context: str
    leader_elect: bool
    health_port: int
    health_bind: str


MakeComponent = Callable[[HttpClient, Clock], Component]


def run_component(options: ComponentOptions, make: MakeComponent) -> None:
    """Until interrupted. Exits with status 1 if the cluster can't be found or the lease is lost."""
    try:
        calm_garbage_collector()
        asyncio.run(_run(options, make))
    except (BadAccess, LostLease, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


async def _run(options: ComponentOptions, make: MakeComponent) -> None:
    access = find_access(options.kubeconfig, options.context)
    clock = SystemClock()
    async with HttpClient(access, agent=options.name) as client:
        component = make(client, clock)
        elector = _make_elector(options, client, clock) if options.leader_elect else None

        def is_ready() -> bool:
            """A stand-by is ready for its turn; who acts must know the cluster."""
            return component.is_ready or (elector is not None and not elector.is_leader)

        health = serving_health(component.registry, is_ready, port=options.health_port, host=options.health_bind)
        async with health as port:
            typer.echo(f"{options.purpose} at {access.server}")
            typer.echo(f"  metrics and health  http://{options.health_bind}:{port}/metrics")
            await _until_interrupted(component.run() if elector is None else elector.run(component.run))
            typer.echo("Stopped.")


def _make_elector(options: ComponentOptions, client: Client, clock: Clock) -> LeaderElector:
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    return LeaderElector(client, clock, name=options.name, identity=identity)


async def _until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for interrupt in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(interrupt, task.cancel)
    with suppress(asyncio.CancelledError):
        await task
