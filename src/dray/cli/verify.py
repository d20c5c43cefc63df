"""`dray verify`: whether the allocations that claims have are right."""

from __future__ import annotations

from typing import Annotated

import typer

from dray.allocator.verify import verify_cluster
from dray.cli.clusters import read_cluster
from dray.cli.exits import PROBLEMS
from dray.cli.gates import read_gates


def run(
    file: Annotated[
        list[str],
        typer.Option("--file", "-f", help="File, directory, or - for standard input. May be repeated."),
    ],
    lasting: Annotated[
        bool,
        typer.Option(
            "--lasting", help="Only rules that hold for good, whatever drivers have published since the allocation."
        ),
    ] = False,
    feature_gates: Annotated[
        str, typer.Option(help="Features to turn off or on, e.g. DRAAdminAccess=false. All are on.")
    ] = "",
) -> None:
    """Check allocated claims against slices, classes and nodes: every violated rule is a line.

    Claims are looked at one by one (counts, selectors, constraints, taints, ...) and together: no device twice,
    no counter or capacity overdrawn.

    Exit status: 0 if all is well, 1 if a rule is violated, 2 if a file can't be read.
    """
    cluster = read_cluster(file, read_gates(feature_gates))
    allocated = [claim for claim in cluster.claims.values() if claim.status.allocation is not None]
    violations = [
        violation
        for violation in verify_cluster(cluster.slices, cluster.classes, cluster.nodes, allocated, cluster.gates)
        if violation.rule.is_lasting or not lasting
    ]
    for violation in violations:
        typer.echo(str(violation))
    found = f"{len(violations)} violation{'' if len(violations) == 1 else 's'}"
    typer.echo(f"{len(allocated)} allocated claim{'' if len(allocated) == 1 else 's'} checked, {found}", err=True)
    if violations:
        raise typer.Exit(PROBLEMS)
