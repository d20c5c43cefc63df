"""Resolving CDI names, as a container runtime does it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dray.node.cdi import CdiDeviceMissing, CdiRegistry


def write(directory: Path, name: str, devices: dict[str, str], common: str = "") -> None:
    directory.mkdir(exist_ok=True)
    spec = {
        "cdiVersion": "0.6.0",
        "kind": "gpu.example.com/device",
        "devices": [{"name": key, "containerEdits": {"env": [value]}} for key, value in devices.items()],
        "containerEdits": {"env": [common]} if common else {},
    }
    (directory / name).write_text(json.dumps(spec))


def test_edits_of_devices_and_of_their_files_are_merged_in_order(tmp_path: Path) -> None:
    write(tmp_path / "a", "one.json", {"gpu-0": "A=0", "gpu-1": "A=1"}, common="C=1")
    names = ["gpu.example.com/device=gpu-1", "gpu.example.com/device=gpu-0", "gpu.example.com/device=gpu-1"]
    assert CdiRegistry(tmp_path / "a").resolve(names).env == ("C=1", "A=1", "C=1", "A=0")


def test_later_directories_win(tmp_path: Path) -> None:
    write(tmp_path / "a", "one.json", {"gpu-0": "A=old"})
    write(tmp_path / "b", "one.json", {"gpu-0": "A=new"})
    registry = CdiRegistry(tmp_path / "a", tmp_path / "b")
    assert registry.resolve(["gpu.example.com/device=gpu-0"]).env == ("A=new",)


def test_yaml_is_read_too_and_broken_files_of_others_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.yaml").write_text(
        "cdiVersion: 0.6.0\nkind: nic.example.com/port\ndevices: [{name: p0, containerEdits: {env: [P=0]}}]\n"
    )
    assert CdiRegistry(tmp_path).resolve(["nic.example.com/port=p0"]).env == ("P=0",)


def test_missing_devices_are_named(tmp_path: Path) -> None:
    with pytest.raises(CdiDeviceMissing, match=r"unresolvable CDI devices a.com/b=c \(looked in"):
        CdiRegistry(tmp_path).resolve(["a.com/b=c"])
