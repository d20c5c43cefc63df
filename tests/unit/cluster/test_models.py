"""Models: every one can be published as it is, and says what the inventories say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dray.api.codec import to_json
from dray.api.resources import DEVICE_CLASSES, RESOURCE_SLICES
from dray.api.slices import ResourceSlice
from dray.cluster.gpus import PROFILES, mig_counters, mig_devices
from dray.cluster.inventories import MODELS, find_model
from dray.cluster.memory import memory_api
from dray.cluster.model_files import BadModel, load_model
from dray.cluster.models import Model
from dray.driver.pools import plan_changes

STORIES = Path(__file__).parents[3] / "examples" / "stories"


def all_slices(model: Model, nodes: int) -> list[ResourceSlice]:
    slices: list[ResourceSlice] = []
    pools = model.make_cluster_pools(nodes)
    for driver, cluster_pools in pools.items():
        slices += [ResourceSlice(spec=spec) for spec in plan_changes(driver, "", cluster_pools, ()).create]
    for index in range(nodes):
        for driver_model in model.make_node(index).drivers:
            if driver_model.devices:
                pool = driver_model.pool(f"node-{index}")
                slices += [
                    ResourceSlice(spec=spec)
                    for spec in plan_changes(driver_model.name, f"node-{index}", [pool], ()).create
                ]
    return slices


@pytest.mark.parametrize("name", MODELS)
async def test_the_api_takes_the_slices_and_classes_of_every_model(name: str) -> None:
    slices = all_slices(MODELS[name], 5)
    assert slices
    async with memory_api() as client:
        for number, item in enumerate(slices):
            obj = {**to_json(item), "metadata": {"name": f"slice-{number}"}}
            await client.create(RESOURCE_SLICES, obj)
        for device_class in MODELS[name].classes:
            await client.create(DEVICE_CLASSES, device_class)


def test_an_a100_node_has_two_gpus_and_a_fast_nic_on_each_pcie_root() -> None:
    gpus, nics = MODELS["a100-8"].make_node(0).drivers
    roots = [device.attributes["resource.kubernetes.io/pcieRoot"].string_value for device in gpus.devices]
    assert roots == [f"pci0000:{root}" for root in ("10", "10", "20", "20", "90", "90", "a0", "a0")]
    fast = [device for device in nics.devices if device.attributes["rdma"].bool_value]
    assert [device.attributes["resource.kubernetes.io/numaNode"].int_value for device in fast] == [0, 0, 1, 1]
    assert len(nics.devices) == 7


def test_gpus_and_nics_of_a_gb200_node_share_no_root() -> None:
    gpus, nics = (
        {device.attributes["resource.kubernetes.io/pcieRoot"].string_value for device in driver.devices}
        for driver in MODELS["gb200"].make_node(0).drivers
    )
    assert not gpus & nics


def test_a_gpu_has_as_many_partitions_as_the_table_says_and_each_fits_into_it() -> None:
    devices = list(mig_devices(0))
    assert len(devices) == sum(len(profile.starts) for profile in PROFILES) == 25
    available = mig_counters(0).counters
    for device in devices:
        (part,) = device.consumes_counters
        assert all(counter.value <= available[name].value for name, counter in part.counters.items())


def test_every_four_nodes_form_a_mesh() -> None:
    pools = MODELS["tpu-4x4"].make_cluster_pools(8)["tpu.google.com"]
    assert [pool.name for pool in pools] == ["mesh-0", "mesh-1"]
    assert [len(pool.devices) for pool in pools] == [7, 7]
    assert MODELS["tpu-4x4"].make_node(5).labels["dray.dev/mesh"] == "mesh-1"


def test_slices_in_a_file_are_a_model_with_a_class_per_driver() -> None:
    model = load_model(STORIES / "aligned-devices" / "devices.yaml")
    assert [driver.name for driver in model.make_node(0).drivers] == [
        "cpu.example.com",
        "gpu.example.com",
        "nic.example.com",
    ]
    assert [item["metadata"]["name"] for item in model.classes] == [
        "cpu.example.com",
        "gpu.example.com",
        "nic.example.com",
    ]
    assert model.default_nodes == 1


def test_kinds_of_nodes_take_turns_and_slices_without_a_node_belong_to_the_cluster(tmp_path: Path) -> None:
    file = tmp_path / "model.yaml"
    file.write_text(
        "\n---\n".join(
            f"""
            apiVersion: resource.k8s.io/v1
            kind: ResourceSlice
            metadata: {{name: {name}}}
            spec: {{driver: d.example.com, pool: {{name: {name}}}, {where}, devices: [{{name: {name}}}]}}
            """
            for name, where in (("a", "nodeName: big"), ("b", "nodeName: small"), ("c", "allNodes: true"))
        )
        + "\n---\n{apiVersion: v1, kind: Node, metadata: {name: big, labels: {size: large}}}\n"
    )
    model = find_model(str(file))
    names = [model.make_node(index).drivers[0].devices[0].name for index in range(3)]
    assert names == ["a", "b", "a"]
    assert model.make_node(0).labels == {"size": "large"}
    (pool,) = model.make_cluster_pools(3)["d.example.com"]
    assert (pool.name, pool.all_nodes) == ("c", True)


def slice_with(devices: str) -> str:
    return f"""
    apiVersion: resource.k8s.io/v1
    kind: ResourceSlice
    metadata: {{name: s}}
    spec: {{driver: d.example.com, nodeName: n, pool: {{name: n}}, devices: {devices}}}
    """


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("kind: [", "while parsing a flow"),
        ("- just a list", "a model consists of ResourceSlices"),
        ("{apiVersion: v1, kind: Node, metadata: {name: n}}", "neither a ResourceSlice nor a DeviceClass"),
        ("{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {}}", "no part of a model"),
        ("{kind: List, items: [3]}", "a model consists of ResourceSlices"),
        ("{apiVersion: v1, kind: Node, metadata: 3}", "Node: metadata: expected an object"),
        (slice_with("3"), "ResourceSlice s: spec.devices: json: cannot unmarshal"),
        (slice_with("[{name: d, attributes: {a: {intt: 1}}}]"), 'unknown field "spec.devices[0].attributes.a.intt"'),
        (slice_with("[{name: A_b}]"), 'spec.devices[0].name: Invalid value: "A_b"'),
        (slice_with("[{name: d, capacity: {m: {value: 1Zx}}}]"), "spec.devices[0].capacity.m.value: quantities must"),
        (
            "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c},"
            " spec: {selectors: [{cel: {expression: 'device.driver =='}}]}}",
            "DeviceClass c: spec.selectors[0].cel.expression: Invalid value",
        ),
    ],
)
def test_a_file_that_is_no_model_is_refused_in_one_line_that_names_file_and_field(
    content: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(content)
    with pytest.raises(BadModel, match=re.escape(problem)) as caught:
        load_model(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


def test_a_name_that_is_neither_model_nor_file_gets_the_list_of_models() -> None:
    with pytest.raises(BadModel, match=r"no model 'b200'.*a100-8, h100-8"):
        find_model("b200")
