"""`dray driver`: for authors of device drivers: a project to start from, checks, and running one by hand."""

from __future__ import annotations

import asyncio
import importlib.util
import keyword
import re
import string
from collections import Counter
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

import dray
from dray.api.errors import StatusError
from dray.api.names import check_dns_label, check_dns_subdomain
from dray.cli.driver_loading import load_driver
from dray.cli.driver_subjects import CannotCheck, checking
from dray.cli.exits import PROBLEMS, UNUSABLE
from dray.cluster.driverchecks import Checks
from dray.driver.app import serve
from dray.node.plugins import LONGEST_NAME

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
YAML_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
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
    if problem := _find_problem(name, driver):
        _refuse(problem)
    target = directory or Path(name)
    values = {
        "name": name,
        "driver": driver,
        "module": name.replace("-", "_"),
        "class_name": "".join(part.capitalize() for part in name.removesuffix("-driver").split("-")) + "Driver",
        "version": dray.__version__,
    }
    try:
        if target.exists() and any(target.iterdir()):
            _refuse(f"{target} is not empty")
        for path, template in FILES.items():
            file = target / path.format(**values)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(string.Template((TEMPLATES / template).read_text()).substitute(values))
    except OSError as error:
        _refuse(f"{error.filename}: {error.strerror}")
    typer.echo(f"Made {target}: a driver {driver}. Next:")
    typer.echo(f"  cd {target}")
    typer.echo("  make test    # tests and conformance checks")
    typer.echo("  make run     # a cluster with your driver on every node")


def _find_problem(name: str, driver: str) -> str:
    """Why a project can't have this name; empty if it can."""
    module = name.replace("-", "_")
    if not re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])?", name):
        return f"{name!r} can't be a project's name: use small letters, digits and '-', beginning with a letter"
    if keyword.iskeyword(module) or name in YAML_WORDS:
        return (
            f"{name!r} can't be a project's name: it is a word of {'Python' if keyword.iskeyword(module) else 'YAML'}"
        )
    if (found := importlib.util.find_spec(module)) is not None and found.origin is not None:
        return f"{name!r} can't be a project's name: there is a Python module {module} already"
    if problems := check_dns_label(name):
        return f"{name!r} can't be a project's name: {problems[0]}"
    if len(driver) > LONGEST_NAME:
        return f"--driver {driver}: must be no more than {LONGEST_NAME} characters"
    if problems := check_dns_subdomain(driver):
        return f"--driver {driver}: {problems[0]}"
    return ""


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
    timeout: Annotated[float, typer.Option(help="Seconds that the driver may take for an answer.", min=0.1)] = 30.0,
) -> None:
    """Check that a driver does what the kubelet expects: registration, repeated calls, restarts, wrong claims.

    With --command, the driver is started with KUBECONFIG and NODE_NAME set, for a cluster in memory that lives as long
    as the checks. Without it, it must be running, and --kubeconfig names its cluster; then nothing is restarted.

    Exit status: 0 if all is well, 1 if a check failed, 2 if the driver can't be checked.
    """

    console = Console(highlight=False, soft_wrap=True)
    outcomes: Counter[str] = Counter()

    async def work() -> None:
        async with checking(socket, command, node_name, kubeconfig, timeout) as subject:
            async for result in Checks(subject).run():
                outcomes[result.outcome] += 1
                console.print(f"[{COLOURS[result.outcome]}]{result.outcome:8}[/]{result.name}")
                if result.detail:
                    console.print(f"        {escape(result.detail)}")

    try:
        asyncio.run(work())
    except (CannotCheck, StatusError, OSError) as error:
        _refuse(str(error))
    counted = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in COLOURS if outcomes[outcome])
    console.print(f"{outcomes.total()} check{'s' if outcomes.total() > 1 else ''}: {counted}")
    if outcomes["failed"]:
        raise typer.Exit(PROBLEMS)


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    driver: Annotated[str, typer.Argument(help="MODULE:CLASS of the driver.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Options of the driver; `-- --help` lists them.")
    ] = None,
) -> None:
    """Run a driver on this node, next to a kubelet or `dray node`, until interrupted."""
    _, make = load_driver(driver)
    serve(make("", Path()), arguments or [], program=f"dray driver run {driver}")
