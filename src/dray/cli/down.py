"""`dray down`: stops what `dray up` started."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Annotated

import typer

from dray.cli.data_dirs import DataDirOption
from dray.cluster.datadir import DEFAULT, ProcessID, find_holder, read_record, remove_record
from dray.node.leftovers import end_all_containers

STOP_SECONDS = 60.0


def run(
    data_dir: DataDirOption = DEFAULT,
    purge: Annotated[bool, typer.Option("--purge", help="Remove the cluster's state too.")] = False,
) -> None:
    """Stop the cluster, with all its containers. Its state is kept for the next `dray up` unless purged.

    Exit status: 0 also if nothing ran, 1 if it doesn't stop.
    """
    data_dir = data_dir.expanduser().absolute()
    try:
        _stop_cluster(data_dir)
        _end_leftovers(data_dir)
        remove_record(data_dir)
        if purge and data_dir.exists():
            _check_purgeable(data_dir)
            shutil.rmtree(data_dir)
            typer.echo(f"Removed {data_dir}.")
    except OSError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


def _stop_cluster(data_dir: Path) -> None:
    record = read_record(data_dir)
    holder = find_holder(data_dir)
    if holder is not None:
        _stop(holder)
        typer.echo(f"Stopped the cluster{f' at {record.address}' if record is not None else ''}.")
    else:
        typer.echo(f"No cluster runs in {data_dir}.")
    left = [part for part in (record.parts if record is not None else ()) if part.is_alive]
    for part in left:
        _stop(part)
    if left:
        typer.echo(f"Ended {len(left)} processes of a cluster that was killed.")


def _stop(process: ProcessID) -> None:
    process.stop()
    if not process.wait_ended(STOP_SECONDS):
        typer.echo(f"error: process {process.pid} did not stop within {STOP_SECONDS:g}s; kill it by hand", err=True)
        raise typer.Exit(1)


def _end_leftovers(data_dir: Path) -> None:
    """A cluster that was killed leaves its containers running."""

    async def end() -> None:
        await asyncio.gather(*(end_all_containers(node / "pods") for node in (data_dir / "nodes").glob("*")))

    asyncio.run(end())


def _check_purgeable(data_dir: Path) -> None:
    """`--data-dir` may name anything; only what looks like a cluster's directory is removed."""
    if not (data_dir / "pki").is_dir():
        typer.echo(f"error: {data_dir} doesn't look like a cluster's directory; it is left alone", err=True)
        raise typer.Exit(1)
