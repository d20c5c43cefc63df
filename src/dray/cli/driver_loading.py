"""Finds a driver that is named on the command line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import NoReturn

import typer

from dray.cli.exits import UNUSABLE
from dray.cluster.local import MakeDriver
from dray.driver.base import Driver


def load_driver(text: str) -> tuple[str, MakeDriver]:
    """The driver's name, and how to make one per node. `MODULE:CLASS`, or MODULE with a variable `driver`.

    Exits if there is none.
    """
    module_name, _, attribute = text.partition(":")
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` would: a driver under development isn't installed
    try:
        target = getattr(importlib.import_module(module_name), attribute or "driver")
    except (ImportError, AttributeError) as error:
        _refuse(f"driver {text}: {error}")
    finally:
        sys.path.pop(0)
    if isinstance(target, type) and issubclass(target, Driver):
        return target.name, lambda node, state: target()
    if not isinstance(target, Driver):
        _refuse(f"driver {text}: {target!r} is no driver and no class of drivers")
    return target.name, lambda node, state: target


def _refuse(text: str) -> NoReturn:
    typer.echo(f"error: {text}", err=True)
    raise typer.Exit(UNUSABLE)
