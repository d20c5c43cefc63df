"""The examples of the design documents work with the commands that the documents are about."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dray.api.codec import decode_object, encode_as
from dray.api.kinds import KINDS
from dray.cli.main import app
from dray.cli.sources import ManifestObject, Source, iter_objects, read_sources

SEEDS = Path(__file__).resolve().parents[3] / "examples" / "seeds"
EARLY = sorted((SEEDS / "kep-4381-early").glob("*.yaml"))
CURRENT = sorted(set(SEEDS.rglob("*.yaml")) - set(EARLY))


def objects(path: Path) -> list[ManifestObject]:
    (source,) = read_sources([str(path)])
    assert isinstance(source, Source)
    found = list(iter_objects(source))
    assert all(isinstance(obj, ManifestObject) for obj in found), found
    return [obj for obj in found if isinstance(obj, ManifestObject)]


def test_there_are_examples_of_every_document() -> None:
    assert {path.parent.name for path in CURRENT} == {"kep-4381", "kep-5254", "kep-5491", "kueue-kep-2941"}
    assert len(EARLY) == 3


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.relative_to(SEEDS).as_posix())
def test_an_example_is_valid_and_converts_there_and_back(path: Path) -> None:
    result = CliRunner().invoke(app, ["validate", "-f", str(path)])
    assert (result.exit_code, result.stdout) == (0, "")
    for version in ("v1", "v1beta2", "v1beta1"):
        assert CliRunner().invoke(app, ["convert", "-f", str(path), "--to", version]).exit_code == 0
        for obj in objects(path):
            if (f"resource.k8s.io/{version}", obj.kind) in KINDS:
                value = decode_object(obj.json_text)
                assert decode_object(encode_as(value, version)) == value


@pytest.mark.parametrize("path", EARLY, ids=lambda path: path.name)
def test_the_early_model_is_refused_with_a_reason(path: Path) -> None:
    result = CliRunner().invoke(app, ["validate", "-f", str(path)])
    assert result.exit_code == 1
    assert "no kind" in result.stdout
    (obj,) = objects(path)
    converted = CliRunner().invoke(app, ["convert", "-f", str(path), "--to", "v1"])
    assert converted.exit_code == (1 if obj.api_version.startswith("resource.k8s.io/") else 0)


def test_the_readme_lists_every_example() -> None:
    readme = (SEEDS / "README.md").read_text()
    for path in (*CURRENT, *EARLY):
        assert path.name in readme
