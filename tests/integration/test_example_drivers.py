"""The drivers in examples/drivers: each does what its first lines promise."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from examples.drivers import nic
from examples.drivers.acme import AcmeGpus
from examples.drivers.fpga import FabricController, FabricFpgas
from examples.drivers.gpus import Gpus
from examples.drivers.mesh import Accelerators
from examples.drivers.mig import MigGpus
from examples.drivers.shared_gpu import SharedGpus

from dray.api.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS
from dray.cluster.accelerators import FABRIC_LABEL
from dray.cluster.models import make_class
from dray.driver import PoolController
from dray.testing.drivers import PrepareRefused, check_driver, expect_prepared, run_driver
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

ACME_ROOT = Path(__file__).parents[2] / "examples" / "stories" / "cluster-configuration" / "host"


@pytest.mark.parametrize("make", [Gpus, MigGpus, SharedGpus, Accelerators, AcmeGpus, lambda: nic.driver])
async def test_every_driver_passes_the_conformance_checks(make, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("HOST_ROOT", str(ACME_ROOT))
    await check_driver(make)


async def test_a_gpu_is_a_variable_and_a_device_node() -> None:
    async with run_driver(Gpus()) as node:
        expect_prepared(await node.prepare("gpu-3"), env={"GPU_0": "gpu-3"}, device_nodes=["/dev/gpu-3"])


async def test_a_broken_gpu_is_tainted() -> None:
    driver = Gpus()
    async with run_driver(driver) as node:
        driver.report_broken("gpu-3", "it fell off the bus")
        await node.wait_published()
        published = await node.published()
        assert [name for name, device in published.items() if "taints" in device] == ["gpu-3"]


async def test_a_nic_takes_its_mtu_from_the_claim() -> None:
    async with run_driver(nic.driver) as node:
        expect_prepared(await node.prepare("nic-0"), env={"NIC": "nic-0", "NIC_MTU": "1500"})
        expect_prepared(await node.prepare("nic-1", config=[{"mtu": 9000}]), env={"NIC_MTU": "9000"})
        with pytest.raises(PrepareRefused, match="mtu 65536 is above the class's limit of 9000"):
            await node.prepare("nic-2", config=[{"mtu": 65536}])
        with pytest.raises(PrepareRefused, match="mtu 9000 is above the class's limit of 4000"):
            await node.prepare("nic-3", class_config=[{"maxMtu": 4000}], config=[{"mtu": 9000}])


async def test_a_shared_gpu_tells_the_container_its_part() -> None:
    async with run_driver(SharedGpus()) as node:
        expect_prepared(await node.prepare("gpu-0"), env={"GPU_MEMORY_LIMIT": "10Gi"})
        expect_prepared(await node.prepare("gpu-0", consumed={"memory": "20Gi"}), env={"GPU_MEMORY_LIMIT": "20Gi"})


async def test_acme_takes_commands_from_classes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_ROOT", str(ACME_ROOT))
    async with run_driver(AcmeGpus()) as node:
        with pytest.raises(PrepareRefused, match="not from a claim"):
            await node.prepare("card-0-part-0", config=[{"kind": "GPUInit", "initCommand": ["/bin/true"]}])


async def test_accelerators_learn_who_else_is_in_the_claim() -> None:
    async with run_driver(Accelerators()) as node:
        expect_prepared(await node.prepare("mla-1", "mla-2"), env={"MLA_DEVICES": "mla-1,mla-2"})


async def test_partitions_of_a_gpu_exclude_each_other() -> None:
    driver = MigGpus(gpus=1)
    drivers = {driver.name: lambda node, state: driver}
    async with local_cluster(drivers=drivers) as cluster:
        await cluster.client.create(DEVICE_CLASSES, make_class("mig", f'device.driver == "{driver.name}"'))

        def profile(name: str) -> str:
            return f'device.attributes["gpu.nvidia.com"].profile == "{name}"'

        await add_pod(cluster, "half", "mig", selector=profile("3g.20gb"))
        await wait_phase(cluster, "half", "Running")
        await add_pod(cluster, "whole", "mig", selector=profile("7g.40gb"))
        await add_pod(cluster, "other-half", "mig", selector=profile("3g.20gb"))
        await wait_phase(cluster, "other-half", "Running")
        assert await devices_of(cluster, "half") + await devices_of(cluster, "other-half") == [
            "gpu-0-mig-3g20gb-0",
            "gpu-0-mig-3g20gb-4",
        ]
        assert sorted(map(len, driver.partitions.values())) == [1, 1]
        whole = await get_pod(cluster, "whole")
        assert whole is not None
        assert "nodeName" not in whole["spec"]


async def test_claims_share_a_gpu_by_memory() -> None:
    drivers = {SharedGpus.name: lambda node, state: SharedGpus()}
    async with local_cluster(drivers=drivers) as cluster:
        await cluster.client.create(DEVICE_CLASSES, make_class(SharedGpus.name))
        for name, memory in (("large", "60Gi"), ("small", "20Gi"), ("next", "30Gi")):
            amount = {"requests": {"memory": memory}}
            await add_pod(cluster, name, SharedGpus.name, command="env | grep GPU | sort", capacity=amount)
        pods = {name: await wait_phase(cluster, name, "Succeeded") for name in ("large", "small", "next")}
        assert read_log(cluster, pods["small"]).split() == ["GPU=gpu-0", "GPU_MEMORY_LIMIT=20Gi"]


async def test_an_fpga_on_the_fabric_is_attached_before_the_pod_starts() -> None:
    drivers = {FabricFpgas.name: lambda node, state: FabricFpgas()}
    async with local_cluster(nodes=2, drivers=drivers) as cluster:
        client = cluster.client
        await client.patch(NODES, "node-2", {"metadata": {"labels": {FABRIC_LABEL: "fabric-1"}}})
        await client.create(DEVICE_CLASSES, make_class(FabricFpgas.name))
        pools = PoolController(FabricFpgas(), client)
        publishing = asyncio.create_task(pools.run())
        await pools.wait_published()
        await add_pod(cluster, "user", FabricFpgas.name, command="echo $FPGA")

        async def is_reserved() -> bool:
            found = await client.list(RESOURCE_CLAIMS)
            return any((claim.get("status") or {}).get("allocation") for claim in found["items"])

        await eventually(is_reserved, "the claim is allocated")
        waiting = await get_pod(cluster, "user")
        assert waiting is not None
        assert "nodeName" not in waiting["spec"]
        attaching = asyncio.create_task(FabricController(client).run())
        pod = await wait_phase(cluster, "user", "Succeeded")
        assert pod["spec"]["nodeName"] == "node-2"
        assert read_log(cluster, pod) == "fabric-1-f2000/fpga-0\n"
        await client.delete(PODS, "user", "default")
        await wait_gone(cluster, "user")
        for task in (attaching, publishing):
            task.cancel()
        await asyncio.gather(attaching, publishing, return_exceptions=True)
