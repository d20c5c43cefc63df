"""The SDK's drivers over real sockets, with a kubelet that does as it is told and an API in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest

from dray.api.resources import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.cluster.kubelets import Exchange, FakeKubelet
from dray.cluster.memory import add_allocated_claim, add_node, memory_api
from dray.driver import ContainerEdits, DriverBuilder, DriverPaths, DriverRunner, Pool, PoolController, make_device
from dray.driver.plugin import SocketPathTooLong
from dray.driver.publisher import PoolsRefused
from dray.proto import dra_health_v1_pb2, dra_health_v1_pb2_grpc
from dray.testing.drivers import PrepareRefused, check_driver, expect_prepared, run_driver
from dray.testing.waiting import eventually
from tests.integration.sample_drivers import NAME, Gpus, WatchedGpus


async def test_a_claim_is_prepared_and_unprepared() -> None:
    async with run_driver(Gpus()) as node:
        prepared = await node.prepare("gpu-1", "gpu-2")
        expect_prepared(prepared, env={"GPU_DEVICES_0": "gpu-1", "GPU_DEVICES_1": "gpu-2"})
        assert [(item.pool_name, item.device_name) for item in prepared.devices] == [
            ("node-1", "gpu-1"),
            ("node-1", "gpu-2"),
        ]
        assert len(node.cdi_files) == 1
        await node.unprepare(prepared)
        assert node.cdi_files == []


async def test_the_calls_are_those_of_the_kep() -> None:
    async with run_driver(Gpus()) as node:
        prepared = await node.prepare("gpu-0")
        await node.unprepare(prepared)
        name = prepared.claim["metadata"]["name"]
        assert node.kubelet.record == [
            Exchange("GetInfo"),
            Exchange("NotifyRegistrationStatus"),
            Exchange("NodePrepareResources", (name,)),
            Exchange("NodeUnprepareResources", (name,)),
        ]
        info = node.kubelet.info
        assert (info.type, info.name) == ("DRAPlugin", NAME)
        assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]


async def test_a_kubelet_that_speaks_only_v1beta1_is_served() -> None:
    async with run_driver(Gpus(), version="v1beta1.DRAPlugin") as node:
        prepared = await node.prepare("gpu-0")
        expect_prepared(prepared, env={"GPU_DEVICES_0": "gpu-0"})


async def test_a_second_prepare_is_answered_from_the_checkpoint() -> None:
    driver = Gpus()
    async with run_driver(driver) as node:
        first = await node.prepare("gpu-0")
        second = await node.prepare_claim(first.claim)
        assert first.devices == second.devices
        assert [what for what, _ in driver.calls] == ["prepare"]


async def test_one_claims_failure_is_its_own() -> None:
    driver = Gpus()
    async with run_driver(driver) as node:
        good, bad = await node.allocate("gpu-0"), await node.allocate("gpu-9")
        answers = await node.kubelet.prepare(good, bad)
        assert answers[good["metadata"]["uid"]].error == ""
        assert "allocated devices are gone: node-1/gpu-9" in answers[bad["metadata"]["uid"]].error


async def test_a_claim_that_does_not_exist_is_not_found() -> None:
    async with run_driver(Gpus()) as node:
        claim = await node.allocate("gpu-0")
        replaced = {"metadata": {**claim["metadata"], "uid": "of-an-earlier-claim"}}
        for unknown in (replaced, {"metadata": {"namespace": "default", "name": "none", "uid": "x"}}):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await node.kubelet.prepare(unknown)
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_claim_that_is_not_allocated_is_refused() -> None:
    async with run_driver(Gpus()) as node:
        claim = await node.allocate("gpu-0")
        await node.client.update(RESOURCE_CLAIMS, {**claim, "status": {}}, subresource="status")
        with pytest.raises(PrepareRefused, match="is not allocated"):
            await node.prepare_claim(claim)


async def test_class_parameters_come_before_the_claims() -> None:
    driver = Gpus()
    async with run_driver(driver) as node:
        entries = [
            {"source": source, "opaque": {"driver": NAME, "parameters": {"level": level}}}
            for source, level in (("FromClaim", 2), ("FromClass", 1), ("FromClaim", 3))
        ]
        other = {"source": "FromClaim", "opaque": {"driver": "other.example.com", "parameters": {"level": 4}}}
        claim = await add_allocated_claim(node.client, NAME, [("node-1", "gpu-0")], config=[*entries, other])
        await node.prepare_claim(claim)
        assert [entry.parameters["level"] for entry in driver.configs[0]] == [1, 2, 3]


async def test_a_failing_prepare_says_why_and_can_be_repeated() -> None:
    driver = Gpus()
    driver.failures = 1
    async with run_driver(driver) as node:
        claim = await node.allocate("gpu-0")
        with pytest.raises(PrepareRefused, match="in a bad mood"):
            await node.prepare_claim(claim)
        await node.prepare_claim(claim)
        assert [what for what, _ in driver.calls] == ["prepare", "unprepare", "prepare"]


async def test_claims_are_prepared_side_by_side_but_one_claim_never_twice_at_once() -> None:
    driver = Gpus()
    driver.gate = asyncio.Event()
    async with run_driver(driver) as node:
        first, second = await node.allocate("gpu-0"), await node.allocate("gpu-1")
        calls = [asyncio.ensure_future(node.kubelet.prepare(claim)) for claim in (first, first, second)]
        await eventually(lambda: driver.under_way == 2, "two claims are under way")
        driver.gate.set()
        await asyncio.gather(*calls)
        assert driver.most_at_once == 2
        assert len(driver.calls) == 2


async def test_a_caller_that_gives_up_does_not_stop_the_work() -> None:
    driver = Gpus()
    driver.gate = asyncio.Event()
    async with run_driver(driver) as node:
        claim = await node.allocate("gpu-0")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await node.kubelet.prepare(claim, seconds=0.2)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert driver.under_way == 1
        driver.gate.set()
        await node.prepare_claim(claim)
        assert [what for what, _ in driver.calls] == ["prepare"]


async def test_a_driver_killed_in_prepare_undoes_the_half_done_work_first() -> None:
    drivers: list[Gpus] = []

    def make() -> Gpus:
        drivers.append(Gpus())
        return drivers[-1]

    async with run_driver(make) as node:
        drivers[0].gate = asyncio.Event()
        claim = await node.allocate("gpu-0")
        under_way = asyncio.ensure_future(node.kubelet.prepare(claim))
        await eventually(lambda: drivers[0].under_way, "prepare is under way")
        await node.kill()
        await asyncio.gather(under_way, return_exceptions=True)
        await node.start()
        await node.prepare_claim(claim)
        assert [what for what, _ in drivers[-1].calls] == ["unprepare", "prepare"]


async def test_any_sdk_driver_passes_the_conformance_checks() -> None:
    await check_driver(Gpus)


async def test_the_conformance_checks_find_a_driver_that_answers_for_the_wrong_device() -> None:
    class Careless(Gpus):
        async def prepare(self, claim, devices, config):  # type: ignore[no-untyped-def]
            return {device: ["not a CDI name"] for device in devices}

    with pytest.raises(AssertionError, match="no fully qualified CDI device name"):
        await check_driver(Careless)


# Publishing


async def test_devices_are_published_after_registration_and_owned_by_the_node() -> None:
    async with run_driver(Gpus()) as node:
        slices = (await node.client.list(RESOURCE_SLICES))["items"]
        owner = (await node.client.get(NODES, "node-1"))["metadata"]["uid"]
        assert [item["metadata"]["ownerReferences"][0]["uid"] for item in slices] == [owner]
        assert set(await node.published()) == {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}


async def test_a_tainted_device_is_published_once_and_not_again_and_again() -> None:
    driver = Gpus()
    async with run_driver(driver) as node:
        driver.tainted.add("gpu-2")
        driver.refresh()
        await node.wait_published()
        (taint,) = (await node.published())["gpu-2"]["taints"]
        assert taint["effect"] == "NoExecute"
        before = (await node.client.list(RESOURCE_SLICES))["items"][0]["metadata"]["resourceVersion"]
        driver.refresh()
        await node.wait_published()
        assert (await node.client.list(RESOURCE_SLICES))["items"][0]["metadata"]["resourceVersion"] == before


async def test_deleted_slices_are_made_again_when_the_agent_registers_the_driver_anew() -> None:
    async with run_driver(Gpus()) as node:
        await node.client.delete_collection(RESOURCE_SLICES)
        await node.kubelet.register()
        await node.wait_published()
        assert len(await node.published()) == 4


async def test_devices_that_the_api_refuses_are_an_error_that_says_why() -> None:
    builder = DriverBuilder("odd.example.com")
    builder.devices(lambda: [make_device("Not A Name")])
    builder.prepare(lambda claim, devices, config: {})
    with pytest.raises(PoolsRefused, match=r"spec.devices\[0\].name: Invalid value"):
        async with run_driver(builder.build()):
            raise AssertionError("it should not start")


async def test_network_attached_devices_are_published_for_the_cluster() -> None:
    builder = DriverBuilder("fpga.example.com")

    @builder.cluster_pools
    def pools():  # type: ignore[no-untyped-def]
        yield Pool(name="box-1", devices=(make_device("fpga-0"),), all_nodes=True)

    @builder.prepare
    def prepare(claim, devices, config):  # type: ignore[no-untyped-def]
        return {device: ContainerEdits(env=(f"FPGA={device.name}",)) for device in devices}

    driver = builder.build()
    async with run_driver(driver) as node:
        controller = PoolController(driver, node.client)
        running = asyncio.create_task(controller.run())
        await controller.wait_published()
        (item,) = [item for item in (await node.client.list(RESOURCE_SLICES))["items"] if item["spec"].get("allNodes")]
        assert "ownerReferences" not in item["metadata"]
        prepared = await node.prepare("fpga-0", pool="box-1")
        expect_prepared(prepared, env={"FPGA": "fpga-0"})
        running.cancel()


async def test_during_an_upgrade_the_newest_instance_publishes(tmp_path: Path) -> None:
    async with memory_api() as client:
        await add_node(client, "node-1")
        root = Path("/tmp") / f"dray-upgrade-{tmp_path.name}"
        paths = DriverPaths.under(root)
        old = DriverRunner(Gpus(2), client, node_name="node-1", paths=paths, instance="old")
        new = DriverRunner(Gpus(3), client, node_name="node-1", paths=paths, instance="new")
        tasks = [asyncio.create_task(old.run())]
        await FakeKubelet(old.registry_socket).register()
        await old.wait_published()
        tasks.append(asyncio.create_task(new.run()))
        await FakeKubelet(new.registry_socket).register()
        await new.wait_published()
        old.refresh()  # the old one would publish its own view, if it were still asked
        await FakeKubelet(old.registry_socket).register()
        slices = (await client.list(RESOURCE_SLICES))["items"]
        assert [len(item["spec"]["devices"]) for item in slices] == [3]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not old.registry_socket.exists()
        assert not new.plugin_socket.exists()


async def test_health_is_reported_when_asked_and_when_it_changes() -> None:
    driver = WatchedGpus(1)
    async with run_driver(driver) as node:
        assert "v1.DRAResourceHealth" in node.kubelet.info.supported_versions
        async with grpc.aio.insecure_channel(f"unix:{node.kubelet.info.endpoint}") as channel:
            stub = dra_health_v1_pb2_grpc.DRAResourceHealthStub(channel)
            stream = stub.NodeWatchResources(dra_health_v1_pb2.NodeWatchResourcesRequest())
            (report,) = (await stream.read()).devices
            assert (report.device.device_name, report.health) == ("gpu-0", dra_health_v1_pb2.HEALTHY)
            driver.break_device("gpu-0")
            (report,) = (await stream.read()).devices
            assert (report.health, report.message) == (dra_health_v1_pb2.UNHEALTHY, "it smokes")
            stream.cancel()


async def test_a_socket_path_that_is_too_long_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SocketPathTooLong, match="Choose a directory with a shorter path"):
        DriverRunner(Gpus(), None, node_name="n", paths=DriverPaths.under(tmp_path / ("x" * 100)))  # type: ignore[arg-type]
