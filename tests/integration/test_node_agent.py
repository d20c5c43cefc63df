"""The node agent with drivers that follow a script: who is called when, with what, and what becomes of the pods."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from dray.api.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.cluster.kubelets import Exchange
from dray.cluster.memory import add_allocated_claim
from dray.node import plugins, podworker
from dray.node.agent import AlreadyRunning
from dray.testing.builders import make_slice
from dray.testing.plugins import ScriptedPlugin
from dray.testing.waiting import eventually
from tests.integration.nodes import DRIVER, NODE, running_node

PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podworker, "FIRST_RETRY", 0.02)
    monkeypatch.setattr(plugins, "LOOK_INTERVAL", 0.02)
    monkeypatch.setattr(plugins, "FIRST_RETRY", 0.05)


# Registration


async def test_a_driver_is_registered_prepares_for_a_pod_and_is_called_again_when_the_pod_goes() -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        await plugin.start()
        await node.wait_up()
        await node.add_pod("pod")
        await node.wait_phase("Running")
        await node.delete_pod()
        await node.wait_gone()
        assert plugin.record == [
            Exchange("GetInfo"),
            Exchange("NotifyRegistrationStatus"),
            Exchange(PREPARE, ("pod-claim",)),
            Exchange(UNPREPARE, ("pod-claim",)),
        ]
        assert plugin.statuses == [(True, "")]
        await plugin.stop()


async def test_all_claims_of_a_pod_go_to_a_driver_in_one_call() -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        await plugin.start()
        await node.wait_up()
        claims = [await add_allocated_claim(node.client, DRIVER, [(NODE, f"gpu-{n}")], name=f"c-{n}") for n in range(2)]
        await node.add_pod("pod", *claims)
        await node.wait_phase("Running")
        (call,) = [call for call in plugin.record if call.method == PREPARE]
        assert sorted(call.claims) == ["c-0", "c-1"]
        await plugin.stop()


@pytest.mark.parametrize("version", ["v1.DRAPlugin", "v1beta1.DRAPlugin"])
async def test_drivers_of_either_version_are_understood(version: str) -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER, versions=(version,))
        await plugin.start()
        await node.wait_up()
        await node.add_pod()
        await node.wait_phase("Running")
        await plugin.stop()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"plugin_type": "CSIPlugin"}, "plugin type is 'CSIPlugin'"),
        ({"versions": ("v1alpha4.Node",)}, "no common service version: the plugin offers v1alpha4.Node"),
    ],
)
async def test_a_plugin_that_does_not_fit_is_told_why(changes: dict[str, str], reason: str) -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER, **changes)  # type: ignore[arg-type]
        await plugin.start()
        await eventually(lambda: plugin.statuses, "the plugin is told")
        is_registered, error = plugin.statuses[0]
        assert not is_registered
        assert reason in error
        await plugin.stop()


async def test_a_name_that_is_none_is_refused() -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, "Not A Name")
        await plugin.start()
        await eventually(lambda: plugin.statuses, "the plugin is told")
        assert "can't be a driver's name" in plugin.statuses[0][1]
        await plugin.stop()


async def test_a_second_instance_may_not_take_the_endpoint_of_the_first_until_that_is_gone() -> None:
    async with running_node() as node:
        first = ScriptedPlugin(node.root, DRIVER)
        await first.start()
        await node.wait_up()
        thief = ScriptedPlugin(node.root, DRIVER, instance="b", endpoint=node.root / "plugins" / DRIVER / "dra.sock")
        await thief.start(serve_endpoint=False)
        await eventually(lambda: thief.statuses, "the second is told")
        assert thief.statuses[0][0] is False
        assert f"already registered for DRA driver plugin {DRIVER}" in thief.statuses[0][1]
        await first.stop()
        await eventually(lambda: thief.statuses[-1][0], "the second is accepted once the first is gone")
        await thief.stop()


async def test_in_an_upgrade_the_new_instance_is_called_and_the_old_one_again_if_the_new_one_goes() -> None:
    async with running_node() as node:
        old = ScriptedPlugin(node.root, DRIVER, instance="old")
        await old.start()
        await node.wait_up()
        await node.add_pod("first")
        await node.wait_phase("Running", "first")
        new = ScriptedPlugin(node.root, DRIVER, instance="new")
        await new.start()
        await eventually(lambda: new.statuses, "the new instance is registered")
        await eventually(lambda: _connected(node) == 2, "both are connected")
        await node.delete_pod("first")
        await node.wait_gone("first")
        assert [call.method for call in new.record][-1] == UNPREPARE
        await new.stop(keep_sockets=True)
        await eventually(lambda: _connected(node) == 1, "the new one is lost")
        await node.add_pod("second")
        await node.wait_phase("Running", "second")
        assert old.record[-1] == Exchange(PREPARE, ("second-claim",))
        await old.stop()


def _connected(node) -> int:  # type: ignore[no-untyped-def]
    return sum(plugin.is_connected for plugin in node.agent.plugins._plugins.values())


# Slices


async def test_slices_of_the_node_are_deleted_at_the_start_and_others_are_left_alone() -> None:
    async with running_node() as node:
        for name in (NODE, "node-2"):
            await node.client.create(RESOURCE_SLICES, make_slice(name, ["gpu-0"]))
        await node.stop()
        await node.start()
        left = await node.client.list(RESOURCE_SLICES)
        assert [item["spec"]["nodeName"] for item in left["items"]] == ["node-2"]


@pytest.mark.parametrize("was_killed", [False, True])
async def test_a_driver_that_stays_away_loses_its_slices(was_killed: bool) -> None:
    async with running_node(wipe_delay=0.1) as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        await plugin.start()
        await node.wait_up()
        for driver in (DRIVER, "nic.example.com"):
            await node.client.create(RESOURCE_SLICES, make_slice(NODE, ["gpu-0"], driver=driver))
        await plugin.stop(keep_sockets=was_killed)

        async def one_is_left() -> bool:
            left = (await node.client.list(RESOURCE_SLICES))["items"]
            return [item["spec"]["driver"] for item in left] == ["nic.example.com"]

        await eventually(one_is_left, "the slices are gone")


async def test_a_driver_that_comes_back_soon_keeps_its_slices() -> None:
    async with running_node(wipe_delay=0.5) as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        await plugin.start()
        await node.wait_up()
        await node.client.create(RESOURCE_SLICES, make_slice(NODE, ["gpu-0"]))
        await plugin.stop()
        await eventually(lambda: not node.agent.plugins.up, "the driver is gone")  # type: ignore[union-attr]
        again = ScriptedPlugin(node.root, DRIVER)
        await again.start()
        await node.wait_up()
        await asyncio.sleep(0.6)  # that nothing happens can only be seen by waiting
        assert len((await node.client.list(RESOURCE_SLICES))["items"]) == 1
        await again.stop()


# Admission


async def test_a_pod_whose_claim_is_missing_not_allocated_or_not_reserved_waits_and_says_why() -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        await plugin.start()
        await node.wait_up()
        missing = {"metadata": {"name": "missing", "namespace": "default"}}
        pod = await node.add_pod("pod", allocate=False, resourceClaims=[{"name": "c", "resourceClaimName": "missing"}])

        async def event_says(text: str) -> bool:
            return any(text in message for message in await node.events("FailedPrepareDynamicResources"))

        await eventually(lambda: event_says("ResourceClaim default/missing does not exist"))
        claim = await add_allocated_claim(node.client, DRIVER, [(NODE, "gpu-0")], name="missing")
        await eventually(lambda: event_says("ResourceClaim default/missing is not reserved for the pod"))
        await node.client.update(RESOURCE_CLAIMS, {**claim, "status": {}}, subresource="status")
        await eventually(lambda: event_says("ResourceClaim default/missing is not allocated"))
        assert not [call for call in plugin.record if call.method == PREPARE]
        current = await node.client.get(RESOURCE_CLAIMS, "missing", "default")
        await node.client.update(RESOURCE_CLAIMS, {**current, "status": claim["status"]}, subresource="status")
        await node.reserve(missing, pod)
        await node.wait_phase("Running")
        await plugin.stop()


async def test_a_claim_from_a_template_must_belong_to_the_pod() -> None:
    async with running_node() as node:
        pod = await node.add_pod(
            "pod", allocate=False, resourceClaims=[{"name": "c", "resourceClaimTemplateName": "template"}]
        )
        claim = await add_allocated_claim(node.client, DRIVER, [(NODE, "gpu-0")], name="strangers")
        await node.reserve(claim, pod)
        await node.client.patch(
            PODS,
            "pod",
            {"status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "strangers"}]}},
            "default",
            subresource="status",
        )

        async def event_says() -> bool:
            messages = await node.events("FailedPrepareDynamicResources")
            return any("was not created for the pod" in message for message in messages)

        await eventually(event_says, "an event says that the pod is not the owner")


# Drivers that misbehave


async def test_a_driver_that_fails_three_times_is_asked_a_fourth_time() -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        plugin.failures = ["no power", grpc.StatusCode.INTERNAL, grpc.StatusCode.NOT_FOUND]
        await plugin.start()
        await node.wait_up()
        await node.add_pod()
        await node.wait_phase("Running")
        outcomes = [call.outcome for call in plugin.record if call.method == PREPARE]
        assert outcomes == ["no power", "INTERNAL", "NOT_FOUND", "OK"]
        messages = await node.events("FailedPrepareDynamicResources")
        assert any("no power" in message for message in messages)
        await plugin.stop()


async def test_what_one_driver_prepared_is_not_asked_again_because_another_failed() -> None:
    async with running_node() as node:
        good, bad = ScriptedPlugin(node.root, DRIVER), ScriptedPlugin(node.root, "nic.example.com")
        bad.failures = ["not yet", "not yet"]
        for plugin in (good, bad):
            await plugin.start()
            await node.wait_up(plugin.name)
        claims = [
            await add_allocated_claim(node.client, DRIVER, [(NODE, "gpu-0")], name="gpu"),
            await add_allocated_claim(node.client, "nic.example.com", [(NODE, "nic-0")], name="nic"),
        ]
        await node.add_pod("pod", *claims)
        await node.wait_phase("Running")
        assert [call.method for call in good.record].count(PREPARE) == 1
        assert [call.method for call in bad.record].count(PREPARE) == 3
        await asyncio.gather(good.stop(), bad.stop())


async def test_a_slow_driver_is_given_up_on_and_asked_again_never_twice_at_once() -> None:
    async with running_node(call_timeout=0.2) as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        plugin.gate = asyncio.Event()
        await plugin.start()
        await node.wait_up()
        await node.add_pod()

        async def event_says() -> bool:
            messages = await node.events("FailedPrepareDynamicResources")
            return any("DEADLINE_EXCEEDED" in message for message in messages)

        await eventually(event_says, "an event says that the driver took too long")
        plugin.gate.set()
        await node.wait_phase("Running")
        assert plugin.most_at_once == 1
        await plugin.stop()


async def test_a_pod_of_a_driver_that_was_never_there_can_go() -> None:
    async with running_node() as node:
        await node.add_pod()
        await eventually(lambda: node.events("FailedPrepareDynamicResources"), "an event")
        assert any("is not registered" in text for text in await node.events("FailedPrepareDynamicResources"))
        await node.delete_pod()
        await node.wait_gone()


async def test_a_pod_whose_driver_disappeared_stays_until_the_driver_is_back() -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        await plugin.start()
        await node.wait_up()
        await node.add_pod()
        await node.wait_phase("Running")
        await plugin.stop()
        await eventually(lambda: not node.agent.plugins.up, "the driver is gone")  # type: ignore[union-attr]
        await node.delete_pod()
        await eventually(lambda: node.events("FailedUnprepareDynamicResources"), "an event says what is missing")
        assert await node.pod() is not None
        again = ScriptedPlugin(node.root, DRIVER)
        await again.start()
        await node.wait_gone()
        assert Exchange(UNPREPARE, ("pod-claim",)) in again.record
        await again.stop()


async def test_a_driver_that_unregisters_in_the_middle_of_a_call_is_asked_again_when_it_is_back() -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        await plugin.start()
        await node.wait_up()
        await node.add_pod()
        await node.wait_phase("Running")
        plugin.gate = asyncio.Event()
        await node.delete_pod()
        await eventually(lambda: plugin.is_busy, "the driver is called")
        (node.root / "plugins_registry" / f"{DRIVER}-reg.sock").unlink()
        await eventually(lambda: node.events("FailedUnprepareDynamicResources"), "an event says what happened")
        await plugin.stop()
        again = ScriptedPlugin(node.root, DRIVER)
        await again.start()
        await node.wait_gone()
        assert Exchange(UNPREPARE, ("pod-claim",)) in again.record
        await again.stop()


async def test_unprepare_is_repeated_until_it_succeeds_and_the_pod_goes_only_then() -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        await plugin.start()
        await node.wait_up()
        await node.add_pod()
        await node.wait_phase("Running")
        plugin.failures = ["busy", grpc.StatusCode.UNAVAILABLE]
        await node.delete_pod()
        await node.wait_gone()
        assert [call.outcome for call in plugin.record if call.method == UNPREPARE] == ["busy", "UNAVAILABLE", "OK"]
        await plugin.stop()


# Sharing


async def test_a_shared_claim_is_prepared_once_and_unprepared_after_its_last_pod() -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        await plugin.start()
        await node.wait_up()
        claim = await add_allocated_claim(node.client, DRIVER, [(NODE, "gpu-0")], name="shared")
        for name in ("first", "second"):
            await node.add_pod(name, claim)
            await node.wait_phase("Running", name)
        await node.delete_pod("first")
        await node.wait_gone("first")
        assert [call.method for call in plugin.record].count(UNPREPARE) == 0
        await node.delete_pod("second")
        await node.wait_gone("second")
        calls = [call.method for call in plugin.record if call.method in (PREPARE, UNPREPARE)]
        assert calls == [PREPARE, UNPREPARE]
        await plugin.stop()


async def test_a_claim_that_was_allocated_anew_waits_until_the_old_allocation_is_given_back() -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        await plugin.start()
        await node.wait_up()
        claim = await add_allocated_claim(node.client, DRIVER, [(NODE, "gpu-0")], name="moved")
        await node.add_pod("first", claim)
        await node.wait_phase("Running", "first")
        plugin.failures = ["not yet"] * 3
        await node.client.delete(PODS, "first", "default", grace_period_seconds=0)
        current = await node.client.get(RESOURCE_CLAIMS, "moved", "default")
        cleared = await node.client.update(RESOURCE_CLAIMS, {**current, "status": {}}, subresource="status")
        results = [{"request": "devices", "driver": DRIVER, "pool": NODE, "device": "gpu-1"}]
        status = {"allocation": {"devices": {"results": results}}}
        await node.client.update(RESOURCE_CLAIMS, {**cleared, "status": status}, subresource="status")
        await node.add_pod("second", claim)
        await node.wait_phase("Running", "second")
        calls = [call.method for call in plugin.record if call.outcome == "OK" and call.claims]
        assert calls == [PREPARE, UNPREPARE, PREPARE]
        await plugin.stop()


# The node


async def test_metrics_count_calls_and_claims_in_use() -> None:
    async with running_node() as node:
        plugin = ScriptedPlugin(node.root, DRIVER)
        plugin.failures = [grpc.StatusCode.UNAVAILABLE]
        await plugin.start()
        await node.wait_up()
        await node.add_pod()
        await node.wait_phase("Running")
        registry = node.agent.registry  # type: ignore[union-attr]
        labels = {"driver_name": DRIVER, "method_name": PREPARE}
        for code in ("OK", "UNAVAILABLE"):
            assert registry.get_sample_value("dra_operations_seconds_count", {**labels, "grpc_status_code": code}) == 1
        for driver in (DRIVER, "<any>"):
            assert registry.get_sample_value("dra_resource_claims_in_use", {"driver_name": driver}) == 1
        await plugin.stop()


async def test_the_node_object_says_what_the_node_has_and_keeps_labels_of_others() -> None:
    async with running_node(labels={"zone": "a"}) as node:
        await node.client.patch(NODES, NODE, {"metadata": {"labels": {"rack": "7"}}})
        await node.stop()
        await node.start()
        found = await node.client.get(NODES, NODE)
        assert found["metadata"]["labels"].items() >= {"zone": "a", "rack": "7", "kubernetes.io/hostname": NODE}.items()
        assert found["status"]["capacity"]["pods"] == "110"
        assert [item["status"] for item in found["status"]["conditions"] if item["type"] == "Ready"] == ["True"]


async def test_two_agents_do_not_share_a_directory() -> None:
    async with running_node() as node:
        with pytest.raises(AlreadyRunning, match="another node agent works in"):
            await type(node.agent).run(node.agent)  # type: ignore[arg-type]
