"""`dray get`, `describe`, `apply`, `delete` and `watch` against `dray apiserver`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dray.cli.main import app
from tests.e2e.servers import Server, serving
from tests.e2e.test_kubectl import MANIFEST


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server") / "data", "--memory") as server:
        yield server


class Dray:
    """The command, in this process unless it is to run beside others."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.kubeconfig = server.data_dir / "admin.kubeconfig"
        self.environment: dict[str, str | None] = {"HOME": str(folder), "COLUMNS": "200", "KUBECONFIG": None}

    def run(self, *arguments: str, text: str = "", code: int = 0, given: bool = True) -> str:
        where = ["--kubeconfig", str(self.kubeconfig)] if given else []
        done = CliRunner().invoke(app, [*arguments, *where], input=text, env=self.environment)
        assert done.exit_code == code, f"{arguments}: {done.exit_code}\n{done.output}\n{done.exception}"
        return done.output

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "dray", *arguments, "--kubeconfig", str(self.kubeconfig)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"})


@pytest.fixture
def dray(server: Server, tmp_path: Path) -> Iterator[Dray]:
    yield Dray(server, tmp_path)
    admin = server.admin
    for path in (
        "/api/v1/namespaces/default/pods",
        "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
        "/apis/resource.k8s.io/v1/deviceclasses",
    ):
        admin.expect(200, "DELETE", path)
    admin.close()


def test_apply_creates_changes_and_leaves_alone(dray: Dray) -> None:
    assert "resourceclaim.resource.k8s.io/one-gpu created" in dray.run("apply", "-f", "-", text=MANIFEST)
    assert dray.run("apply", "-f", "-", text=MANIFEST).count("unchanged") == 3
    changed = dray.run("apply", "-f", "-", text=MANIFEST.replace("app: demo", "app: other"))
    assert "resourceclaim.resource.k8s.io/one-gpu configured" in changed


def test_get_shows_tables_and_every_format(dray: Dray) -> None:
    dray.run("apply", "-f", "-", text=MANIFEST)
    assert "one-gpu   pending" in dray.run("get", "claims")
    assert "resourceclaim.resource.k8s.io/one-gpu   pending" in dray.run("get", "claims,pods")
    assert "NOMINATED NODE" in dray.run("get", "pods", "-o", "wide")
    assert "default     trainer" in dray.run("get", "po", "-A")
    assert dray.run("get", "pod/trainer", "-o", "name") == "pod/trainer\n"
    assert dray.run("get", "claims", "-o", "jsonpath={.items[*].metadata.name}") == "one-gpu"
    claim = json.loads(dray.run("get", "resourceclaims.resource.k8s.io", "one-gpu", "-o", "json"))
    assert "managedFields" not in claim["metadata"]
    assert "kind: Pod" in dray.run("get", "pods", "trainer", "-o", "yaml")
    assert "No resources found" in dray.run("get", "claims", "-l", "app=none")
    assert "trainer" in dray.run("get", "pods", "--field-selector", "status.phase=Pending")
    assert "kube-system" in dray.run("get", "namespaces")
    assert "cluster-admin" in dray.run("get", "clusterroles")


def test_describe_shows_fields_and_events(dray: Dray) -> None:
    dray.run("apply", "-f", "-", text=MANIFEST)
    uid = dray.run("get", "pod", "trainer", "-o", "jsonpath={.metadata.uid}")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e1"},
        "involvedObject": {"kind": "Pod", "name": "trainer", "namespace": "default", "uid": uid},
        "reason": "FailedScheduling",
        "message": "no free gpu",
        "type": "Warning",
        "count": 4,
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    dray.run("apply", "-f", "-", text=json.dumps(event))
    said = dray.run("describe", "pod", "trainer")
    assert "Image:  busybox:1.36" in said
    assert "no free gpu" in said
    assert "(x4)" in said
    assert "Device Class Name:  gpu.example.com" in dray.run("describe", "claim/one-gpu")


