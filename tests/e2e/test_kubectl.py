"""The real kubectl against `dray apiserver`: what people type every day."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.servers import Server, serving

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]

MANIFEST = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  selectors:
  - cel: {expression: 'device.driver == "gpu.example.com"'}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one-gpu, labels: {app: demo}}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  containers:
  - name: main
    image: busybox:1.36
    command: [sleep, "3600"]
    resources: {claims: [{name: gpu}], requests: {cpu: 100m}}
  resourceClaims:
  - {name: gpu, resourceClaimName: one-gpu}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server") / "data", "--memory") as server:
        yield server


class Kubectl:
    """kubectl in a namespace of its own."""

    def __init__(self, server: Server, folder: Path, namespace: str) -> None:
        self.namespace = namespace
        self._folder = folder
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(server.data_dir / "admin.kubeconfig"),
            "HOME": str(folder),  # its discovery cache
        }

    def run(self, *arguments: str, text: str = "", code: int = 0) -> str:
        """What it prints; `code` is the exit status that it should end with."""
        command = ["kubectl", "-n", self.namespace, *arguments]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=60, env=self._environment, check=False
        )
        assert done.returncode == code, f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["kubectl", "-n", self.namespace, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
        )

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "-o", "json"))


@pytest.fixture
def kubectl(server: Server, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    namespace = request.node.name.replace("_", "-")[5:60].strip("-").lower()
    kubectl = Kubectl(server, tmp_path, namespace)
    kubectl.run("create", "namespace", namespace)
    yield kubectl
    kubectl.run("delete", "deviceclass", "--all")


def test_get_shows_tables_and_every_output_format(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", text=MANIFEST)
    table = kubectl.run("get", "resourceclaims,pods,deviceclasses")
    assert "resourceclaim.resource.k8s.io/one-gpu   pending" in table
    assert "pod/trainer   0/1     Pending   0" in table
    assert "NOMINATED NODE" in kubectl.run("get", "pods", "-o", "wide")
    assert kubectl.run("get", "pods", "-o", "name").strip() == "pod/trainer"
    assert kubectl.run("get", "resourceclaims", "-o", "jsonpath={.items[*].metadata.name}") == "one-gpu"
    assert "kind: ResourceClaim" in kubectl.run("get", "resourceclaim", "one-gpu", "-o", "yaml")
    assert "one-gpu" in kubectl.run("get", "resourceclaims", "-l", "app=demo", "--show-labels")
    assert "No resources found" in kubectl.run("get", "resourceclaims", "-l", "app!=demo")
    assert "trainer" in kubectl.run("get", "pods", "--field-selector", "status.phase=Pending")
    assert "trainer" in kubectl.run("get", "po", "-A", "--sort-by", ".metadata.name")
    custom = kubectl.run("get", "pods", "-o", "custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image")
    assert "busybox:1.36" in custom


def test_describe_tells_about_claims_and_pods(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", text=MANIFEST)
    claim = kubectl.run("describe", "resourceclaim", "one-gpu")
    assert "Device Class Name:  gpu.example.com" in claim
    pod = kubectl.run("describe", "pod", "trainer")
    assert "Image:      busybox:1.36" in pod
    assert "Requests:\n      cpu:        100m" in pod


def test_client_side_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    assert "pod/trainer created" in kubectl.run("apply", "-f", "-", text=MANIFEST)
    assert "pod/trainer unchanged" in kubectl.run("apply", "-f", "-", text=MANIFEST)
    newer = MANIFEST.replace("busybox:1.36", "busybox:1.37")
    assert "pod/trainer configured" in kubectl.run("apply", "-f", "-", text=newer)
    assert kubectl.json("get", "pod", "trainer")["spec"]["containers"][0]["image"] == "busybox:1.37"


def test_server_side_apply_reports_conflicts_and_can_force(kubectl: Kubectl) -> None:
    kubectl.run("apply", "--server-side", "--field-manager", "alice", "-f", "-", text=MANIFEST)
    other = MANIFEST.replace("app: demo", "app: other")
    refused = kubectl.run("apply", "--server-side", "--field-manager", "bob", "-f", "-", text=other, code=1)
    assert 'conflict with "alice": .metadata.labels.app' in refused
    kubectl.run("apply", "--server-side", "--field-manager", "bob", "--force-conflicts", "-f", "-", text=other)
    assert kubectl.json("get", "resourceclaim", "one-gpu")["metadata"]["labels"] == {"app": "other"}


def test_client_side_apply_can_move_on_to_the_server(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", text=MANIFEST)
    assert "pod/trainer serverside-applied" in kubectl.run("apply", "--server-side", "-f", "-", text=MANIFEST)
    managers = kubectl.json("get", "pod", "trainer", "--show-managed-fields")["metadata"]["managedFields"]
    assert ("kubectl", "Apply") in {(entry["manager"], entry["operation"]) for entry in managers}


def test_diff_shows_what_apply_would_change(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", text=MANIFEST)
    assert kubectl.run("diff", "-f", "-", text=MANIFEST) == ""
    changed = kubectl.run("diff", "-f", "-", text=MANIFEST.replace("app: demo", "app: other"), code=1)
    assert "-    app: demo" in changed
    assert "+    app: other" in changed


def test_create_makes_the_kinds_it_has_words_for(kubectl: Kubectl) -> None:
    for arguments in (
        ("configmap", "cm", "--from-literal=a=b"),
        ("secret", "generic", "s", "--from-literal=a=b"),
        ("serviceaccount", "robot"),
        ("job", "j", "--image=x"),
        ("quota", "q", "--hard=count/resourceclaims.resource.k8s.io=2"),
        ("role", "reader", "--verb=get", "--resource=resourceclaims"),
        ("rolebinding", "reads", "--role=reader", f"--serviceaccount={kubectl.namespace}:robot"),
    ):
        assert "created" in kubectl.run("create", *arguments)
    assert kubectl.json("get", "configmap", "cm")["data"] == {"a": "b"}
    assert kubectl.run("create", "token", "robot").count(".") == 2
    assert "already exists" in kubectl.run("create", "configmap", "cm", code=1)
    assert "pod/runner created" in kubectl.run("run", "runner", "--image=x", "--restart=Never")


def test_unknown_fields_are_refused(kubectl: Kubectl) -> None:
    said = kubectl.run("apply", "-f", "-", text=MANIFEST.replace("labels: {app", "lables: {app"), code=1)
    assert 'unknown field "metadata.lables"' in said


def test_invalid_objects_are_explained(kubectl: Kubectl) -> None:
    said = kubectl.run("apply", "-f", "-", text=MANIFEST.replace("name: gpu\n", "name: GPU\n"), code=1)
    assert 'spec.devices.requests[0].name: Invalid value: "GPU"' in said


def test_labels_annotations_and_patches_change_objects(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", text=MANIFEST)
    kubectl.run("label", "resourceclaim", "one-gpu", "team=a")
    kubectl.run("annotate", "pod", "trainer", "note=hello")
    kubectl.run("label", "resourceclaim", "one-gpu", "app-")
    assert kubectl.json("get", "resourceclaim", "one-gpu")["metadata"]["labels"] == {"team": "a"}
    assert kubectl.json("get", "pod", "trainer")["metadata"]["annotations"]["note"] == "hello"
    kubectl.run("patch", "pod", "trainer", "-p", '{"metadata":{"labels":{"x":"1"}}}')
    kubectl.run("patch", "pod", "trainer", "--type=merge", "-p", '{"metadata":{"labels":{"y":"2"}}}')
    operations = '[{"op":"replace","path":"/metadata/labels/x","value":"3"}]'
    kubectl.run("patch", "pod", "trainer", "--type=json", "-p", operations)
    assert kubectl.json("get", "pod", "trainer")["metadata"]["labels"] == {"x": "3", "y": "2"}
    kubectl.run("set", "image", "pod/trainer", "main=busybox:2")
    assert kubectl.json("get", "pod", "trainer")["spec"]["containers"][0]["image"] == "busybox:2"


def test_edit_saves_what_the_editor_changed(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", text=MANIFEST)
    kubectl._environment["KUBE_EDITOR"] = "sed -i 's/app: demo/app: edited/'"
    assert "edited" in kubectl.run("edit", "resourceclaim", "one-gpu")
    assert kubectl.json("get", "resourceclaim", "one-gpu")["metadata"]["labels"] == {"app": "edited"}


def test_replace_needs_the_current_revision(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", text=MANIFEST)
    current = kubectl.json("get", "resourceclaim", "one-gpu")
    current["metadata"]["labels"]["app"] = "replaced"
    assert "replaced" in kubectl.run("replace", "-f", "-", text=json.dumps(current))
    assert "the object has been modified" in kubectl.run("replace", "-f", "-", text=json.dumps(current), code=1)


def test_delete_waits_until_the_object_is_gone(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", text=MANIFEST)
    kubectl.run(
        "patch", "resourceclaim", "one-gpu", "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/x"]}}'
    )
    waiting = kubectl.start("delete", "resourceclaim", "one-gpu", "--wait", "--timeout=30s")
    deadline = time.monotonic() + 20
    while "deletionTimestamp" not in kubectl.json("get", "resourceclaim", "one-gpu")["metadata"]:
        assert time.monotonic() < deadline
    assert waiting.poll() is None
    kubectl.run("patch", "resourceclaim", "one-gpu", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert waiting.wait(30) == 0
    assert waiting.stdout is not None
    assert 'resourceclaim.resource.k8s.io "one-gpu" deleted' in waiting.stdout.read()
    assert "not found" in kubectl.run("delete", "resourceclaim", "one-gpu", code=1)
    assert kubectl.run("delete", "resourceclaim", "one-gpu", "--ignore-not-found") == ""
    kubectl.run("delete", "pods", "--all", "--now")


def test_wait_sees_conditions_and_fields_change(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", text=MANIFEST)
    ready = kubectl.start("wait", "--for=condition=Ready", "pod/trainer", "--timeout=30s")
    running = kubectl.start("wait", "--for=jsonpath={.status.phase}=Running", "pod/trainer", "--timeout=30s")
    gone = kubectl.start("wait", "--for=delete", "pod/trainer", "--timeout=30s")
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    kubectl.run("patch", "pod", "trainer", "--subresource=status", "-p", json.dumps({"status": status}))
    assert (ready.wait(30), running.wait(30)) == (0, 0)
    kubectl.run("delete", "pod", "trainer")
    assert gone.wait(30) == 0
    for process in (ready, running, gone):
        assert process.stdout is not None
        process.stdout.close()


def test_get_watch_follows_changes(kubectl: Kubectl) -> None:
    kubectl.run("create", "configmap", "first")
    watching = kubectl.start("get", "configmaps", "--watch", "--no-headers", "-o", "custom-columns=N:.metadata.name")
    assert watching.stdout is not None
    seen = {watching.stdout.readline().strip(), watching.stdout.readline().strip()}
    assert seen == {"first", "kube-root-ca.crt"}
    kubectl.run("create", "configmap", "second")
    assert watching.stdout.readline().strip() == "second"
    watching.terminate()
    watching.wait(10)
    watching.stdout.close()


def test_explain_knows_every_field(kubectl: Kubectl) -> None:
    said = kubectl.run("explain", "resourceclaim.spec.devices.requests.exactly")
    assert "allocationMode" in said
    assert "deviceClassName\t<string> -required-" in said
    assert "resourceClaims" in kubectl.run("explain", "pod.spec")
    assert "expression" in kubectl.run("explain", "resourceclaim.spec.devices.constraints.cel")
    assert "basic" in kubectl.run("explain", "resourceslice.spec.devices", "--api-version=resource.k8s.io/v1beta1")


def test_api_resources_and_versions_list_what_is_served(kubectl: Kubectl) -> None:
    resources = kubectl.run("api-resources")
    for line in ("resourceclaims ", "devicetaintrules ", "pods                        po", "leases ", "jobs "):
        assert line in resources
    assert "resource.k8s.io/v1beta1" in kubectl.run("api-versions")
    assert "Server Version: v1.37" in kubectl.run("version")


def test_auth_can_i_answers_for_oneself_and_others(kubectl: Kubectl) -> None:
    assert kubectl.run("auth", "can-i", "create", "resourceclaims").strip() == "yes"
    kubectl.run("create", "serviceaccount", "robot")
    kubectl.run("create", "role", "reader", "--verb=get", "--resource=resourceclaims")
    kubectl.run("create", "rolebinding", "reads", "--role=reader", f"--serviceaccount={kubectl.namespace}:robot")
    robot = f"--as=system:serviceaccount:{kubectl.namespace}:robot"
    deadline = time.monotonic() + 10
    while kubectl_allows(kubectl, "get", robot) != "yes":
        assert time.monotonic() < deadline
    assert kubectl.run("auth", "can-i", "delete", "resourceclaims", robot, code=1).strip() == "no"
    assert "kubernetes-admin" in kubectl.run("auth", "whoami")
    assert "*.*" in kubectl.run("auth", "can-i", "--list")
    refused = kubectl.run("delete", "resourceclaim", "x", robot, code=1)
    assert f'User "system:serviceaccount:{kubectl.namespace}:robot" cannot delete resource "resourceclaims"' in refused


def kubectl_allows(kubectl: Kubectl, verb: str, who: str) -> str:
    done = subprocess.run(
        ["kubectl", "-n", kubectl.namespace, "auth", "can-i", verb, "resourceclaims", who],
        capture_output=True,
        text=True,
        env=kubectl._environment,
        check=False,
    )
    return done.stdout.strip()


def test_events_are_shown_for_their_object(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", text=MANIFEST)
    about = {"apiVersion": "v1", "kind": "Pod", "name": "trainer", "namespace": kubectl.namespace}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "trainer.1"},
        "involvedObject": {**about, "uid": kubectl.json("get", "pod", "trainer")["metadata"]["uid"]},
        "reason": "FailedScheduling",
        "message": "no node has a free gpu",
        "type": "Warning",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 3,
    }
    kubectl.run("create", "-f", "-", text=json.dumps(event))
    assert "no node has a free gpu" in kubectl.run("events", "--for", "pod/trainer")
    assert "FailedScheduling" in kubectl.run("get", "events")
    assert "no node has a free gpu" in kubectl.run("describe", "pod", "trainer")


def test_nodes_can_be_cordoned_and_tainted(kubectl: Kubectl) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    kubectl.run("create", "-f", "-", text=json.dumps(node))
    kubectl.run("cordon", "n1")
    assert "SchedulingDisabled" in kubectl.run("get", "nodes")
    kubectl.run("uncordon", "n1")
    kubectl.run("taint", "nodes", "n1", "broken=yes:NoExecute")
    assert kubectl.json("get", "node", "n1")["spec"]["taints"][0]["effect"] == "NoExecute"
    kubectl.run("apply", "-f", "-", text=MANIFEST)
    kubectl.run("drain", "n1", "--ignore-daemonsets", "--force")
    kubectl.run("delete", "node", "n1")


def test_old_versions_are_read_and_written(kubectl: Kubectl) -> None:
    old = """
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: old}
spec:
  devices:
    requests: [{name: g, deviceClassName: gpu.example.com, count: 2}]
"""
    said = kubectl.run("apply", "-f", "-", text=old)
    assert "resource.k8s.io/v1beta1 ResourceClaim is deprecated" in said
    request = kubectl.json("get", "resourceclaims.v1.resource.k8s.io", "old")["spec"]["devices"]["requests"][0]
    assert request["exactly"]["count"] == 2


def test_a_namespace_is_emptied_by_hand_and_finalized(kubectl: Kubectl) -> None:
    kubectl.run("create", "namespace", "short-lived")
    kubectl.run("delete", "namespace", "short-lived", "--wait=false")
    namespace = kubectl.json("get", "namespace", "short-lived")
    assert namespace["status"]["phase"] == "Terminating"
    namespace["spec"]["finalizers"] = []
    path = "/api/v1/namespaces/short-lived/finalize"
    kubectl.run("replace", "--raw", path, "-f", "-", text=json.dumps(namespace))
    assert "not found" in kubectl.run("get", "namespace", "short-lived", code=1)
