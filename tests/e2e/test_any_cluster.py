"""The scheduler and the controllers, as processes, on any cluster that serves resource.k8s.io/v1.

`make e2e KUBECONFIG=FILE` runs this against the cluster of that file, as its administrator. Everything is made under
names of its own and removed at the end: nodes without machines, a driver without devices, pods that never start. If the
cluster has a kube-controller-manager, that one does its work, else `dray controllers` does.

Without a file, `dray apiserver` is the cluster. Nothing here depends on that.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dray.api.claims import CLAIM_FINALIZER
from dray.api.errors import NotFound
from dray.api.meta import Json
from dray.api.resources import (
    DEVICE_CLASSES,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
    Resource,
)
from dray.api.times import parse_time
from dray.runtime.http_client import HttpClient
from dray.testing.builders import (
    make_claim,
    make_class,
    make_device,
    make_node,
    make_pod,
    make_request,
    make_slice,
    make_template,
)
from tests.e2e.control_planes import connect, wait_until_true
from tests.e2e.servers import serving

GIVEN = os.environ.get("DRAY_E2E_KUBECONFIG", "")
PATIENCE = 60.0


@dataclass(frozen=True)
class Cluster:
    kubeconfig: Path
    id: str
    """In all names."""

    @property
    def namespace(self) -> str:
        return f"dray-e2e-{self.id}"

    @property
    def driver(self) -> str:
        return f"gpu-{self.id}.example.com"

    def node(self, number: int) -> str:
        return f"dray-e2e-{self.id}-{number}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("any-cluster")
    with ExitStack() as stack:
        if GIVEN:
            kubeconfig = Path(GIVEN)
        else:
            kubeconfig = stack.enter_context(serving(folder / "data", "--memory")).data_dir / "admin.kubeconfig"
        cluster = Cluster(kubeconfig, secrets.token_hex(3))
        asyncio.run(build(cluster))
        stack.callback(lambda: asyncio.run(remove(cluster)))
        if not asyncio.run(has_controllers(cluster)):
            stack.enter_context(component(folder, "controllers", "--kubeconfig", str(kubeconfig)))
        name = f"dray-e2e-{cluster.id}"
        arguments = ["scheduler", "--kubeconfig", str(kubeconfig), "--scheduler-name", name]
        stack.enter_context(component(folder, *arguments))
        asyncio.run(wait_for_account(cluster))
        yield cluster


@contextmanager
def component(folder: Path, *arguments: str) -> Iterator[None]:
    with (folder / f"{arguments[0]}.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "dray", *arguments], stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        status = process.wait(timeout=60)
    assert status == 0, (folder / f"{arguments[0]}.log").read_text()[-3000:]


async def build(cluster: Cluster) -> None:
    async with connect(cluster.kubeconfig) as client:
        try:
            await client.get_raw("/apis/resource.k8s.io/v1")
        except NotFound:
            pytest.skip("this cluster doesn't serve resource.k8s.io/v1")
        namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace}}
        await client.create(NAMESPACES, namespace)
        device_class = make_class(cluster.driver, f'device.driver == "{cluster.driver}"')
        await client.create(DEVICE_CLASSES, device_class)
        for number in (1, 2):
            await client.create(NODES, make_node(cluster.node(number), labels={"dray-e2e": cluster.id}))
            devices = [make_device("gpu-0", numa=number, model="a"), make_device("gpu-1", numa=3, model="a")]
            item = make_slice(cluster.node(number), devices, driver=cluster.driver)
            await client.create(RESOURCE_SLICES, item)
        template = make_template("one", request(cluster), namespace=cluster.namespace)
        await client.create(RESOURCE_CLAIM_TEMPLATES, template, cluster.namespace)


async def wait_for_account(cluster: Cluster) -> None:
    """Some servers let nobody make pods in a namespace before it has its service account."""

    async def has_account() -> bool:
        accounts = await client.list(SERVICE_ACCOUNTS, cluster.namespace)
        return any(account["metadata"]["name"] == "default" for account in accounts["items"])

    async with connect(cluster.kubeconfig) as client:
        await wait_until_true(has_account, "the namespace has a service account", PATIENCE)


async def remove(cluster: Cluster) -> None:
    async with connect(cluster.kubeconfig) as client:
        for pod in (await client.list(PODS, cluster.namespace)).get("items") or ():
            with suppress(NotFound):
                await client.delete(PODS, pod["metadata"]["name"], cluster.namespace, grace_period_seconds=0)
        for number in (1, 2):
            await client.delete(RESOURCE_SLICES, f"{cluster.node(number)}-{cluster.driver}")
            await client.delete(NODES, cluster.node(number))
        await client.delete(DEVICE_CLASSES, cluster.driver)
        await client.delete(NAMESPACES, cluster.namespace)
    # Whether the namespace really goes is up to the cluster's controllers.


async def has_controllers(cluster: Cluster) -> bool:
    """Whether a kube-controller-manager is at work."""
    async with connect(cluster.kubeconfig) as client:
        try:
            lease = await client.get(LEASES, "kube-controller-manager", "kube-system")
        except NotFound:
            return False
    renewed = lease["spec"].get("renewTime")
    return bool(renewed) and datetime.now(UTC) - parse_time(renewed) < timedelta(minutes=1)


def request(cluster: Cluster, **more: Any) -> Json:
    return make_request(**more, class_name=cluster.driver)


def pod(cluster: Cluster, name: str, **spec: Any) -> Json:
    return make_pod(
        name,
        namespace=cluster.namespace,
        schedulerName=f"dray-e2e-{cluster.id}",
        nodeSelector={"dray-e2e": cluster.id},
        tolerations=[{"operator": "Exists"}],  # nodes without machines are tainted sooner or later
        **spec,
    )


class User:
    """Somebody with a client and patience."""

    def __init__(self, client: HttpClient, cluster: Cluster) -> None:
        self.client = client
        self._cluster = cluster

    async def create(self, resource: Resource, obj: Json) -> Json:
        return await self.client.create(resource, obj, self._cluster.namespace)

    async def get(self, resource: Resource, name: str) -> Json:
        return await self.client.get(resource, name, self._cluster.namespace)

    async def wait_bound(self, name: str) -> Json:
        await wait_until_true(lambda: self._is_bound(name), f"pod {name} is bound", PATIENCE)
        return await self.get(PODS, name)

    async def _is_bound(self, name: str) -> bool:
        return "nodeName" in (await self.get(PODS, name))["spec"]

    async def wait_refused(self, name: str) -> str:
        await wait_until_true(lambda: self._is_refused(name), f"pod {name} is told why it waits", PATIENCE)
        return str((await self._condition(name))["message"])

    async def _is_refused(self, name: str) -> bool:
        return (await self._condition(name)).get("reason") == "Unschedulable"

    async def _condition(self, name: str) -> Json:
        conditions = (await self.get(PODS, name)).get("status", {}).get("conditions") or ()
        return next((c for c in conditions if c["type"] == "PodScheduled"), {})

    async def claim_of(self, name: str) -> Json:
        (status,) = (await self.get(PODS, name))["status"]["resourceClaimStatuses"]
        return await self.get(RESOURCE_CLAIMS, status["resourceClaimName"])

    async def end(self, name: str) -> None:
        await self.client.delete(PODS, name, self._cluster.namespace, grace_period_seconds=0)

    async def wait_gone(self, resource: Resource, name: str) -> None:
        await wait_until_true(lambda: self._is_gone(resource, name), f"{resource.plural} {name} is gone", PATIENCE)

    async def _is_gone(self, resource: Resource, name: str) -> bool:
        try:
            await self.get(resource, name)
        except NotFound:
            return True
        return False


async def test_a_pod_with_a_template_gets_its_claim_devices_and_node(cluster: Cluster) -> None:
    async with connect(cluster.kubeconfig) as client:
        user = User(client, cluster)
        await user.create(PODS, pod(cluster, "single", template="one"))
        bound = await user.wait_bound("single")
        claim = await user.claim_of("single")
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        assert (result["driver"], result["pool"]) == (cluster.driver, bound["spec"]["nodeName"])
        assert claim["status"]["reservedFor"] == [
            {"resource": "pods", "name": "single", "uid": bound["metadata"]["uid"]}
        ]
        assert CLAIM_FINALIZER in claim["metadata"]["finalizers"]
        (owner,) = claim["metadata"]["ownerReferences"]
        assert owner["uid"] == bound["metadata"]["uid"]

        async def is_told() -> bool:
            events = (await client.list(EVENTS, cluster.namespace))["items"]
            return any(e["reason"] == "Scheduled" and e["involvedObject"]["name"] == "single" for e in events)

        await wait_until_true(is_told, "the event about the pod", PATIENCE)
        await user.end("single")
        await user.wait_gone(RESOURCE_CLAIMS, claim["metadata"]["name"])


async def test_a_finished_pod_gives_its_devices_back(cluster: Cluster) -> None:
    async with connect(cluster.kubeconfig) as client:
        user = User(client, cluster)
        await user.create(PODS, pod(cluster, "short", template="one"))
        await user.wait_bound("short")
        claim = await user.claim_of("short")
        await client.patch(PODS, "short", {"status": {"phase": "Succeeded"}}, cluster.namespace, subresource="status")
        await user.wait_gone(RESOURCE_CLAIMS, claim["metadata"]["name"])
        await user.end("short")


async def test_pods_share_a_claim_and_its_node(cluster: Cluster) -> None:
    async with connect(cluster.kubeconfig) as client:
        user = User(client, cluster)
        await user.create(RESOURCE_CLAIMS, make_claim("shared", request(cluster), namespace=cluster.namespace))
        for name in ("left", "right"):
            await user.create(PODS, pod(cluster, name, claim="shared"))
        left, right = [await user.wait_bound(name) for name in ("left", "right")]
        assert left["spec"]["nodeName"] == right["spec"]["nodeName"]
        claim = await user.get(RESOURCE_CLAIMS, "shared")
        assert {entry["name"] for entry in claim["status"]["reservedFor"]} == {"left", "right"}
        for name in ("left", "right"):
            await user.end(name)

        async def is_free() -> bool:
            return not (await user.get(RESOURCE_CLAIMS, "shared")).get("status")

        await wait_until_true(is_free, "the claim that nobody uses is deallocated", PATIENCE)


async def test_a_selector_and_a_constraint_are_heeded(cluster: Cluster) -> None:
    numa = f"device.attributes['{cluster.driver}'].numa"
    wanted = [
        request(cluster, name="far", selector=f"{numa} == 3"),
        request(cluster, name="near", selector=f"{numa} < 3"),
    ]
    constraint = {"matchAttribute": f"{cluster.driver}/model"}
    async with connect(cluster.kubeconfig) as client:
        user = User(client, cluster)
        claim = make_claim("two", *wanted, namespace=cluster.namespace, constraints=[constraint])
        await user.create(RESOURCE_CLAIMS, claim)
        await user.create(PODS, pod(cluster, "choosy", claim="two"))
        await user.wait_bound("choosy")
        results = (await user.get(RESOURCE_CLAIMS, "two"))["status"]["allocation"]["devices"]["results"]
        assert [(result["request"], result["device"]) for result in results] == [("far", "gpu-1"), ("near", "gpu-0")]
        await user.end("choosy")


async def test_a_gated_pod_waits_for_its_gate(cluster: Cluster) -> None:
    async with connect(cluster.kubeconfig) as client:
        user = User(client, cluster)
        await user.create(PODS, pod(cluster, "gated", template="one", schedulingGates=[{"name": "example.com/wait"}]))
        await user.create(PODS, pod(cluster, "free", template="one"))
        await user.wait_bound("free")
        assert "nodeName" not in (await user.get(PODS, "gated"))["spec"]
        await client.patch(PODS, "gated", {"spec": {"schedulingGates": None}}, cluster.namespace)
        await user.wait_bound("gated")
        for name in ("gated", "free"):
            await user.end(name)


async def test_a_claim_in_use_stays_until_its_pod_is_gone(cluster: Cluster) -> None:
    async with connect(cluster.kubeconfig) as client:
        user = User(client, cluster)
        await user.create(RESOURCE_CLAIMS, make_claim("held", request(cluster), namespace=cluster.namespace))
        await user.create(PODS, pod(cluster, "holder", claim="held"))
        await user.wait_bound("holder")
        await client.delete(RESOURCE_CLAIMS, "held", cluster.namespace)
        claim = await user.get(RESOURCE_CLAIMS, "held")
        assert claim["metadata"]["deletionTimestamp"]
        assert claim["status"]["allocation"]
        await user.end("holder")
        await user.wait_gone(RESOURCE_CLAIMS, "held")


async def test_a_pod_that_does_not_fit_is_told_why_and_goes_when_there_is_room(cluster: Cluster) -> None:
    async with connect(cluster.kubeconfig) as client:
        user = User(client, cluster)
        pair = make_claim("pair", request(cluster, count=2), namespace=cluster.namespace)
        await user.create(RESOURCE_CLAIMS, pair)
        singles = ["a", "b", "c"]
        for name in singles:  # three of the four devices, so that no node has two left
            await user.create(PODS, pod(cluster, name, template="one"))
        for name in singles:
            await user.wait_bound(name)
        await user.create(PODS, pod(cluster, "couple", claim="pair"))
        first, *ours = (await user.wait_refused("couple")).splitlines()
        assert "2 cannot allocate all claims" in first
        assert any("needs 2 devices" in line for line in ours)
        told = await run_dray(cluster, "explain", "pod/couple", "--namespace", cluster.namespace)
        assert "needs 2 devices" in told
        for name in singles:
            await user.end(name)
        await user.wait_bound("couple")
        await user.end("couple")


async def run_dray(cluster: Cluster, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "dray",
        *arguments,
        "--kubeconfig",
        str(cluster.kubeconfig),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode()
