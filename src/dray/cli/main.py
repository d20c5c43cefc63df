"""The command table. Commands are imported when they are used, so that `dray validate` doesn't load a server."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

import dray
from dray.cli.exits import UNUSABLE


class Entry(NamedTuple):
    """One command: `module:attribute` is a function with typer annotations, or a typer app with subcommands."""

    target: str
    help: str


NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

COMMANDS: Final[dict[str, dict[str, Entry]]] = {
    "Cluster": {
        "up": Entry("dray.cli.up:run", "Start a cluster here: API server, scheduler, nodes with simulated devices."),
        "down": Entry("dray.cli.down:run", "Stop that cluster; its state is kept unless purged."),
        "status": Entry("dray.cli.status:run", "Show devices as a map, claims, and why pods wait."),
        "demo": Entry("dray.cli.demo_stories:run", "Play a user story of the KEPs on a cluster, step by step."),
        "logs": Entry("dray.cli.logs:run", "Print the log of a pod's container."),
        "get": Entry("dray.cli.get:get", "Show objects of a cluster."),
        "describe": Entry("dray.cli.describe:run", "Show everything about objects, and their events."),
        "watch": Entry("dray.cli.get:watch", "Show objects and then every change to them."),
        "apply": Entry("dray.cli.apply:run", "Create the objects of manifests, or change them."),
        "delete": Entry("dray.cli.delete:run", "Delete objects of a cluster."),
    },
    "Devices and claims": {
        "allocate": Entry("dray.cli.allocate:run", "Allocate devices for pending claims in files; show what they get."),
        "explain": Entry("dray.cli.explain:run", "Explain why a claim fits nowhere, and what would help."),
        "verify": Entry("dray.cli.verify:run", "Check allocated claims: every violated rule is a line."),
        "driver": Entry("dray.cli.driver:app", "Write and check device drivers."),
    },
    "Manifests and expressions": {
        "validate": Entry("dray.cli.validate:run", "Check manifests of any kind and version."),
        "convert": Entry("dray.cli.convert:run", "Rewrite manifests in another version of resource.k8s.io."),
        "cel": Entry("dray.cli.cel:run", "Check a CEL expression and evaluate it on devices."),
    },
    "Components": {
        "apiserver": Entry("dray.cli.apiserver:run", "Serve the Kubernetes API for devices; kubectl works with it."),
        "controllers": Entry("dray.cli.controllers:run", "Run the controllers."),
        "scheduler": Entry("dray.cli.scheduler:run", "Schedule pods with their claims."),
        "node": Entry("dray.cli.node:run", "Run the pods of one node, with devices that drivers prepare."),
    },
}
"""By the groups that `dray --help` shows."""


class LazyGroup(TyperGroup):
    """Lists commands from the table, and loads just the one that is called.

    `Any` below: click is typer's own affair, a package in some versions and vendored in others.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for commands in COMMANDS.values() for name in commands]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        for panel, commands in COMMANDS.items():
            if cmd_name in commands:
                return TyperCommand(cmd_name, help=commands[cmd_name].help, rich_help_panel=panel)
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        for commands in COMMANDS.values():
            if name in commands:
                command = _load(name, commands[name])
        return name, command, rest


def _load(name: str, entry: Entry) -> Any:
    module, _, attribute = entry.target.partition(":")
    target: Any = getattr(importlib.import_module(module), attribute)
    if not isinstance(target, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command(name)(target)
        target = app
    command: Any = typer.main.get_command(target)
    command.name = name
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
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what can't be written must not fail once more at the end
        typer.echo(f"dray: {error.strerror}", err=True)
        sys.exit(UNUSABLE)
