"""The command table. Commands are imported when they are used, so that `dray validate` doesn't load a server."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup

import dray


class Entry(NamedTuple):
    """One command: `module:attribute` is a function with typer annotations, or a typer app with subcommands."""

    target: str
    panel: str


OBJECTS: Final = "Manifests and expressions"
DEVICES: Final = "Devices and claims"
CLUSTER: Final = "Cluster"
COMPONENTS: Final = "Components"

COMMANDS: Final[dict[str, Entry]] = {
    "validate": Entry("dray.cli.validate:run", OBJECTS),
    "convert": Entry("dray.cli.convert:run", OBJECTS),
    "cel": Entry("dray.cli.cel:run", OBJECTS),
    "allocate": Entry("dray.cli.allocate:run", DEVICES),
    "explain": Entry("dray.cli.explain:run", DEVICES),
    "verify": Entry("dray.cli.verify:run", DEVICES),
    "demo": Entry("dray.cli.demo:run", OBJECTS),
    "up": Entry("dray.cli.up:run", CLUSTER),
    "down": Entry("dray.cli.down:run", CLUSTER),
    "status": Entry("dray.cli.status:run", CLUSTER),
    "logs": Entry("dray.cli.logs:run", CLUSTER),
    "get": Entry("dray.cli.get:get", CLUSTER),
    "describe": Entry("dray.cli.describe:run", CLUSTER),
    "watch": Entry("dray.cli.get:watch", CLUSTER),
    "apply": Entry("dray.cli.apply:run", CLUSTER),
    "delete": Entry("dray.cli.delete:run", CLUSTER),
    "apiserver": Entry("dray.cli.apiserver:run", COMPONENTS),
    "controllers": Entry("dray.cli.controllers:run", COMPONENTS),
    "scheduler": Entry("dray.cli.scheduler:run", COMPONENTS),
    "node": Entry("dray.cli.node:run", COMPONENTS),
}


class LazyGroup(TyperGroup):
    """`Any` below: click is typer's own affair, a package in some versions and vendored in others."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else _load(cmd_name, entry)


def _load(name: str, entry: Entry) -> Any:
    module, _, attribute = entry.target.partition(":")
    target: Any = getattr(importlib.import_module(module), attribute)
    if not isinstance(target, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command(name)(target)
        target = app
    command: Any = typer.main.get_command(target)
    command.name = name
    command.rich_help_panel = entry.panel
    return command


app = typer.Typer(cls=LazyGroup, add_completion=False, no_args_is_help=True, rich_markup_mode="rich")


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"dray {dray.__version__}")
        raise typer.Exit


@app.callback(help="Dynamic Resource Allocation as one package: devices, claims, and why they fit or don't.")
def root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Global options; the commands do the work."""


def main() -> None:
    try:
        app()
    except BrokenPipeError:  # `dray ... | head` is no error
        sys.stderr.close()
        sys.exit(141)
