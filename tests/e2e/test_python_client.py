"""The `kubernetes` package for Python, as people use it, against `dray apiserver`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.servers import Server, serving

kubernetes = pytest.importorskip("kubernetes")

CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c1", "labels": {"app": "demo"}},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server") / "data", "--memory") as server:
        yield server


@pytest.fixture(scope="module")
def api(server: Server) -> Iterator[Any]:
    config = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(str(server.data_dir / "admin.kubeconfig"), client_configuration=config)
    with kubernetes.client.ApiClient(config) as api:
        yield api


@pytest.fixture
def namespace(api: Any, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("_", "-")[5:60].strip("-")
    core = kubernetes.client.CoreV1Api(api)
    core.create_namespace({"metadata": {"name": name}})
    return str(name)


def test_objects_are_created_listed_and_deleted(api: Any, namespace: str) -> None:
    core = kubernetes.client.CoreV1Api(api)
    pod = kubernetes.client.V1Pod(
        metadata=kubernetes.client.V1ObjectMeta(name="p1", labels={"app": "demo"}),
        spec=kubernetes.client.V1PodSpec(containers=[kubernetes.client.V1Container(name="c", image="x")]),
    )
    created = core.create_namespaced_pod(namespace, pod)
    assert created.status.phase == "Pending"
    listed = core.list_namespaced_pod(namespace, label_selector="app=demo")
    assert [item.metadata.name for item in listed.items] == ["p1"]
    core.delete_namespaced_pod("p1", namespace)
    assert core.list_namespaced_pod(namespace).items == []


def test_lists_are_paged(api: Any, namespace: str) -> None:
    core = kubernetes.client.CoreV1Api(api)
    for number in range(5):
        core.create_namespaced_config_map(namespace, {"metadata": {"name": f"cm{number}"}})
    names: list[str] = []
    token = None
    while True:
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert names == ["cm0", "cm1", "cm2", "cm3", "cm4", "kube-root-ca.crt"]


def test_a_watch_follows_a_list(api: Any, namespace: str) -> None:
    core = kubernetes.client.CoreV1Api(api)
    revision = core.list_namespaced_config_map(namespace).metadata.resource_version
    seen: list[tuple[str, str]] = []

    def follow() -> None:
        watch = kubernetes.watch.Watch()
        for event in watch.stream(
            core.list_namespaced_config_map, namespace, resource_version=revision, timeout_seconds=20
        ):
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 3:
                watch.stop()

    follower = threading.Thread(target=follow)
    follower.start()
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "x"}})
    core.patch_namespaced_config_map("x", namespace, {"data": {"a": "b"}})
    core.delete_namespaced_config_map("x", namespace)
    follower.join(30)
    assert seen == [("ADDED", "x"), ("MODIFIED", "x"), ("DELETED", "x")]


def test_every_patch_type_is_understood(api: Any, namespace: str) -> None:
    core = kubernetes.client.CoreV1Api(api)
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "x"}, "data": {"a": "1"}})
    core.patch_namespaced_config_map("x", namespace, {"data": {"b": "2"}})
    core.patch_namespaced_config_map("x", namespace, [{"op": "remove", "path": "/data/a"}])
    assert core.read_namespaced_config_map("x", namespace).data == {"b": "2"}


def test_errors_carry_the_status(api: Any, namespace: str) -> None:
    core = kubernetes.client.CoreV1Api(api)
    with pytest.raises(kubernetes.client.ApiException) as caught:
        core.read_namespaced_pod("nope", namespace)
    assert caught.value.status == 404
    assert '"reason":"NotFound"' in caught.value.body


def test_the_dynamic_client_finds_and_applies_claims(api: Any, namespace: str) -> None:
    dynamic = kubernetes.dynamic.DynamicClient(api)
    claims = dynamic.resources.get(api_version="resource.k8s.io/v1", kind="ResourceClaim")
    claims.create(body=CLAIM, namespace=namespace)
    read = claims.get(name="c1", namespace=namespace)
    assert read.spec.devices.requests[0].exactly.count == 1
    claims.patch(
        body={"metadata": {"labels": {"x": "y"}}},
        name="c1",
        namespace=namespace,
        content_type="application/merge-patch+json",
    )
    applied = {"apiVersion": CLAIM["apiVersion"], "kind": CLAIM["kind"], "metadata": {"annotations": {"by": "me"}}}
    claims.server_side_apply(body=applied, name="c1", namespace=namespace, field_manager="python", force_conflicts=True)
    metadata = claims.get(name="c1", namespace=namespace).metadata
    assert dict(metadata.labels) == {"app": "demo", "x": "y"}
    assert metadata.annotations["by"] == "me"
    old = dynamic.resources.get(api_version="resource.k8s.io/v1beta1", kind="ResourceClaim")
    assert old.get(name="c1", namespace=namespace).spec.devices.requests[0].deviceClassName == "gpu.example.com"
