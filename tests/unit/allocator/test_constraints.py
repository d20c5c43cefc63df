"""matchAttribute and distinctAttribute, with and without lists."""

from __future__ import annotations

import pytest

from dray.allocator.errors import ConstraintRejectsAll, DerivedAttributeFailed, UnsupportedRequest
from dray.allocator.index import Index
from dray.api.claims import DeviceConstraint, DeviceDerivedAttribute, ResourceClaim
from dray.api.features import ALL_GATES, FeatureGates
from tests.unit.allocator.world import (
    ask,
    make_claim,
    make_constraint,
    make_device,
    make_index,
    make_request,
    make_slice,
)

NUMA = "gpu.example.com/numa"
NO_LISTS = ALL_GATES.with_changes({"DRAListTypeAttributes": False})


def index_of(*numas: object, gates: FeatureGates = ALL_GATES) -> Index:
    devices = [
        make_device(f"dev-{number}", {} if numa is None else {"numa": numa}) for number, numa in enumerate(numas)
    ]
    return make_index(make_slice(devices), gates=gates)


def matching(count: int) -> ResourceClaim:
    return make_claim(make_request(count=count), constraints=[make_constraint(match=NUMA)])


def distinct(count: int) -> ResourceClaim:
    return make_claim(make_request(count=count), constraints=[make_constraint(distinct=NUMA)])


def test_matching_devices_have_the_same_value() -> None:
    assert ask(index_of(0, 1, 0, 1, 1), matching(3)) == [["dev-1", "dev-3", "dev-4"]]


def test_a_device_without_the_attribute_never_matches() -> None:
    assert ask(index_of(None, 1), matching(1)) == [["dev-1"]]
    assert ask(index_of(None, 1), matching(2)) is None


def test_values_of_different_types_do_not_match() -> None:
    assert ask(index_of(1, "1"), matching(2)) is None


def test_distinct_devices_have_different_values() -> None:
    assert ask(index_of(0, 0, 1, 1, 2), distinct(3)) == [["dev-0", "dev-2", "dev-4"]]
    assert ask(index_of(0, 0, 1), distinct(3)) is None


def test_lists_match_if_all_have_a_value_in_common() -> None:
    assert ask(index_of([0, 1], [1, 2], [0, 2], 1), matching(3)) == [["dev-0", "dev-1", "dev-3"]]


def test_lists_are_distinct_if_no_two_have_a_value_in_common() -> None:
    assert ask(index_of([0, 1], [1, 2], [2, 3]), distinct(2)) == [["dev-0", "dev-2"]]


def test_without_the_gate_a_list_can_only_be_the_first_device() -> None:
    assert ask(index_of([0], 0, gates=NO_LISTS), matching(1)) == [["dev-0"]]
    assert ask(index_of([0], [0], 0, gates=NO_LISTS), matching(2)) is None
    assert ask(index_of([0], [1], 0, gates=NO_LISTS), distinct(2)) == [["dev-0", "dev-2"]]


def test_a_constraint_binds_the_requests_that_it_names() -> None:
    requests = (make_request("a"), make_request("b"), make_request("c"))
    index = index_of(0, 1, 0)
    assert ask(index, make_claim(*requests, constraints=[make_constraint("a", "c", match=NUMA)])) == [
        ["dev-0", "dev-1", "dev-2"]
    ]
    assert ask(index, make_claim(*requests, constraints=[make_constraint(match=NUMA)])) is None


def test_constraints_do_not_reach_into_other_claims() -> None:
    claims = [make_claim(make_request(), constraints=[make_constraint(match=NUMA)], name=name) for name in "xy"]
    assert ask(index_of(0, 1), *claims) == [["dev-0"], ["dev-1"]]


def test_all_devices_with_a_constraint_that_rejects_one_is_an_error() -> None:
    claim = make_claim(make_request("r", everything=True), constraints=[make_constraint(match=NUMA)])
    with pytest.raises(ConstraintRejectsAll) as caught:
        ask(index_of(0, 0, 1), claim)
    assert caught.value.device.device == "dev-2"
    assert caught.value.constraint == 0


def test_a_constraint_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UnsupportedRequest, match="constraint #0"):
        ask(index_of(0), make_claim(make_request(), constraints=[DeviceConstraint()]))


def test_a_derived_attribute_shadows_the_published_one() -> None:
    expression = 'device.attributes["gpu.example.com"].numa / 2'
    derived = (DeviceDerivedAttribute(name=NUMA, expression=expression),)
    claim = make_claim(make_request(count=2, derived_attributes=derived), constraints=[make_constraint(match=NUMA)])
    assert ask(index_of(1, 2, 3), claim) == [["dev-1", "dev-2"]]


def test_a_derived_attribute_that_fails_stops_the_allocation() -> None:
    derived = (DeviceDerivedAttribute(name=NUMA, expression='device.attributes["gpu.example.com"].missing'),)
    claim = make_claim(make_request("r", derived_attributes=derived), constraints=[make_constraint(match=NUMA)])
    with pytest.raises(DerivedAttributeFailed) as caught:
        ask(index_of(1), claim)
    assert caught.value.attribute == NUMA
    assert "dev-0" in str(caught.value)
