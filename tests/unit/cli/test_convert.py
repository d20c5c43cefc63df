"""`dray convert`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from dray.api.manifests import ManifestError, iter_documents
from dray.cli.convert import Format, write_objects
from dray.cli.main import app

SLICE = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: d
  nodeName: node-1
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    basic:
      capacity: {memory: {value: "1e3"}}
"""


def convert(text: str, *options: str) -> Result:
    return CliRunner().invoke(app, ["convert", "-f", "-", *options], input=text)


def test_an_object_is_written_in_another_version() -> None:
    result = convert(SLICE, "--to", "v1")
    assert result.exit_code == 0
    converted = yaml.safe_load(result.stdout)
    assert converted["apiVersion"] == "resource.k8s.io/v1"
    assert converted["spec"]["devices"] == [{"name": "gpu-0", "capacity": {"memory": {"value": "1e3"}}}]


def test_the_result_converts_back() -> None:
    there = convert(SLICE, "--to", "v1beta2").stdout
    back = convert(there, "--to", "v1beta1").stdout
    assert yaml.safe_load(back) == yaml.safe_load(SLICE)


def test_other_objects_pass_through() -> None:
    result = convert(f"kind: Pod\napiVersion: v1\nmetadata: {{name: p}}\n---\n{SLICE}", "--to", "v1", "-o", "json")
    pod, converted = json.loads(result.stdout)["items"]
    assert pod == {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}
    assert converted["kind"] == "ResourceSlice"


def test_one_object_as_json_is_no_list() -> None:
    assert json.loads(convert(SLICE, "--to", "v1", "-o", "json").stdout)["kind"] == "ResourceSlice"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "kind: DeviceTaintRule\napiVersion: resource.k8s.io/v1\n",
            "DeviceTaintRule doesn't exist in v1beta1, only in v1",
        ),
        (
            SLICE.replace("driver: d", "driver: 5"),
            "standard input:5: ResourceSlice s: spec.driver: expected text, found a number",
        ),
        (SLICE.replace("v1beta1", "v1alpha2"), 'no kind "ResourceSlice" is registered'),
        ("a: [", "standard input:2: not valid YAML"),
        ("spec: {}\n", "Object 'Kind' is missing"),
    ],
)
def test_what_can_not_be_converted_is_explained(text: str, message: str) -> None:
    result = convert(f"{text}\n---\n{SLICE}", "--to", "v1beta1")
    assert result.exit_code == 1
    assert message in result.stderr
    assert yaml.safe_load(result.stdout)["kind"] == "ResourceSlice"


def test_a_missing_file_is_unusable(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["convert", "-f", str(tmp_path / "nothing.yaml"), "--to", "v1"])
    assert result.exit_code == 2


@pytest.mark.parametrize(
    "text", ["yes", "y", "1e3", "010", "null", "", "~", "2001-01-01", "a: b", "- x", "1_0", "# no"]
)
def test_text_stays_text_in_yaml(text: str) -> None:
    obj: Any = {"a": text, text: "b"}
    (document,) = iter_documents(write_objects([obj], Format.YAML))
    assert not isinstance(document, ManifestError)
    assert document.value == obj


def test_expressions_of_several_lines_stay_readable() -> None:
    assert "expression: |-\n  a &&\n  b\n" in write_objects([{"expression": "a &&\nb"}], Format.YAML)
