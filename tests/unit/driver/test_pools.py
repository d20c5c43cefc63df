"""How a pool becomes slices, and what is written when it changes."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.devices import CounterSet, Device, DeviceTaint
from dray.api.meta import ObjectMeta
from dray.api.slices import ResourceSlice
from dray.driver.base import make_device
from dray.driver.pools import Changes, Pool, plan_changes

DRIVER, NODE = "gpu.example.com", "node-1"


def make_pool(count: int, **changes: object) -> Pool:
    return Pool(name=NODE, devices=tuple(make_device(f"gpu-{index}") for index in range(count)), **changes)  # type: ignore[arg-type]


def publish(changes: Changes, published: list[ResourceSlice]) -> list[ResourceSlice]:
    """What the cluster holds after the changes were written."""
    by_name = {item.metadata.name: item for item in published}
    for old, spec in changes.update:
        by_name[old.metadata.name] = replace(old, spec=spec)
    for old in changes.delete:
        del by_name[old.metadata.name]
    for spec in changes.create:
        name = f"slice-{len(by_name)}-{spec.pool.generation}"
        by_name[name] = ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)
    return list(by_name.values())


def published_from(*pools: Pool) -> list[ResourceSlice]:
    return publish(plan_changes(DRIVER, NODE, pools, ()), [])


def test_a_new_pool_is_published_as_generation_one() -> None:
    (item,) = published_from(make_pool(8))
    assert item.spec.node_name == NODE
    assert (item.spec.pool.generation, item.spec.pool.resource_slice_count) == (1, 1)
    assert len(item.spec.devices) == 8


def test_large_pools_are_cut_at_128_devices_and_at_64_with_taints() -> None:
    assert [len(item.spec.devices) for item in published_from(make_pool(300))] == [128, 128, 44]
    tainted = (*make_pool(99).devices, Device(name="bad", taints=(DeviceTaint(key="a", effect="NoSchedule"),)))
    assert [len(item.spec.devices) for item in published_from(Pool(name=NODE, devices=tainted))] == [64, 36]


def test_counter_sets_have_slices_of_their_own() -> None:
    slices = published_from(make_pool(2, shared_counters=(CounterSet(name="gpu-0"),)))
    assert [bool(item.spec.shared_counters) for item in slices] == [True, False]
    assert {item.spec.pool.resource_slice_count for item in slices} == {2}


def test_an_unchanged_pool_writes_nothing() -> None:
    assert not plan_changes(DRIVER, NODE, [make_pool(300)], published_from(make_pool(300)))


def test_a_new_attribute_updates_one_slice_in_place() -> None:
    published = published_from(make_pool(200))
    devices = list(make_pool(200).devices)
    devices[3] = make_device("gpu-3", attributes={"healthy": False})
    changes = plan_changes(DRIVER, NODE, [Pool(name=NODE, devices=tuple(devices))], published)
    assert not changes.create
    assert not changes.delete
    ((old, spec),) = changes.update
    assert spec.pool.generation == old.spec.pool.generation == 1


def test_a_device_that_joins_starts_a_new_generation_in_every_slice() -> None:
    published = published_from(make_pool(200))
    after = publish(plan_changes(DRIVER, NODE, [make_pool(201)], published), published)
    assert {item.spec.pool.generation for item in after} == {2}
    assert sum(len(item.spec.devices) for item in after) == 201
    assert len(after) == 2


def test_slices_of_pools_that_are_gone_are_deleted() -> None:
    published = published_from(make_pool(3), Pool(name="fabric", all_nodes=True))
    changes = plan_changes(DRIVER, NODE, [make_pool(3)], published)
    assert [item.spec.pool.name for item in changes.delete] == ["fabric"]


def test_a_network_attached_pool_names_no_node() -> None:
    (item,) = published_from(Pool(name="fabric", all_nodes=True))
    assert item.spec.node_name is None
    assert item.spec.all_nodes is True
