"""`dray cel`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dray.cli.main import app

SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: A100}, index: {int: 0}}
    capacity: {memory: {value: 40Gi}}
  - name: gpu-1
    attributes: {model: {string: H100}, index: {int: 1}}
    capacity: {memory: {value: 80Gi}}
"""


@pytest.fixture
def slices(tmp_path: Path) -> Path:
    path = tmp_path / "slices.yaml"
    path.write_text(SLICE)
    return path


def cel(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["cel", *map(str, arguments)])


def attribute(name: str) -> str:
    return f'device.attributes["gpu.example.com"].{name}'


def test_without_devices_type_cost_and_what_is_read_are_shown() -> None:
    result = cel(f'{attribute("model")} == "A100"')
    assert result.exit_code == 0
    assert result.output == "type   bool\ncost   5\nreads  gpu.example.com/model\n"


def test_every_device_has_a_row_with_the_reason(slices: Path) -> None:
    result = cel(f'{attribute("model")} == "A100" && {attribute("index")} == 0', "-f", slices)
    assert result.exit_code == 0
    rows = [line.split(maxsplit=2) for line in result.output.splitlines() if line.startswith("gpu.example.com/")]
    assert rows[0] == ["gpu.example.com/node-1/gpu-0", "true"]
    assert rows[1][1:] == ["false", f'{attribute("model")} == "A100" (model is "H100")']
    assert "1 true, 1 false" in result.output


def test_a_misspelt_attribute_is_pointed_out(slices: Path) -> None:
    result = cel(f'{attribute("modle")} == "A100"', "-f", slices)
    assert result.exit_code == 1
    assert "no such key: modle" in result.output
    assert "attribute `modle` is on 0 of 2 devices; `model` is on 2" in result.output


def test_a_capacity_taken_for_an_attribute_is_pointed_out(slices: Path) -> None:
    result = cel(f"has({attribute('memory')})", "-f", slices)
    assert "attribute `memory` is on 0 of 2 devices; capacity `memory` is on 2" in result.output


def test_sub_expressions_of_one_device(slices: Path) -> None:
    result = cel(f"{attribute('index')} + 1 == 2", "-f", slices, "--device", "gpu-1", "--explain")
    assert "gpu.example.com/node-1/gpu-1: true" in result.output
    assert f"{attribute('index')} + 1 = 2" in result.output
    assert "gpu-0" not in result.output


def test_a_constraint_is_about_the_set(slices: Path) -> None:
    text = "devices.map(d, d.attributes['gpu.example.com'].index).max() == 1"
    result = cel("--devices", text, "-f", slices)
    assert result.exit_code == 0
    assert "true for the set of gpu.example.com/node-1/gpu-0, gpu.example.com/node-1/gpu-1" in result.output
    result = cel("--devices", text, "-f", slices, "-d", "gpu-0", "--explain")
    assert "false for the set of gpu.example.com/node-1/gpu-0" in result.output
    assert 'devices.map(d, d.attributes["gpu.example.com"].index) = [0]' in result.output


def test_an_expression_that_does_not_compile_is_shown_with_a_caret() -> None:
    result = cel("device.driver = 1")
    assert result.exit_code == 1
    assert " | device.driver = 1\n |               ^" in result.output


def test_an_estimate_above_the_limit_is_told() -> None:
    result = cel('device.capacity["d"].m != quantity("1")')
    assert result.exit_code == 0
    assert "so Kubernetes refuses it" in result.output


def test_unknown_devices_and_files_are_refused(slices: Path) -> None:
    assert cel("true", "-f", slices, "-d", "gpu-7").exit_code == 2
    assert cel("true", "-f", "no-such-file.yaml").exit_code == 2


def test_gates_decide_what_is_known() -> None:
    text = "device.attributes['d'].x.includes(1)"
    assert cel(text).exit_code == 0
    assert cel(text, "--feature-gates", "DRAListTypeAttributes=false").exit_code == 1
