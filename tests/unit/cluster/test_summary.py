"""The picture of a cluster: which devices are free, and why pods wait."""

from __future__ import annotations

from typing import Any

from dray.api.claims import ResourceClaim
from dray.api.codec import decode_as, to_json
from dray.api.meta import Json
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.cluster.inventories import MODELS
from dray.cluster.summary import ClusterObjects, DeviceState, summarize
from dray.driver.pools import plan_changes
from dray.testing.builders import DRIVER, make_claim, make_device, make_node, make_pod, make_slice


def a_slice(node: str, *devices: Json | str, **spec: Any) -> ResourceSlice:
    return decode_as(ResourceSlice, make_slice(node, devices, **spec))


def a_claim(name: str, *devices: str, pool: str = "node-1", driver: str = DRIVER, **result: Any) -> ResourceClaim:
    results = [{"request": "gpu", "driver": driver, "pool": pool, "device": device, **result} for device in devices]
    status = {"allocation": {"devices": {"results": results}}} if devices else {}
    return decode_as(ResourceClaim, {**make_claim(name), "status": status})


def states(objects: ClusterObjects) -> dict[str, DeviceState]:
    return {device.name: device.state for pool in summarize(objects).pools for device in pool.devices}


def test_devices_are_free_used_or_tainted() -> None:
    bad = {**make_device("bad"), "taints": [{"key": "k", "effect": "NoSchedule"}]}
    noted = {**make_device("noted"), "taints": [{"key": "k", "effect": "None"}]}
    objects = ClusterObjects(slices=[a_slice("node-1", "a", "b", bad, noted)], claims=[a_claim("c", "b")])
    assert states(objects) == {
        "a": DeviceState.FREE,
        "b": DeviceState.USED,
        "bad": DeviceState.TAINTED,
        "noted": DeviceState.FREE,
    }


def test_rules_taint_devices_too() -> None:
    rule = {
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": {"device": "a"}, "taint": {"key": "k", "effect": "NoExecute"}},
    }
    objects = ClusterObjects(slices=[a_slice("node-1", "a", "b")], rules=[decode_as(DeviceTaintRule, rule)])
    assert states(objects) == {"a": DeviceState.TAINTED, "b": DeviceState.FREE}


def test_administrators_use_nothing_up() -> None:
    objects = ClusterObjects(slices=[a_slice("node-1", "a")], claims=[a_claim("c", "a", adminAccess=True)])
    assert states(objects) == {"a": DeviceState.FREE}


def test_a_device_that_may_be_shared_is_shared() -> None:
    device = {**make_device("a"), "allowMultipleAllocations": True}
    objects = ClusterObjects(slices=[a_slice("node-1", device)], claims=[a_claim("c", "a")])
    assert states(objects) == {"a": DeviceState.SHARED}


def test_a_partition_blocks_those_that_overlap_with_it() -> None:
    driver = MODELS["mig-a100"].make_node(0).drivers[0]
    slices = [
        decode_as(ResourceSlice, {**to_json(ResourceSlice(spec=spec)), "metadata": {"name": f"s{number}"}})
        for number, spec in enumerate(plan_changes(driver.name, "node-1", [driver.pool("node-1")], ()).create)
    ]
    claim = a_claim("c", "gpu-0-mig-3g20gb-0", driver=driver.name)
    found = states(ClusterObjects(slices=slices, claims=[claim]))
    assert found["gpu-0-mig-7g40gb-0"] == DeviceState.BLOCKED
    assert found["gpu-0-mig-1g5gb-0"] == DeviceState.BLOCKED
    assert found["gpu-0-mig-3g20gb-4"] == DeviceState.FREE
    assert found["gpu-1-mig-7g40gb-0"] == DeviceState.FREE


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old, new = a_slice("node-1", "a", name="old"), make_slice("node-1", ["b"], name="new")
    new["spec"]["pool"]["generation"] = 2
    assert list(states(ClusterObjects(slices=[old, decode_as(ResourceSlice, new)]))) == ["b"]


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    nodes = [make_node(f"node-{number}") for number in (10, 2, 1)]
    assert [node.name for node in summarize(ClusterObjects(nodes=nodes)).nodes] == ["node-1", "node-2", "node-10"]


def pod(name: str, node: str = "", **status: Any) -> Json:
    made = make_pod(name)
    made["metadata"]["uid"] = f"uid-{name}"
    made["status"] = status
    if node:
        made["spec"]["nodeName"] = node
    return made


def test_a_waiting_pod_says_why() -> None:
    scheduler_says = [{"type": "PodScheduled", "status": "False", "message": "no GPU is free"}]
    warning = {
        "metadata": {},
        "type": "Warning",
        "involvedObject": {"uid": "uid-stuck"},
        "message": "driver is away",
        "lastTimestamp": "2026-01-01T00:00:02Z",
    }
    older = {**warning, "message": "long ago", "lastTimestamp": "2026-01-01T00:00:01Z"}
    objects = ClusterObjects(
        pods=[
            pod("unplaced", phase="Pending", conditions=scheduler_says),
            pod("stuck", "node-1", phase="Pending"),
            pod("starting", "node-1", phase="Pending"),
            pod("new"),
            pod("fine", "node-1", phase="Running"),
        ],
        events=[warning, older],
    )
    assert {view.name: view.reason for view in summarize(objects).waiting} == {
        "default/unplaced": "no GPU is free",
        "default/stuck": "driver is away",
        "default/starting": "its containers are being started",
        "default/new": "not scheduled yet",
    }


def test_a_claim_shows_its_state_and_devices() -> None:
    (view,) = summarize(ClusterObjects(claims=[a_claim("c", "a", "b")])).claims
    assert (view.name, view.state, view.devices) == ("default/c", "allocated", ("node-1/a", "node-1/b"))
    (view,) = summarize(ClusterObjects(claims=[a_claim("c")])).claims
    assert view.state == "pending"


def test_a_pod_waits_if_one_of_its_containers_does() -> None:
    running = {"name": "one", "state": {"running": {}}}
    looping = {"name": "two", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}}
    objects = ClusterObjects(pods=[pod("half", "node-1", phase="Running", containerStatuses=[running, looping])])
    (view,) = summarize(objects).waiting
    assert (view.phase, view.reason) == ("Running", "container two: CrashLoopBackOff: back-off 10s")
