"""Tokens in files and programs that give credentials."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dray.runtime.credentials import NoCredentials, TokenFile
from dray.runtime.exec_credentials import ExecCredentials, ExecPlugin

PLUGIN = """
import json, os, pathlib, sys
count = pathlib.Path(sys.argv[1])
count.write_text(str(int(count.read_text()) + 1))
told = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
status = json.loads(sys.argv[2].replace("COUNT", count.read_text()).replace("ZONE", os.environ.get("ZONE", "")))
print(json.dumps({"kind": "ExecCredential", "apiVersion": told["apiVersion"], "status": status}))
"""


class Plugin:
    """A program that counts how often it was run."""

    def __init__(self, folder: Path, **status: Any) -> None:
        self._script = folder / "plugin.py"
        self._script.write_text(PLUGIN)
        self._count = folder / "count"
        self._count.write_text("0")
        arguments = (str(self._script), str(self._count), json.dumps(status))
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        plugin = ExecPlugin(sys.executable, arguments, (("ZONE", "b"),))
        self.credentials = ExecCredentials(plugin, {}, now=lambda: self.now)

    @property
    def runs(self) -> int:
        return int(self._count.read_text())


async def test_a_token_file_is_read_again_after_a_while(tmp_path: Path) -> None:
    now = 0.0
    path = tmp_path / "token"
    path.write_text("one\n")
    credentials = TokenFile(path, lambda: now)
    assert await credentials.authorization() == "Bearer one"
    path.write_text("two\n")
    assert await credentials.authorization() == "Bearer one"
    now = 60.0
    assert await credentials.authorization() == "Bearer two"


async def test_a_refused_token_is_worth_another_try_only_if_the_file_changed(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = TokenFile(path)
    await credentials.authorization()
    assert not credentials.refused()
    path.write_text("two")
    assert credentials.refused()
    assert await credentials.authorization() == "Bearer two"


async def test_a_token_file_that_is_gone_or_empty_is_no_credential(tmp_path: Path) -> None:
    with pytest.raises(NoCredentials, match="No such file"):
        await TokenFile(tmp_path / "gone").authorization()
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(NoCredentials, match="is empty"):
        await TokenFile(tmp_path / "empty").authorization()


async def test_a_program_is_run_once_while_its_answer_holds(tmp_path: Path) -> None:
    until = "2026-01-01T00:10:00Z"
    plugin = Plugin(tmp_path, token="t-COUNT-ZONE", expirationTimestamp=until)
    assert await plugin.credentials.authorization() == "Bearer t-1-b"
    assert await plugin.credentials.authorization() == "Bearer t-1-b"
    plugin.now += timedelta(minutes=11)
    assert await plugin.credentials.authorization() == "Bearer t-2-b"


async def test_a_refused_credential_is_asked_for_again(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, token="t-COUNT")
    await plugin.credentials.authorization()
    assert plugin.credentials.refused()
    assert await plugin.credentials.authorization() == "Bearer t-2"
    assert plugin.runs == 2


async def test_a_program_may_give_a_certificate(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, clientCertificateData="CERT", clientKeyData="KEY")
    assert await plugin.credentials.key_pair() == (b"CERT", b"KEY")
    assert await plugin.credentials.authorization() is None
    assert plugin.runs == 1


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({}, "neither a token nor a client certificate"),
        ({"clientKeyData": "KEY"}, "only one of clientCertificateData and clientKeyData"),
        ({"token": "t", "expirationTimestamp": "soon"}, "expirationTimestamp"),
    ],
)
async def test_an_answer_of_no_use_is_explained(tmp_path: Path, status: Any, problem: str) -> None:
    with pytest.raises(NoCredentials, match=problem):
        await Plugin(tmp_path, **status).credentials.authorization()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise SystemExit(3)", "exit status 3"),
        ("print('hello')", "not JSON"),
        ('print(\'{"kind": "Pod"}\')', "expected an ExecCredential"),
        (
            'print(\'{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1"}\')',
            "has no status",
        ),
    ],
)
async def test_a_program_that_fails_is_explained(code: str, problem: str) -> None:
    credentials = ExecCredentials(ExecPlugin(sys.executable, ("-c", code)), {})
    with pytest.raises(NoCredentials, match=problem):
        await credentials.authorization()


async def test_a_program_that_is_not_there_comes_with_its_hint() -> None:
    credentials = ExecCredentials(ExecPlugin("/nowhere/login", install_hint="pip install login"), {})
    with pytest.raises(NoCredentials, match="No such file or directory\npip install login"):
        await credentials.authorization()
