"""The order in which solutions are found, what is left out, and when errors are met."""

from __future__ import annotations

import itertools

import pytest

from dray.allocator.errors import DeadlineExceeded, SelectorFailed, TooManyDevices
from dray.allocator.search import Limits
from dray.api.devices import Device
from tests.unit.allocator.world import (
    NODE,
    ask,
    make_choice,
    make_claim,
    make_constraint,
    make_device,
    make_devices,
    make_index,
    make_request,
    make_slice,
)

MODEL_A = 'device.attributes["gpu.example.com"].model == "A"'
NUMA = "gpu.example.com/numa"


def models(letters: str) -> tuple[Device, ...]:
    """One device for each letter; a dot is a device without a model."""
    return tuple(
        make_device(f"dev-{number}", {} if letter == "." else {"model": letter})
        for number, letter in enumerate(letters)
    )


def test_the_first_devices_that_fit_are_taken() -> None:
    index = make_index(make_slice(make_devices(4)), used=["dev-0", "dev-2"])
    assert ask(index, make_claim(make_request(count=2))) == [["dev-1", "dev-3"]]


@pytest.mark.parametrize("count", [0, -3])
def test_fewer_than_one_device_is_none(count: int) -> None:
    index = make_index(make_slice(make_devices(2)))
    assert ask(index, make_claim(make_request("none", count), make_request("one"))) == [["dev-0"]]


def test_requests_and_claims_never_share_a_whole_device() -> None:
    index = make_index(make_slice(make_devices(4)))
    claims = [make_claim(make_request("a"), make_request("b"), name=name) for name in "xy"]
    assert ask(index, *claims) == [["dev-0", "dev-1"], ["dev-2", "dev-3"]]


def test_an_earlier_request_gives_way_to_a_later_one() -> None:
    index = make_index(make_slice(models("AB")))
    assert ask(index, make_claim(make_request("any"), make_request("a", 1, MODEL_A))) == [["dev-1", "dev-0"]]


def test_an_earlier_claim_gives_way_to_a_later_one() -> None:
    index = make_index(make_slice(models("AB")))
    claims = [make_claim(make_request("any"), name="x"), make_claim(make_request("a", 1, MODEL_A), name="y")]
    assert ask(index, *claims) == [["dev-1"], ["dev-0"]]


def test_the_first_alternative_that_fits_is_taken() -> None:
    index = make_index(make_slice(models("BB")))
    allocation = index.allocate(NODE, [make_claim(make_choice("r", ("best", 1, MODEL_A), ("good", 2, "")))])
    assert allocation is not None
    assert [result.request for result in allocation[0].devices.results] == ["r/good", "r/good"]


def test_an_alternative_is_given_up_for_a_later_request() -> None:
    index = make_index(make_slice(make_devices(3)))
    claim = make_claim(make_choice("r", ("many", 3, ""), ("few", 1, "")), make_request("other", 2))
    assert ask(index, claim) == [["dev-0", "dev-1", "dev-2"]]


def test_more_devices_than_there_are_is_seen_at_once() -> None:
    index = make_index(make_slice(make_devices(31)))
    assert ask(index, make_claim(make_request(count=32))) is None
    assert index.statistics.steps == 0


def test_a_value_that_too_few_devices_have_is_not_tried_out() -> None:
    index = make_index(make_slice(make_devices(40, numa=lambda number: number % 2)))
    claim = make_claim(make_request(count=21), constraints=[make_constraint(match=NUMA)])
    assert ask(index, claim) is None
    assert index.statistics.steps < 5


def test_requests_that_compete_for_too_few_devices_are_not_tried_out() -> None:
    index = make_index(make_slice(make_devices(23)))
    assert ask(index, make_claim(*(make_request(name, 8) for name in "abc"))) is None
    assert index.statistics.steps < 50


def test_equal_devices_are_not_tried_one_after_the_other() -> None:
    devices = [make_device(f"dev-{number}", {"numa": number % 4, "root": number % 3}) for number in range(24)]
    index = make_index(make_slice(devices))
    constraints = [make_constraint(match=NUMA), make_constraint(distinct="gpu.example.com/root")]
    assert ask(index, make_claim(make_request(count=4), constraints=constraints)) is None
    assert index.statistics.steps < 200


