"""`dray status`: nodes, devices, claims, and what waits for what."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dray.cli.pictures import describe_briefly, draw_summary
from dray.cli.sessions import ContextOption, KubeconfigOption, Session, run_in_cluster
from dray.cluster.datadir import DEFAULT, read_record
from dray.cluster.observing import read_summary
from dray.cluster.summary import Summary

DataDirOption = Annotated[Path | None, typer.Option(help="Directory of a cluster of `dray up`, if not ~/.dray.")]


def run(
    data_dir: DataDirOption = None,
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Show all rows, however many there are.")] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = "",
) -> None:
    """Show the devices of every node as a map, the claims, and why pods wait.

    Without options: the cluster of $KUBECONFIG, the one that `dray up` runs, or that of ~/.kube/config.

    Exit status: 0, or 1 if the cluster can't be reached.
    """
    kubeconfig = kubeconfig or find_kubeconfig(data_dir)

    async def work(session: Session) -> None:
        summary = await read_summary(session.client)
        show(Console(highlight=False), session.client.access.server, summary, show_all=show_all)

    run_in_cluster(work, kubeconfig, context)


def show(console: Console, server: str, summary: Summary, *, show_all: bool = False) -> None:
    console.print(f"[bold]{server}[/]  {describe_briefly(summary)}\n")
    console.print(draw_summary(summary, show_all=show_all))


def find_kubeconfig(data_dir: Path | None) -> Path | None:
    """Of the cluster in the directory; without one, of a cluster that runs in the usual place, if none was named."""
    if data_dir is not None:
        kubeconfig = data_dir.expanduser() / "admin.kubeconfig"
        if not kubeconfig.is_file():
            typer.echo(f"error: --data-dir: no cluster was ever up in {data_dir}", err=True)
            raise typer.Exit(1)
        return kubeconfig
    if os.environ.get("KUBECONFIG"):
        return None
    record = read_record(DEFAULT)
    return Path(record.kubeconfig) if record is not None and record.is_alive else None
