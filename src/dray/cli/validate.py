"""`dray validate`: checks manifests without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from dray.api.times import format_time
from dray.cli.checks import check_objects
from dray.cli.exits import PROBLEMS, UNUSABLE
from dray.cli.gates import read_gates
from dray.cli.sources import Source, UnusableInput, iter_objects, read_sources


def run(
    file: Annotated[
        list[str],
        typer.Option("--file", "-f", help="File, directory, or - for standard input. May be repeated."),
    ],
    feature_gates: Annotated[
        str, typer.Option(help="Features to turn off or on, e.g. DRAAdminAccess=false. All are on.")
    ] = "",
) -> None:
    """Check manifests: every problem is a line with file, line, object, field and reason.

    Exit status: 0 if all is well, 1 if there are problems, 2 if a file can't be read.
    """
    gates = read_gates(feature_gates)
    now = format_time(datetime.now(UTC))
    objects = problems = 0
    unusable = False
    for source in read_sources(file):
        match source:
            case UnusableInput():
                typer.echo(str(source), err=True)
                unusable = True
            case Source():
                for checked in check_objects(iter_objects(source), gates, now):
                    objects += 1
                    problems += len(checked.findings)
                    for finding in checked.findings:
                        typer.echo(str(finding))
    typer.echo(f"{_count(objects, 'object')} checked, {_count(problems, 'problem')}", err=True)
    if unusable:
        raise typer.Exit(UNUSABLE)
    if problems:
        raise typer.Exit(PROBLEMS)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
