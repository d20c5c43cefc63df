"""The command line that every driver has."""

from __future__ import annotations

from pathlib import Path

import pytest

from dray.driver.app import parse_arguments
from dray.driver.plugin import check_socket_path


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NODE_NAME", "POD_UID"):
        monkeypatch.delenv(name, raising=False)


def test_a_driver_needs_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments("gpu.example.com", [], "demo-gpu")
    assert "demo-gpu: error: --node-name is needed (or $NODE_NAME)" in capsys.readouterr().err


def test_a_controller_needs_none() -> None:
    options, _ = parse_arguments("gpu.example.com", ["--controller"])
    assert options.is_controller


def test_in_a_pod_the_variables_say_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "node-1")
    monkeypatch.setenv("POD_UID", "0f2b1c3d-5a6b-4c7d-8e9f-001122334455")
    options, _ = parse_arguments("gpu.example.com", [])
    assert options.node_name == "node-1"
    assert options.instance, "two pods of an upgrade need sockets of their own"
    name = "a-rather-long-name-for-a-driver.of-a-vendor.example.com"
    check_socket_path(options.paths.registry / f"{name}-{options.instance}-reg.sock")


def test_one_directory_can_hold_everything() -> None:
    options, _ = parse_arguments("gpu.example.com", ["--node-name", "n", "--root", "/x"])
    assert options.paths.cdi == Path("/x/cdi")
