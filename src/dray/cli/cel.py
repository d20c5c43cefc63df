"""`dray cel`: try an expression on devices, and see why it is true or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dray.api.devices import DeviceID
from dray.api.features import FeatureGates
from dray.cel.devices import DeviceValue, bind_device
from dray.cel.errors import CompileError, EvaluationError
from dray.cel.explain import find_reason
from dray.cel.program import MAX_COST, MAX_LENGTH, Program, compile_constraint, compile_selector
from dray.cel.suggestions import DeviceField, suggest_fields
from dray.cli.clusters import read_cluster
from dray.cli.exits import PROBLEMS, UNUSABLE
from dray.cli.gates import read_gates

MAX_SET: Final = 32
FILE_WIDTH: Final = 160
"""Columns where there is no terminal to fit into."""


class NamedDevice(NamedTuple):
    id: DeviceID
    value: DeviceValue


def run(
    expression: Annotated[str, typer.Argument(help="The CEL expression, over `device`, or over `devices`.")],
    file: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", help="File with ResourceSlices, directory, or - for standard input. Repeatable."),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option("--device", "-d", help="Look at this device only: NAME or DRIVER/POOL/NAME. May be repeated."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", "-e", help="Show the value of each sub-expression.")] = False,
    devices: Annotated[
        bool, typer.Option("--devices", help="A constraint over the set of all chosen devices.")
    ] = False,
    feature_gates: Annotated[
        str, typer.Option(help="Features to turn off or on, e.g. DRAListTypeAttributes=false. All are on.")
    ] = "",
) -> None:
    """Check a CEL expression as an API server would, and evaluate it on the devices of some slices.

    Exit status: 0 if the expression compiles and has a value for every device, 1 if not, 2 if a file can't be read.
    """
    gates = read_gates(feature_gates)
    program = _compile(expression, gates, over_set=devices)
    _show_program(program)
    if not file:
        return
    found = list(_choose(read_devices(file, gates), device or []))
    if not found:
        typer.echo("there are no such devices in these files", err=True)
        raise typer.Exit(UNUSABLE)
    failed = _show_set(program, found, explain) if devices else _show_devices(program, found, explain)
    _show_suggestions(program, [each.value for each in found])
    if failed:
        raise typer.Exit(PROBLEMS)


def _compile(expression: str, gates: FeatureGates, *, over_set: bool) -> Program:
    compile_ = compile_constraint if over_set else compile_selector
    try:
        return compile_(expression, stored=False, gates=gates)
    except CompileError as error:
        typer.echo(f"the expression doesn't compile:\n{error}", err=True)
        raise typer.Exit(PROBLEMS) from None


def read_devices(files: Sequence[str], gates: FeatureGates) -> Iterator[NamedDevice]:
    """The devices of all slices in the files, in their order."""
    for slice_ in read_cluster(files, gates).slices:
        spec = slice_.spec
        for device in spec.devices:
            identity = DeviceID(spec.driver, spec.pool.name, device.name)
            yield NamedDevice(identity, bind_device(spec.driver, device))


def _choose(found: Iterator[NamedDevice], names: Sequence[str]) -> Iterator[NamedDevice]:
    for each in found:
        if not names or each.id.device in names or str(each.id) in names:
            yield each


def _show_program(program: Program) -> None:
    low, high = program.min_cost_estimate, program.max_cost_estimate
    typer.echo(f"type   {program.output_type}")
    verdict = "" if high <= MAX_COST else f": more than {MAX_COST:,}, so Kubernetes refuses it"
    typer.echo(f"cost   {low:,} to {high:,}{verdict}" if low != high else f"cost   {high:,}{verdict}")
    if len(program.text.encode()) > MAX_LENGTH:
        typer.echo(f"length {len(program.text.encode()):,} bytes: more than {MAX_LENGTH:,}, so Kubernetes refuses it")
    reads = program.reads
    if reads is not None:
        names = [*sorted(reads.attributes), *sorted(reads.capacities)]
        parts = (["driver"] if reads.driver else []) + (["allowMultipleAllocations"] if reads.sharing else []) + names
        typer.echo(f"reads  {', '.join(parts) or 'nothing'}")


def _show_devices(program: Program, found: Sequence[NamedDevice], explain: bool) -> bool:
    """Tells of each device; returns whether the expression failed on one."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("device", no_wrap=True)
    table.add_column("result", no_wrap=True)
    table.add_column("because", overflow="fold")
    counts: Counter[str] = Counter()
    for identity, value in found:
        told = program.explain(value)
        result, style = _result(program, value)
        counts[result] += 1
        if explain:
            typer.echo(f"\n{identity}: {result}")
            typer.echo("\n".join(f"  {part}" for part in told))
        else:
            reason = "" if result == "true" else find_reason(told)
            table.add_row(Text(str(identity)), Text(result, style), Text(reason))
    if not explain:
        typer.echo()
        console = Console()
        if not console.is_terminal:
            console.width = max(console.width, FILE_WIDTH)
        console.print(table)
    typer.echo(f"\n{', '.join(f'{count} {result}' for result, count in sorted(counts.items(), reverse=True))}")
    return counts["error"] > 0


def _result(program: Program, value: DeviceValue | list[DeviceValue]) -> tuple[str, str]:
    try:
        return ("true", "green") if program.matches(value) else ("false", "yellow")
    except EvaluationError:
        return "error", "red"


def _show_set(program: Program, found: Sequence[NamedDevice], explain: bool) -> bool:
    if len(found) > MAX_SET:
        typer.echo(
            f"{len(found)} devices are more than a claim can have ({MAX_SET}): choose some with --device", err=True
        )
        raise typer.Exit(UNUSABLE)
    values = [each.value for each in found]
    result, _ = _result(program, values)
    told = program.explain(values)
    typer.echo(f"\n{result} for the set of {', '.join(str(each.id) for each in found)}")
    if explain:
        typer.echo("\n".join(map(str, told)))
    elif result != "true":
        typer.echo(find_reason(told))
    return result == "error"


def _show_suggestions(program: Program, devices: Sequence[DeviceValue]) -> None:
    for written, meant in suggest_fields(program.reads, devices):
        line = f"{_kind(written)} `{_name(written, meant)}` is on 0 of {len(devices)} devices"
        if meant is not None:
            kind = "" if meant.kind == written.kind else f"{_kind(meant)} "
            line += f"; {kind}`{_name(meant, written)}` is on {_count(meant, devices)}"
        typer.echo(line)


def _kind(field: DeviceField) -> str:
    return "attribute" if field.kind == "attributes" else "capacity"


def _name(field: DeviceField, other: DeviceField | None) -> str:
    """Without its domain, if that is the same for both."""
    domain, _, identifier = field.name.partition("/")
    return identifier if other is not None and other.name.startswith(f"{domain}/") else field.name


def _count(field: DeviceField, devices: Sequence[DeviceValue]) -> int:
    domain, _, identifier = field.name.partition("/")
    found = 0
    for device in devices:
        if device.error is None:
            entries = (device.attributes if field.kind == "attributes" else device.capacity).get(domain)
            found += isinstance(entries, dict) and identifier in entries
    return found
