"""`dray driver`: what it refuses, and how."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dray.cli.driver import app
from dray.driver import Driver


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["Demo"], "use small letters, digits and '-'"),
        (["9gpu"], "beginning with a letter"),
        (["gpu-"], "use small letters, digits and '-'"),
        (["class"], "it is a word of Python"),
        (["yes"], "it is a word of YAML"),
        (["json"], "there is a Python module json already"),
        (["taken"], "taken is not empty"),
        (["file"], "file: Not a directory"),
        (["gpu", "--driver", "GPU!"], "--driver GPU!: a lowercase RFC 1123 subdomain"),
        (["gpu", "--driver", "x" * 64], "no more than 63 characters"),
    ],
)
def test_a_project_that_can_not_be_made_is_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "something").touch()
    (tmp_path / "file").touch()
    made = CliRunner().invoke(app, ["new", *arguments])
    assert made.exit_code == 2
    assert made.stderr.startswith("error: ")
    assert reason in made.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"taken", "file"}


@pytest.mark.parametrize("name", ["device", "driver", "gpu-driver", "h100"])
def test_names_that_the_code_uses_itself_make_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["new", name]).exit_code == 0
    module = name.replace("-", "_")
    source = (tmp_path / name / "src" / module / "driver.py").read_text()
    scope: dict[str, object] = {"__name__": module}
    exec(compile(source, "driver.py", "exec"), scope)
    (made,) = (value for value in scope.values() if isinstance(value, type) and value.__module__ == module)
    assert issubclass(made, Driver)
    assert made.name == f"{name}.example.com"


def test_a_socket_that_is_not_there_can_not_be_checked(tmp_path: Path) -> None:
    (tmp_path / "b-reg.sock").touch()
    checked = CliRunner().invoke(app, ["check", str(tmp_path / "a-reg.sock")])
    assert checked.exit_code == 2
    assert f"error: there is no socket {tmp_path}/a-reg.sock (there is b-reg.sock)" in checked.stderr


def test_a_driver_that_does_not_start_can_not_be_checked(tmp_path: Path) -> None:
    checked = CliRunner().invoke(app, ["check", str(tmp_path / "x-reg.sock"), "--command", "exit 3"])
    assert checked.exit_code == 2
    assert "error: `exit 3` has ended with status 3 and has made no socket" in checked.stderr
