"""What the commands that talk to a cluster share: its options, its client, and how failures are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from dray.api.errors import ServiceUnavailable, StatusError
from dray.cli.jsonpath import BadTemplate
from dray.cli.resource_names import ResourceNames, UnknownResource
from dray.runtime.access import BadAccess, ClusterAccess
from dray.runtime.http_client import HttpClient
from dray.runtime.kubeconfig import NO_CLUSTER, find_access, load_kubeconfig

KubeconfigOption = Annotated[
    Path | None, typer.Option(help="Kubeconfig file. Without it: $KUBECONFIG, ~/.kube/config, or what `dray up` runs.")
]
ContextOption = Annotated[str, typer.Option(help="Context in the kubeconfig file, if not the current one.")]
NamespaceOption = Annotated[str, typer.Option("--namespace", "-n", help="Namespace, if not the context's own.")]
AllNamespacesOption = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Look in all namespaces.")]
SelectorOption = Annotated[str, typer.Option("--selector", "-l", help="Label selector, e.g. app=demo,tier!=test.")]

_UP: Final = Path(".dray") / "admin.kubeconfig"
"""Where `dray up` leaves its kubeconfig, below the home directory."""
_NONE: Final = "no cluster given: `dray up` starts one here; else use --kubeconfig FILE or set KUBECONFIG"


class CommandFailed(Exception):
    """Shown to the user as it is."""


class Session(NamedTuple):
    client: HttpClient
    names: ResourceNames
    namespace: str


def run_in_cluster(
    work: Callable[[Session], Awaitable[None]], kubeconfig: Path | None, context: str, namespace: str = ""
) -> None:
    """Runs the command's work. Failures end it with exit status 1 and one line each."""
    try:
        asyncio.run(_run(work, kubeconfig, context, namespace))
    except StatusError as error:
        _fail(f"Error from server ({error.reason}): {error.message}")
    except (BadAccess, UnknownResource, CommandFailed, BadTemplate) as error:
        _fail(f"error: {error}")
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


async def _run(
    work: Callable[[Session], Awaitable[None]], kubeconfig: Path | None, context: str, namespace: str
) -> None:
    access = find_cluster(kubeconfig, context)
    async with HttpClient(access, agent="dray") as client:
        try:
            await work(Session(client, ResourceNames(client), namespace or access.namespace))
        except ServiceUnavailable as error:
            if not error.message.startswith(access.server):
                raise  # it was the server that said so
            raise CommandFailed(f"{error.message}. Does the cluster run? `dray up` starts one here.") from None


def find_cluster(kubeconfig: Path | None, context: str) -> ClusterAccess:
    """Raises BadAccess."""
    try:
        return find_access(kubeconfig, context)
    except BadAccess as error:
        if str(error) != NO_CLUSTER:
            raise
        running = Path.home() / _UP
        if running.is_file():
            return load_kubeconfig([running], context)
        raise BadAccess(_NONE) from None


def _fail(text: str) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(1)


async def gather_some(tasks: list[Coroutine[Any, Any, None]], at_once: int = 8) -> None:
    """Runs tasks, a few at a time. The first failure cancels the rest and is raised."""
    room = asyncio.Semaphore(at_once)

    async def run(task: Coroutine[Any, Any, None]) -> None:
        async with room:
            await task

    running = [asyncio.ensure_future(run(task)) for task in tasks]
    try:
        for one in asyncio.as_completed(running):
            await one
    finally:
        for left in running:
            left.cancel()
        for left in running:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([left])
