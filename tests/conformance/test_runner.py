"""The conformance program itself: which files it takes, and how it ends."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.conformance.__main__ import main

SEMVER = {"pairs": [{"a": "1.0.0", "b": "2.0.0", "compareTo": -1}]}
QUOTA = {"matchingResources": []}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "some.json").write_text(json.dumps(SEMVER))
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "other.json.gz").write_bytes(gzip.compress(json.dumps(QUOTA).encode()))
    (tmp_path / "README.md").write_text("no data")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """The exit status, and the last line."""
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, (captured.out or captured.err).splitlines()[-1]


def test_of_a_folder_only_the_data_of_the_kind_is_taken(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "semver", folder) == (1, "0 passed, 1 failed")
    assert run(capsys, "quota", folder) == (0, "0 passed, 0 failed")


def test_a_folder_without_data_of_the_kind_is_no_success(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "names", folder) == (2, f"{folder}: no data of this kind in it")


def test_a_file_that_is_not_there_or_not_json_ends_the_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "names", folder / "nothing.json") == (2, f"no such file: {folder / 'nothing.json'}")
    (folder / "some.json").write_text("{")
    status, line = run(capsys, "semver", folder / "some.json")
    assert (status, line.startswith(f"{folder / 'some.json'}: no data of ours")) == (2, True)


def test_an_unknown_kind_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    status, line = run(capsys, "nonsense")
    assert (status, line.startswith("unknown kind 'nonsense'; kinds: validation")) == (2, True)
