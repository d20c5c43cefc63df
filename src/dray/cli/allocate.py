"""`dray allocate`: which devices pending claims would get, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer
from msgspec.structs import replace

from dray.allocator.errors import AllocationError
from dray.allocator.explain import explain
from dray.allocator.explain_text import format_explanation
from dray.allocator.index import Index
from dray.allocator.reasons import Explanation
from dray.api.claims import DeviceRequestAllocationResult, ResourceClaim
from dray.api.codec import to_json
from dray.cli.clusters import ClaimSet, Cluster, read_cluster
from dray.cli.convert import Format, write_objects
from dray.cli.exits import DOES_NOT_FIT, UNUSABLE
from dray.cli.gates import read_gates


class Output(StrEnum):
    TABLE = "table"
    YAML = "yaml"
    JSON = "json"


@dataclass(frozen=True)
class Placed:
    """Claims that got their devices, with their status, and the node they got them on."""

    owner: str
    claims: tuple[ResourceClaim, ...]
    node: str


@dataclass(frozen=True)
class Unplaced:
    claims: ClaimSet
    explanation: Explanation


def run(
    file: Annotated[
        list[str],
        typer.Option("--file", "-f", help="File, directory, or - for standard input. May be repeated."),
    ],
    node: Annotated[str, typer.Option(help="The only node to try.", show_default="the first that fits")] = "",
    output: Annotated[Output, typer.Option("--output", "-o", help="Format of the result.")] = Output.TABLE,
    feature_gates: Annotated[
        str, typer.Option(help="Features to turn off or on, e.g. DRAAdminAccess=false. All are on.")
    ] = "",
) -> None:
    """Allocate devices for pending claims, one after the other, and show what they get.

    The files hold ResourceSlices, DeviceClasses, ResourceClaims or templates, and perhaps Nodes, Pods and
    DeviceTaintRules. The claims of a pod go to one node. Why a claim doesn't fit is told on standard error.

    Exit status: 0 if all claims fit, 3 if one doesn't, 2 if a file can't be read.
    """
    cluster = read_cluster(file, read_gates(feature_gates))
    if node and node not in {each.name for each in cluster.nodes}:
        known = ", ".join(each.name for each in cluster.nodes[:8])
        typer.echo(f"--node: there is no node {node}, only {known}", err=True)
        raise typer.Exit(UNUSABLE)
    index = cluster.make_index()
    outcomes = list(iter_outcomes(cluster, index, node))
    placed = [outcome for outcome in outcomes if isinstance(outcome, Placed)]
    if output is Output.TABLE:
        if placed:
            typer.echo(format_table(placed))
        elif not outcomes:
            typer.echo("There is no pending claim.", err=True)
    else:
        objects = [to_json(claim) for outcome in placed for claim in outcome.claims]
        typer.echo(write_objects(objects, Format(output.value)), nl=False)
    unplaced = [outcome for outcome in outcomes if isinstance(outcome, Unplaced)]
    for outcome in unplaced:
        typer.echo(format_explanation(outcome.explanation), err=True)
    if unplaced:
        raise typer.Exit(DOES_NOT_FIT)


def iter_outcomes(cluster: Cluster, index: Index, node: str = "") -> Iterator[Placed | Unplaced]:
    """Each set of claims on the first node that fits. What it gets is in use for the next ones."""
    for claim_set in cluster.claim_sets():
        nodes = [each.name for each in cluster.nodes if node in ("", each.name) and claim_set.admits(each)]
        placed = _place(index, nodes, claim_set)
        if placed is None:
            yield Unplaced(claim_set, explain(index, claim_set.claims, nodes))
            continue
        for claim in placed.claims:
            index.apply_claim(claim)
        yield placed


def _place(index: Index, nodes: list[str], claim_set: ClaimSet) -> Placed | None:
    for node in nodes:
        try:
            results = index.allocate(node, claim_set.claims)
        except AllocationError:
            continue  # `explain` tells of it, if no other node fits either
        if results is not None:
            claims = (
                replace(claim, status=replace(claim.status, allocation=result))
                for claim, result in zip(claim_set.claims, results, strict=True)
            )
            return Placed(claim_set.owner, tuple(claims), node)
    return None


def format_table(placed: list[Placed]) -> str:
    """As kubectl writes tables: columns as wide as they must be, and nothing folded."""
    rows = [("CLAIM", "NODE", "REQUEST", "DEVICE", "DETAILS")]
    for each in placed:
        for claim in each.claims:
            results = claim.status.allocation.devices.results if claim.status.allocation else ()
            first = (str(claim.metadata.key), each.node)
            rows += [
                (*(first if number == 0 else ("", "")), result.request, str(result.device_id), _details(result))
                for number, result in enumerate(results)
            ] or [(*first, "", "", "")]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if not any(row[-1] for row in rows[1:]):
        widths.pop()
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows
    )


def _details(result: DeviceRequestAllocationResult) -> str:
    parts = ["admin access"] if result.admin_access else []
    parts += [f"{name}={quantity}" for name, quantity in result.consumed_capacity.items()]
    if result.binding_conditions:
        parts.append(f"waits for {', '.join(result.binding_conditions)}")
    return ", ".join(parts)
