"""docs/driver-authors.md: its code runs, its tests pass, and what it says about commands and files is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from dray.cli import driver as driver_commands
from dray.cluster.driverchecks import Checks
from dray.driver import Driver
from dray.driver.app import parse_arguments
from dray.driver.metrics import DriverMetrics
from dray.testing.drivers import check_driver

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "driver-authors.md").read_text()
PROJECT = Path(driver_commands.__file__).parent / "driver_project"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run_code() -> dict[str, Any]:
    """The page's code, as one module."""
    scope: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(blocks("python")):
        exec(compile(block, f"<block {number}>", "exec"), scope)
    return scope


CODE = run_code()
TESTS = [name for name in CODE if name.startswith("test_")]
DRIVERS = [
    name
    for name, value in CODE.items()
    if isinstance(value, type) and issubclass(value, Driver) and value.__module__ == "page" and name != "Fpgas"
]


@pytest.mark.parametrize("name", TESTS)
async def test_the_pages_tests_pass(name: str) -> None:
    await CODE[name]()


@pytest.mark.parametrize("name", [*DRIVERS, "driver"])
async def test_the_pages_drivers_pass_the_checks(name: str) -> None:
    await check_driver(CODE[name])


def test_the_manifests_are_those_of_a_new_project() -> None:
    text = (PROJECT / "daemonset.yaml.tmpl").read_text()
    objects = {obj["kind"]: obj for obj in yaml.safe_load_all(text)}
    rules, mounts = map(yaml.safe_load, blocks("yaml"))
    assert rules["rules"] == objects["ClusterRole"]["rules"]
    (container,) = objects["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert mounts["volumeMounts"] == container["volumeMounts"]
    strategy = objects["DaemonSet"]["spec"]["updateStrategy"]["rollingUpdate"]
    assert strategy == {"maxSurge": 1, "maxUnavailable": 0}


def test_the_checks_are_those_that_are_made() -> None:
    (session,) = (block for block in blocks("console") if "driver check" in block)
    told = re.findall(r"^passed  (.*)$", session, re.MULTILINE)
    assert told == [name for name, _ in Checks(None).all_checks()]  # type: ignore[arg-type]
    assert f"{len(told)} checks: {len(told)} passed" in session


def test_the_metrics_exist() -> None:
    registry = CollectorRegistry()
    DriverMetrics(registry)
    kinds = {metric.name: metric.type for metric in registry.collect()}
    exposed = {f"{name}_total" if kind == "counter" else name for name, kind in kinds.items()}
    assert set(re.findall(r"^\| `(dray_driver_\w+)", PAGE, re.MULTILINE)) == exposed


def test_the_options_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments("gpu.example.com", ["--help"])
    known = capsys.readouterr().out
    for command in ("new", "check"):
        known += CliRunner().invoke(driver_commands.app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    assert {option for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE) if option not in known} == set()


def test_the_files_are_those_of_a_new_project() -> None:
    made = {path.format(module="demo_gpu") for path in driver_commands.FILES}
    told = re.findall(r"^\| `((?:src|tests|examples|deploy)/[^`]*)` \|", PAGE, re.MULTILINE)
    assert len(told) == 5
    assert all(any(path.startswith(name) for path in made) for name in told)
    targets = re.findall(r"^([a-z]+):", (PROJECT / "Makefile.tmpl").read_text(), re.MULTILINE)
    assert set(re.findall(r"\bmake ([a-z]+)(?=`|\s+#)", PAGE)) <= set(targets)
