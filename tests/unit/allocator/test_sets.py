"""CEL constraints over whole sets of devices (KEP-5254)."""

from __future__ import annotations

import pytest

from dray.allocator.errors import ConstraintFailed, DeadlineExceeded, FeatureDisabled
from dray.allocator.index import Index
from dray.allocator.search import Limits
from dray.api.claims import ResourceClaim
from dray.api.features import ALL_GATES
from tests.unit.allocator.world import (
    NODE,
    ask,
    make_choice,
    make_claim,
    make_constraint,
    make_devices,
    make_index,
    make_request,
    make_slice,
)

IDS = 'devices.map(d, d.attributes["gpu.example.com"].id)'
IN_A_ROW = f"{IDS}.max() - {IDS}.min() == size(devices) - 1"


def ring(size: int, *used: int) -> Index:
    devices = make_devices(size, id=lambda number: number, numa=lambda number: number % 2)
    return make_index(make_slice(devices), used=[f"dev-{number}" for number in used])


def wanting(count: int, expression: str) -> ResourceClaim:
    return make_claim(make_request("r", count), constraints=[make_constraint(cel=expression)])


def test_the_first_set_in_device_order_is_chosen() -> None:
    assert ask(ring(8, 1, 4), wanting(3, IN_A_ROW)) == [["dev-5", "dev-6", "dev-7"]]


def test_no_set_means_no_allocation() -> None:
    assert ask(ring(8, 1, 4, 6), wanting(3, IN_A_ROW)) is None


def test_the_set_holds_the_devices_in_the_order_in_which_they_were_chosen() -> None:
    descending = f"{IDS}[0] > {IDS}[1]"
    assert ask(ring(4), wanting(2, descending)) is None
    claim = make_claim(make_request("a"), make_request("b"), constraints=[make_constraint(cel=descending)])
    assert ask(ring(4), claim) == [["dev-1", "dev-0"]]


def test_a_constraint_sees_only_the_requests_that_it_names() -> None:
    constraint = make_constraint("b", cel=f"size(devices) == 1 && {IDS}[0] == 2")
    claim = make_claim(make_request("a"), make_request("b"), make_request("c"), constraints=[constraint])
    assert ask(ring(4), claim) == [["dev-0", "dev-2", "dev-1"]]


def test_naming_a_request_covers_its_subrequests() -> None:
    claim = make_claim(
        make_choice("r", ("many", 3, ""), ("few", 2, "")), constraints=[make_constraint("r", cel="size(devices) == 2")]
    )
    assert ask(ring(4), claim) == [["dev-0", "dev-1"]]


def test_a_constraint_on_a_subrequest_that_is_not_chosen_says_nothing() -> None:
    claim = make_claim(
        make_choice("r", ("none", 9, ""), ("some", 2, "")), constraints=[make_constraint("r/none", cel="false")]
    )
    assert ask(ring(4), claim) == [["dev-0", "dev-1"]]


def test_all_devices_satisfy_the_expression_or_nothing_is_allocated() -> None:
    def everything(size: int) -> ResourceClaim:
        return make_claim(
            make_request("r", everything=True), constraints=[make_constraint(cel=f"size(devices) == {size}")]
        )

    assert ask(ring(2), everything(2)) == [["dev-0", "dev-1"]]
    assert ask(ring(2), everything(3)) is None


def test_other_constraints_hold_beside_it() -> None:
    claim = make_claim(
        make_request("r", 2),
        constraints=[make_constraint(match="gpu.example.com/numa"), make_constraint(cel=f"{IDS}.sum() > 3")],
    )
    assert ask(ring(6), claim) == [["dev-0", "dev-4"]]


def test_several_expressions_all_hold() -> None:
    claim = make_claim(
        make_request("r", 2),
        constraints=[make_constraint(cel=f"{IDS}.sum() > 3"), make_constraint(cel=f"{IDS}.sum() % 2 == 0")],
    )
    assert ask(ring(6), claim) == [["dev-0", "dev-4"]]


def test_an_expression_that_fails_stops_and_names_claim_constraint_and_devices() -> None:
    claim = make_claim(
        make_request("r", 2),
        constraints=[make_constraint(match="gpu.example.com/numa"), make_constraint(cel="devices[5].driver == ''")],
    )
    with pytest.raises(ConstraintFailed) as caught:
        ask(ring(4), claim)
    error = caught.value
    assert error.constraint == 1
    assert [device.device for device in error.devices] == ["dev-0", "dev-2"]
    assert "claim default/claim, constraint #1" in str(error)


def test_an_expression_that_does_not_compile_stops_before_the_search() -> None:
    with pytest.raises(ConstraintFailed, match="compile error"):
        ask(ring(4), wanting(1, "devices.nothing"))


def test_without_the_gate_it_is_refused() -> None:
    gates = ALL_GATES.with_changes({"DRACELDeviceConstraint": False})
    index = make_index(make_slice(make_devices(2)), gates=gates)
    with pytest.raises(FeatureDisabled, match="DRACELDeviceConstraint"):
        ask(index, wanting(1, "true"))


def test_sets_that_look_the_same_are_evaluated_once() -> None:
    index = make_index(make_slice(make_devices(12, id=lambda number: number, row=lambda number: number % 3)))
    rows = 'devices.map(d, d.attributes["gpu.example.com"].row).sum()'
    assert ask(index, wanting(6, f"{rows} == 100")) is None
    assert index.statistics.constraint_evaluations <= 3**6


def test_an_expression_that_reads_nothing_is_evaluated_once() -> None:
    index = ring(12)
    assert ask(index, wanting(6, "size(devices) == 7")) is None
    assert index.statistics.constraint_evaluations == 1


def test_nothing_is_evaluated_if_too_few_devices_are_left_anyway() -> None:
    index = ring(8)
    claim = make_claim(make_request("a", 4), make_request("b", 5), constraints=[make_constraint("a", cel=IN_A_ROW)])
    assert ask(index, claim) is None
    assert index.statistics.constraint_evaluations <= 1


def test_the_deadline_holds_between_evaluations() -> None:
    with pytest.raises(DeadlineExceeded):
        ring(8).allocate(NODE, [wanting(3, "size(devices) == 9")], Limits(lambda: True))
