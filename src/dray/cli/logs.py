"""`dray logs`: what a container wrote."""

from __future__ import annotations

import sys
from typing import Annotated
from urllib.parse import urlencode

import typer

from dray.api.resources import PODS
from dray.cli.sessions import ContextOption, KubeconfigOption, NamespaceOption, Session, run_in_cluster
from dray.cli.status import DataDirOption, find_kubeconfig


def run(
    pod: Annotated[str, typer.Argument(help="Name of the pod.")],
    container: Annotated[str, typer.Option("--container", "-c", help="Which container, if it has several.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the container ends.")] = False,
    previous: Annotated[bool, typer.Option("--previous", "-p", help="Of the run before the last restart.")] = False,
    tail: Annotated[int | None, typer.Option(help="Only the last lines.", min=0)] = None,
    namespace: NamespaceOption = "",
    data_dir: DataDirOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = "",
) -> None:
    """Print the log of a pod's container.

    Exit status: 0, or 1 if there is none.
    """
    query: dict[str, str] = {}
    if container:
        query["container"] = container
    if follow:
        query["follow"] = "true"
    if previous:
        query["previous"] = "true"
    if tail is not None:
        query["tailLines"] = str(tail)

    async def work(session: Session) -> None:
        path = PODS.path(session.namespace, pod, "log")
        async with session.client.stream_raw(f"{path}?{urlencode(query)}") as pieces:
            async for piece in pieces:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()

    run_in_cluster(work, kubeconfig or find_kubeconfig(data_dir), context, namespace)
