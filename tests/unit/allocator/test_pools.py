"""Which pools a node sees: generations, completeness, invalid pools, order, node selection."""

from __future__ import annotations

import pytest

from dray.allocator.errors import InvalidPools, NodeSelectionFailed, PoolUnusable
from dray.allocator.nodes import NodeFacts
from dray.api.devices import Device, DeviceCounterConsumption
from dray.api.features import ALL_GATES
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from tests.unit.allocator.world import (
    NODE,
    ask,
    make_claim,
    make_counters,
    make_device,
    make_devices,
    make_index,
    make_request,
    make_slice,
)

ONE = make_claim(make_request())
ALL = make_claim(make_request(everything=True))


def selecting(key: str, operator: str = "In", *values: str) -> NodeSelector:
    requirement = NodeSelectorRequirement(key=key, operator=operator, values=values)
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),))


def test_devices_come_in_order_of_driver_pool_slice_and_place() -> None:
    index = make_index(
        make_slice([make_device("z")], name="s2", pool="b", count=2),
        make_slice([make_device("y")], name="s10", pool="b", count=2),
        make_slice([make_device("x")], name="s1", pool="a"),
    )
    assert ask(index, make_claim(make_request(count=3))) == [["x", "y", "z"]]


def test_pools_with_binding_conditions_come_last() -> None:
    index = make_index(
        make_slice([make_device("slow", binding_conditions=("Ready",))], name="s1", pool="a"),
        make_slice([make_device("quick")], name="s2", pool="b"),
    )
    assert ask(index, ONE) == [["quick"]]


def test_an_older_generation_is_not_used() -> None:
    index = make_index(
        make_slice([make_device("old")], name="s1", pool="p", generation=1),
        make_slice([make_device("new")], name="s2", pool="p", generation=2),
    )
    assert ask(index, ONE) == [["new"]]


def test_a_pool_with_missing_slices_gives_no_device() -> None:
    index = make_index(make_slice([make_device("one")], count=2))
    assert ask(index, ONE) is None


def test_a_pool_with_too_many_slices_gives_no_device() -> None:
    index = make_index(
        make_slice([make_device("one")], name="s1", pool="p"), make_slice([make_device("two")], name="s2", pool="p")
    )
    assert ask(index, ONE) is None


def test_all_devices_can_not_be_had_from_a_pool_that_is_being_updated() -> None:
    index = make_index(make_slice([make_device("one")], count=2))
    with pytest.raises(PoolUnusable, match="currently being updated") as caught:
        ask(index, ALL)
    assert caught.value.request == "req"
    assert caught.value.pool.pool == NODE


def test_slices_of_other_nodes_complete_a_pool() -> None:
    index = make_index(
        make_slice([make_device("here")], name="s1", pool="p", count=2),
        make_slice([make_device("there")], name="s2", pool="p", node="node-2", count=2),
    )
    assert ask(index, make_claim(make_request(count=1))) == [["here"]]
    assert ask(index, make_claim(make_request(count=2))) is None


def test_an_old_generation_is_dropped_if_a_new_one_has_nothing_for_the_node() -> None:
    index = make_index(
        make_slice([make_device("here")], name="s1", pool="p", count=2),
        make_slice([make_device("there")], name="s2", pool="p", node="node-2", generation=2),
    )
    assert ask(index, ONE) is None
    assert ask(index, make_claim(make_request(everything=True))) is None


def test_duplicate_device_names_make_a_pool_invalid() -> None:
    index = make_index(
        make_slice([make_device("same")], name="s1", pool="p", count=2),
        make_slice([make_device("same")], name="s2", pool="p", count=2),
    )
    with pytest.raises(InvalidPools, match="duplicate device name same") as caught:
        ask(index, ONE)
    assert caught.value.on_node


def test_an_invalid_pool_does_not_matter_if_another_one_serves() -> None:
    index = make_index(
        make_slice([make_device("same"), make_device("same")], name="s1", pool="p"),
        make_slice([make_device("good")], name="s2", pool="q"),
    )
    assert ask(index, ONE) == [["good"]]


def test_a_counter_that_does_not_exist_makes_a_pool_invalid() -> None:
    index = make_index(
        make_slice([make_device("part", counters={"set": {"wrong": 1}})], name="s1", pool="p", count=2),
        make_slice(name="s2", pool="p", count=2, shared_counters={"set": {"memory": 1}}),
    )
    with pytest.raises(InvalidPools, match="counter wrong not found in counter set set"):
        ask(index, ONE)


def test_without_compatibility_groups_a_slice_that_uses_them_does_not_count() -> None:
    consumption = DeviceCounterConsumption(
        counter_set="set", counters=make_counters({"memory": 1}), compatibility_groups=("a",)
    )
    slices = (
        make_slice([Device(name="part", consumes_counters=(consumption,))], name="s1", pool="p", count=2),
        make_slice(name="s2", pool="p", count=2, shared_counters={"set": {"memory": 1}}),
    )
    gates = ALL_GATES.with_changes({"DRADeviceCompatibilityGroups": False})
    assert ask(make_index(*slices), ONE) == [["part"]]
    assert ask(make_index(*slices, gates=gates), ONE) is None


def test_a_slice_for_labelled_nodes_is_reached_by_those_only() -> None:
    slice_ = make_slice([make_device("nic")], pool="rack", node_selector=selecting("rack", "In", "r1"))
    nodes = [NodeFacts("near", {"rack": "r1"}), NodeFacts("far", {"rack": "r2"})]
    index = make_index(slice_, nodes=nodes)
    assert ask(index, ONE, node="near") == [["nic"]]
    assert ask(index, ONE, node="far") is None


def test_a_slice_that_says_nothing_about_nodes_is_left_alone() -> None:
    assert ask(make_index(make_slice(make_devices(1), node=None, pool="p")), ONE) is None


def test_devices_can_be_tied_to_nodes_one_by_one() -> None:
    devices = [
        make_device("first", node_name="node-2"),
        make_device("second", node_name=NODE),
        make_device("third", all_nodes=True),
    ]
    index = make_index(make_slice(devices, node=None, pool="p", per_device_node_selection=True))
    assert ask(index, make_claim(make_request(count=2))) == [["second", "third"]]
    assert ask(index, make_claim(make_request(count=3))) is None


def test_a_broken_node_selector_stops_the_node() -> None:
    slice_ = make_slice(make_devices(1), pool="p", name="broken", node_selector=selecting("rack", "Near", "r1"))
    with pytest.raises(NodeSelectionFailed, match="slice broken"):
        ask(make_index(slice_), ONE)
