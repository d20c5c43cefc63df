"""`dray driver`: for authors of device drivers: a project to start from, checks, and running one by hand."""

from __future__ import annotations

import asyncio
import re
import string
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console
from rich.table import Table

import dray
from dray.api.names import check_dns_label, check_dns_subdomain
from dray.cli.driver_loading import load_driver
from dray.cli.driver_subjects import CannotCheck, checking
from dray.cli.exits import PROBLEMS, UNUSABLE
from dray.cluster.driverchecks import Checks, Result
from dray.driver.app import serve

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Write and check device drivers.")

TEMPLATES: Final = Path(__file__).parent / "driver_project"
FILES: Final = {
    "README.md": "README.md.tmpl",
    "Makefile": "Makefile.tmpl",
    "pyproject.toml": "pyproject.toml.tmpl",
    ".gitignore": "gitignore.tmpl",
    "src/{module}/__init__.py": "init.py.tmpl",
    "src/{module}/__main__.py": "main.py.tmpl",
    "src/{module}/driver.py": "driver.py.tmpl",
    "tests/test_driver.py": "test_driver.py.tmpl",
    "examples/pod.yaml": "pod.yaml.tmpl",
    "deploy/class.yaml": "class.yaml.tmpl",
    "deploy/daemonset.yaml": "daemonset.yaml.tmpl",
    "deploy/Dockerfile": "Dockerfile.tmpl",
}
COLOURS: Final = {"passed": "green", "failed": "red", "skipped": "yellow"}


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the project, e.g. demo-gpu.")],
    driver: Annotated[
        str, typer.Option(help="Name of the driver: a DNS name that you own.", show_default="NAME.example.com")
    ] = "",
    directory: Annotated[Path | None, typer.Option(help="Where to make it.", show_default="./NAME")] = None,
) -> None:
    """Make a project with a working driver: tests, a Makefile, and manifests for a real cluster.

    Exit status: 0, or 2 if the name can't be used or the directory isn't empty.
    """
    driver = driver or f"{name}.example.com"
    if problems := check_dns_label(name):
        _refuse(f"{name}: {problems[0]}")
    if problems := check_dns_subdomain(driver):
        _refuse(f"--driver {driver}: {problems[0]}")
    if not name[0].isalpha():
        _refuse(f"{name}: must begin with a letter, because it is also the name of a Python package")
    target = directory or Path(name)
    if target.exists() and any(target.iterdir()):
        _refuse(f"{target} is not empty")
    values = {
        "name": name,
        "driver": driver,
        "module": name.replace("-", "_"),
        "class_name": "".join(part.capitalize() for part in re.split(r"[-_]", name)),
        "version": dray.__version__,
    }
    for path, template in FILES.items():
        file = target / path.format(**values)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(string.Template((TEMPLATES / template).read_text()).substitute(values))
    typer.echo(f"Made {target}: a driver {driver}. Next:")
    typer.echo(f"  cd {target}")
    typer.echo("  make test    # tests and conformance checks")
    typer.echo("  make run     # a cluster with your driver on every node")


def _refuse(text: str) -> NoReturn:
    typer.echo(f"error: {text}", err=True)
    raise typer.Exit(UNUSABLE)


@app.command()
def check(
    socket: Annotated[Path, typer.Argument(help="The driver's registration socket, e.g. NAME-reg.sock.")],
    command: Annotated[
        str,
        typer.Option(help="Start the driver with this; it is killed and started again in some checks."),
    ] = "",
    node_name: Annotated[str, typer.Option(help="The node that the driver serves.")] = "node-1",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="The cluster that the driver uses; claims are made there. Not needed with --command."),
    ] = None,
) -> None:
    """Check that a driver does what the kubelet expects: registration, repeated calls, restarts, wrong claims.

    With --command, the driver is started with KUBECONFIG and NODE_NAME set, for a cluster in memory that lives as long
    as the checks. Without it, it must be running, and --kubeconfig names its cluster; then nothing is restarted.

    Exit status: 0 if all is well, 1 if a check failed, 2 if the driver can't be checked.
    """

    async def work() -> list[Result]:
        async with checking(socket, command, node_name, kubeconfig) as subject:
            return await Checks(subject).run_all()

    try:
        results = asyncio.run(work())
    except CannotCheck as error:
        _refuse(str(error))
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for result in results:
        table.add_row(f"[{COLOURS[result.outcome]}]{result.outcome}[/]", result.name, result.detail)
    Console(highlight=False).print(table)
    if any(result.outcome == "failed" for result in results):
        raise typer.Exit(PROBLEMS)


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    driver: Annotated[str, typer.Argument(help="MODULE:CLASS of the driver.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Options of the driver; --help lists them.")] = None,
) -> None:
    """Run a driver on this node, next to a kubelet or `dray node`, until interrupted."""
    _, make = load_driver(driver)
    serve(make("", Path()), arguments or [])
