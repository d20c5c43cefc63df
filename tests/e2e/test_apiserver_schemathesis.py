"""Requests made up from our own OpenAPI documents: whatever they are, none of them is a server error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.servers import Json, Server, serving

pytest.importorskip("schemathesis")

GROUPS = [
    "api/v1",
    "apis/authentication.k8s.io/v1",
    "apis/authorization.k8s.io/v1",
    "apis/batch/v1",
    "apis/coordination.k8s.io/v1",
    "apis/events.k8s.io/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/resource.k8s.io/v1",
    "apis/resource.k8s.io/v1beta2",
    "apis/resource.k8s.io/v1beta1",
]
ENDLESS = ("watch", "sendInitialEvents")
"""Parameters that make a response go on; they have tests of their own."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("fuzz") / "data", "--memory") as server:
        yield server


def fuzz(server: Server, folder: Path, group: str, *options: str) -> None:
    admin = server.admin
    document = admin.expect(200, "GET", f"/openapi/v3/{group}").json
    for path in document["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict) and "parameters" in operation:
                operation["parameters"] = [part for part in operation["parameters"] if not is_endless(part)]
    file = folder / "openapi.json"
    file.write_text(json.dumps(document))
    logged = server.log.stat().st_size
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", str(file)),
            *("--url", f"https://{admin.host}:{admin.port}"),
            *("--header", f"Authorization: Bearer {admin.token}"),
            *("--tls-verify", str(server.data_dir / "pki" / "ca.crt")),
            *("--checks", "not_a_server_error", "--suppress-health-check", "all", "--request-timeout", "20"),
            *("--warnings", "off", "--no-color", "--generation-database", "none", *options),
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert "Traceback" not in server.log.read_text()[logged:]


def is_endless(parameter: Json) -> bool:
    return parameter.get("name") in ENDLESS


def test_a_short_fuzz_of_the_device_api_finds_no_server_error(server: Server, tmp_path: Path) -> None:
    fuzz(server, tmp_path, "apis/resource.k8s.io/v1", "--phases", "fuzzing", "-n", "3", "--max-time", "10")


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_a_long_fuzz_finds_no_server_error(server: Server, tmp_path: Path, group: str) -> None:
    fuzz(server, tmp_path, group, "--phases", "coverage,fuzzing", "-n", "50", "--max-time", "60")