def test_the_limit_of_a_claim_is_checked_before_anything_else() -> None:
    index = make_index(make_slice(make_devices(3)))
    with pytest.raises(TooManyDevices) as caught:
        ask(index, make_claim(make_request("a", 20), make_request("b", 20)))
    assert (caught.value.count, caught.value.limit) == (40, 32)


def test_an_alternative_beyond_the_limit_is_passed_over() -> None:
    index = make_index(make_slice(make_devices(40)))
    claim = make_claim(make_choice("r", ("many", 30, ""), ("few", 1, "")), make_request("other", 3))
    assert ask(index, claim) == [["dev-0", "dev-1", "dev-2", "dev-3"]]


def test_all_matching_devices_are_taken_or_none() -> None:
    index = make_index(make_slice(models("ABA")))
    everything = make_claim(make_request("r", 0, MODEL_A, everything=True))
    assert ask(index, everything) == [["dev-0", "dev-2"]]
    used = make_index(make_slice(models("ABA")), used=["dev-2"])
    assert ask(used, everything) is None


def test_admin_access_takes_devices_in_use_but_not_twice_in_a_claim() -> None:
    index = make_index(make_slice(make_devices(2)), used=["dev-0", "dev-1"])
    admin = make_claim(make_request("a", admin_access=True), make_request("b", admin_access=True))
    assert ask(index, admin) == [["dev-0", "dev-1"]]
    assert ask(index, make_claim(*(make_request(name, admin_access=True) for name in "abc"))) is None


# Errors


def test_a_selector_fails_where_the_search_meets_the_device() -> None:
    index = make_index(make_slice(models(".A")))
    with pytest.raises(SelectorFailed) as caught:
        ask(index, make_claim(make_request("r", 1, MODEL_A)))
    error = caught.value
    assert (error.request, error.index, error.class_name) == ("r", 0, "")
    assert error.device is not None
    assert error.device.device == "dev-0"
    assert "optional chaining" in str(error)


def test_a_device_behind_the_solution_is_not_looked_at() -> None:
    assert ask(make_index(make_slice(models("A."))), make_claim(make_request("r", 1, MODEL_A))) == [["dev-0"]]


def test_a_device_in_use_is_not_looked_at() -> None:
    index = make_index(make_slice(models(".A")), used=["dev-0"])
    assert ask(index, make_claim(make_request("r", 1, MODEL_A))) == [["dev-1"]]


def test_a_device_in_use_is_looked_at_for_all_devices() -> None:
    index = make_index(make_slice(models(".A")), used=["dev-0"])
    with pytest.raises(SelectorFailed):
        ask(index, make_claim(make_request("r", 0, MODEL_A, everything=True)))


def test_going_back_meets_the_device_that_was_passed_by() -> None:
    """The first request is done before the device at fault; since the second fails, the search comes back to it."""
    index = make_index(make_slice(models("A.")))
    with pytest.raises(SelectorFailed):
        ask(index, make_claim(make_request("r", 1, MODEL_A), make_request("s", 2)))


def test_an_expression_that_does_not_compile_is_met_only_with_a_device() -> None:
    broken = make_claim(make_request("r", 1, "no such thing"))
    assert ask(make_index(), broken) is None
    with pytest.raises(SelectorFailed, match="compile error"):
        ask(make_index(make_slice(make_devices(1))), broken)


def test_a_search_ends_at_its_deadline() -> None:
    """Pairs of lists that never are disjoint: the look-ahead can't tell, so sets have to be tried."""
    values = [list(pair) for pair in itertools.combinations(range(7), 2)]
    devices = [make_device(f"dev-{number}", {"link": value}) for number, value in enumerate(values)]
    index = make_index(make_slice(devices))
    claim = make_claim(make_request(count=4), constraints=[make_constraint(distinct="gpu.example.com/link")])
    with pytest.raises(DeadlineExceeded):
        index.allocate(NODE, [claim], Limits(lambda: True))
    assert index.allocate(NODE, [claim]) is None