def test_delete_waits_for_finalizers(dray: Dray) -> None:
    held = MANIFEST.replace("labels: {app: demo}", "finalizers: [example.com/hold]")
    dray.run("apply", "-f", "-", text=held)
    waiting = dray.start("delete", "claim", "one-gpu")
    deadline = time.monotonic() + 20
    while not dray.run("get", "claim", "one-gpu", "-o", "jsonpath={.metadata.deletionTimestamp}"):
        assert time.monotonic() < deadline
    assert waiting.poll() is None
    dray.run("apply", "-f", "-", text=held.replace("[example.com/hold]", "[]"))
    assert waiting.wait(30) == 0
    assert waiting.stdout is not None
    assert waiting.stdout.read() == "resourceclaim.resource.k8s.io/one-gpu deleted\n"
    waiting.stdout.close()


def test_watch_prints_changes(dray: Dray) -> None:
    watching = dray.start("watch", "claims", "-o", "name")
    assert watching.stdout is not None
    dray.run("apply", "-f", "-", text=MANIFEST)
    assert watching.stdout.readline() == "ADDED    resourceclaim.resource.k8s.io/one-gpu\n"
    dray.run("delete", "claim", "one-gpu")
    assert watching.stdout.readline() == "DELETED  resourceclaim.resource.k8s.io/one-gpu\n"
    watching.terminate()
    watching.wait(10)
    watching.stdout.close()


def test_long_applies_show_every_object(dray: Dray, tmp_path: Path) -> None:
    claims = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": f"c{number}"},
            "spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "x"}}]}},
        }
        for number in range(60)
    ]
    file = tmp_path / "claims.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": claims}))
    assert dray.run("apply", "-f", str(file)).count("created") == 60


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        (("get", "nonsense"), "", 'the server doesn\'t have a resource type "nonsense"'),
        (("get", "pod", "nope"), "", 'Error from server (NotFound): pods "nope" not found'),
        (("get", "pods", "-o", "fancy"), "", "-o fancy: use wide, name, yaml, json or jsonpath=TEMPLATE"),
        (("get", "pods", "-o", "jsonpath={.x[}"), "", "an index is expected here"),
        (("get", "pods,claims", "x"), "", "with several kinds, give no names"),
        (("delete", "pods"), "", "which pods? Give names, -l SELECTOR, or --all"),
        (("delete",), "", "say what to delete"),
        (("delete", "pod", "nope"), "", 'pods "nope" not found'),
        (("apply", "-f", "/nowhere"), "", "/nowhere: No such file or directory"),
        (("apply", "-f", "-"), "kind: Pod", "standard input:1: an object needs apiVersion and kind"),
        (("apply", "-f", "-"), "apiVersion: v9\nkind: Nope\nmetadata: {name: x}", "Nope of v9"),
        (("apply", "-f", "-"), "a: [", "standard input:2: not valid YAML"),
        (("watch", "pods,claims"), "", "watch one kind, or one object, at a time"),
        (("get", "pods", "--context", "other"), "", "other"),
    ],
)
def test_mistakes_are_explained_in_a_line(dray: Dray, arguments: tuple[str, ...], text: str, said: str) -> None:
    assert said in dray.run(*arguments, text=text, code=1)


def test_invalid_objects_name_file_line_and_field(dray: Dray) -> None:
    said = dray.run("apply", "-f", "-", text=MANIFEST.replace("name: gpu\n", "name: GPU\n"), code=1)
    assert "standard input:9: resourceclaim.resource.k8s.io/one-gpu:" in said
    assert "spec.devices.requests[0].name" in said


def test_the_cluster_is_found_as_kubectl_finds_it(dray: Dray, tmp_path: Path) -> None:
    assert "no cluster given" in dray.run("get", "ns", code=1, given=False)
    dray.environment["KUBECONFIG"] = str(dray.kubeconfig)
    assert "default" in dray.run("get", "ns", given=False)
    dray.environment["KUBECONFIG"] = None
    for folder, name in ((".dray", "admin.kubeconfig"), (".kube", "config")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(dray.kubeconfig.read_bytes())
        assert "default" in dray.run("get", "ns", given=False)
