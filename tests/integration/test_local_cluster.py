"""A whole cluster in one process: what its parts make of devices that break, drivers that change, restarts."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dray.api.errors import BadRequest, Forbidden, NotFound
from dray.api.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_SLICES
from dray.apiserver.pod_logs import LogRequest, serve_log
from dray.apiserver.requests import Query
from dray.apiserver.resources import find_row
from dray.apiserver.targets import Target
from dray.cluster.identities import node_identity
from dray.cluster.inventories import find_model
from dray.cluster.local import ClusterOptions, LocalCluster
from dray.cluster.models import DriverModel, Model, alike, make_class
from dray.cluster.simulated import SimulatedDriver
from dray.driver.base import make_device
from dray.driver.publisher import PoolsRefused
from dray.testing.waiting import eventually
from tests.integration.clusters import (
    add_pod,
    devices_of,
    get_pod,
    local_cluster,
    read_log,
    wait_gone,
    wait_phase,
)
from tests.integration.sample_drivers import Gpus

GPU = "gpu.nvidia.com"


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """Short, because sockets are below."""
    path = Path(tempfile.mkdtemp(prefix="dray-"))
    yield path
    shutil.rmtree(path)


def simulated(cluster: LocalCluster, node: str, driver: str = GPU) -> SimulatedDriver:
    found = cluster.nodes[node].runners[driver].driver
    assert isinstance(found, SimulatedDriver)
    return found


# Devices


async def test_a_pod_with_a_broken_device_learns_of_it_is_evicted_and_the_device_stays_unused() -> None:
    async with local_cluster("shared-gpu", runtime="simulated") as cluster:
        pod = await add_pod(cluster, "victim", GPU)
        await wait_phase(cluster, "victim", "Running")

        async def health() -> Any:
            found = await get_pod(cluster, "victim")
            statuses = (found or {}).get("status", {}).get("containerStatuses", [{}])[0]
            return statuses.get("allocatedResourcesStatus")

        (status,) = await eventually(health, "the pod's status shows health")
        assert status["name"] == "claim:gpu"
        assert [item["health"] for item in status["resources"]] == ["Healthy"]
        simulated(cluster, "node-1").break_device("gpu-0", "overheated")
        await wait_gone(cluster, "victim")
        assert pod["metadata"]["uid"]
        await add_pod(cluster, "next", GPU)
        await wait_phase(cluster, "next", "Running")
        assert await devices_of(cluster, "next") == ["gpu-1"]
        simulated(cluster, "node-1").mend_device("gpu-0")

        async def is_mended() -> bool:
            slices = await cluster.client.list(RESOURCE_SLICES)
            return not any("taints" in device for item in slices["items"] for device in item["spec"].get("devices", ()))

        await eventually(is_mended, "the taint is gone")


async def test_a_mesh_over_several_nodes_is_given_out_as_a_whole_or_in_parts() -> None:
    driver = "tpu.google.com"

    def topology(name: str) -> str:
        return f'device.attributes["{driver}"].topology == "{name}"'

    async with local_cluster("tpu-4x4", nodes=4, runtime="simulated") as cluster:
        await add_pod(cluster, "half", driver, selector=topology("2x4"))
        await wait_phase(cluster, "half", "Running")
        await add_pod(cluster, "whole", driver, selector=topology("4x4"))
        await add_pod(cluster, "quarter", driver, selector=topology("2x2"))
        quarter = await wait_phase(cluster, "quarter", "Running")
        assert await devices_of(cluster, "half") == ["tpu-2x4-0"]
        assert quarter["spec"]["nodeName"] in ("node-3", "node-4")
        await cluster.client.delete(PODS, "half", "default")
        await cluster.client.delete(PODS, "quarter", "default")
        await wait_phase(cluster, "whole", "Running")


# Drivers


async def test_a_driver_is_replaced_by_a_newer_one_while_a_pod_runs() -> None:
    old, new = Gpus(2), Gpus(3)
    drivers = {Gpus.name: lambda node, state: old}
    async with local_cluster(drivers=drivers) as cluster:
        await cluster.client.create(DEVICE_CLASSES, make_class(Gpus.name))
        node = cluster.nodes["node-1"]
        await add_pod(cluster, "pod", Gpus.name)
        await wait_phase(cluster, "pod", "Running")
        runner = node.start_driver(Gpus.name, instance="v2", driver=new)
        await runner.wait_registered()
        await runner.wait_published()
        await node.stop_driver(Gpus.name)
        await cluster.client.delete(PODS, "pod", "default")
        await wait_gone(cluster, "pod")
        assert [what for what, _ in old.calls] == ["prepare"]
        assert [what for what, _ in new.calls] == ["unprepare"]
        slices = await cluster.client.list(RESOURCE_SLICES)
        assert [len(item["spec"]["devices"]) for item in slices["items"]] == [3]


async def test_pods_go_on_when_the_agent_is_restarted() -> None:
    async with local_cluster("acme") as cluster:
        await add_pod(cluster, "pod", "acme-gpu", command="until [ -e go ]; do sleep 0.02; done; echo done")
        pod = await wait_phase(cluster, "pod", "Running")
        node = cluster.nodes["node-1"]
        await node.stop_agent()
        node.start_agent()
        (node.root / "pods" / pod["metadata"]["uid"] / "main" / "root" / "go").touch()
        await wait_phase(cluster, "pod", "Succeeded")
        assert read_log(cluster, pod) == "done\n"
        await node.wait_ready()


# The cluster


async def test_another_model_leaves_no_devices_of_the_one_before(data_dir: Path) -> None:
    async def drivers(model: str) -> set[str]:
        options = ClusterOptions(data_dir, find_model(model), nodes=1, runtime="simulated")
        async with LocalCluster(options) as cluster:
            slices = await cluster.client.list(RESOURCE_SLICES)
            return {item["spec"]["driver"] for item in slices["items"]}

    assert await drivers("fpga") == {"fpga.example.com"}
    assert await drivers("ring") == {"mla.example.com"}


async def test_a_cluster_whose_devices_are_refused_does_not_start(data_dir: Path) -> None:
    twice = DriverModel("gpu.example.com", devices=(make_device("gpu-0"), make_device("gpu-0")))
    with pytest.raises(PoolsRefused, match=r"spec.devices\[1\]: Duplicate value"):
        await LocalCluster(ClusterOptions(data_dir, Model("twice", "", alike(twice)), nodes=1, memory=True)).start()


async def test_what_was_stored_is_there_after_a_restart_and_pods_that_may_restart_do(data_dir: Path) -> None:
    options = ClusterOptions(data_dir, find_model("acme"), nodes=2)
    async with LocalCluster(options) as cluster:
        await add_pod(cluster, "once", "acme-gpu")
        await wait_phase(cluster, "once", "Running")
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "always"},
            "spec": {"containers": [{"name": "main", "image": "none", "command": ["sleep", "1000"]}]},
        }
        await cluster.client.create(PODS, pod, "default")
        await wait_phase(cluster, "always", "Running")
    async with LocalCluster(ClusterOptions(data_dir, find_model("acme"), nodes=1)) as cluster:
        once = await wait_phase(cluster, "once", "Failed")
        assert once["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143

        async def has_restarted() -> bool:
            found = await get_pod(cluster, "always")
            if found is None:
                return True  # it was on the node that is no more
            return bool(found["status"]["containerStatuses"][0]["restartCount"])

        await eventually(has_restarted, "the other pod runs again")
        nodes = await cluster.client.list(NODES)
        assert [node["metadata"]["name"] for node in nodes["items"]] == ["node-1"]


async def test_a_node_may_only_write_what_is_its_own() -> None:
    async with local_cluster("acme", nodes=2) as cluster:
        client = cluster.client_of(node_identity("node-1"), "test")
        await client.patch(NODES, "node-1", {"metadata": {"annotations": {"a": "b"}}})
        with pytest.raises(Forbidden, match=r'node "node-1" is not allowed to modify node "node-2"'):
            await client.patch(NODES, "node-2", {"metadata": {"annotations": {"a": "b"}}})


# Logs through the API


async def read_through_api(cluster: LocalCluster, pod: str, query: str) -> str:
    row = find_row("", "v1", "pods")
    assert row is not None
    target = Target(row, "v1", "default", pod, "log")
    response = await serve_log(cluster.server.registry, target, Query(query), cluster.server.logs)
    assert not isinstance(response.body, bytes)
    return b"".join([piece async for piece in response.body]).decode()


async def test_logs_are_had_through_the_api() -> None:
    async with local_cluster("acme") as cluster:
        await add_pod(cluster, "pod", "acme-gpu", command="echo one; echo two")
        await wait_phase(cluster, "pod", "Succeeded")
        assert await read_through_api(cluster, "pod", "") == "one\ntwo\n"
        assert await read_through_api(cluster, "pod", "tailLines=1") == "two\n"
        assert await read_through_api(cluster, "pod", "follow=true&container=main") == "one\ntwo\n"
        for query, error, text in (
            ("container=other", BadRequest, "container other is not valid for pod pod"),
            ("previous=true", NotFound, 'previous terminated container "main" in pod "pod" not found'),
            ("tailLines=-1", BadRequest, "tailLines"),
            ("timestamps=true", BadRequest, "not kept"),
        ):
            with pytest.raises(error, match=text):
                await read_through_api(cluster, "pod", query)


async def test_logs_of_a_pod_that_has_no_node_are_refused() -> None:
    async with local_cluster() as cluster:
        await add_pod(cluster, "pod", "no-such-class")
        with pytest.raises(BadRequest, match="pod pod does not have a host assigned"):
            await read_through_api(cluster, "pod", "")
        request = LogRequest("elsewhere", "default", "pod", "uid", "main")
        with pytest.raises(BadRequest, match="node elsewhere is not part of this cluster"):
            await anext(cluster.server.logs.read(request))
