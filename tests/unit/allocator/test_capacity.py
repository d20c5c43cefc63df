"""How much of a device a request consumes, and what that leaves for others."""

from __future__ import annotations

import pytest

from dray.allocator.capacity import CapacityProblem, Need, find_need
from dray.allocator.errors import CapacityUnusable
from dray.api.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, Device, DeviceCapacity
from dray.api.features import ALL_GATES
from dray.api.quantities import Quantity
from tests.unit.allocator.world import ask, make_claim, make_device, make_index, make_request, make_slice


def quantity(text: str | None) -> Quantity | None:
    return None if text is None else Quantity.parse(text)


def ranged(least: str | None, most: str | None = None, step: str | None = None) -> CapacityRequestPolicy:
    return CapacityRequestPolicy(
        valid_range=CapacityRequestPolicyRange(min=quantity(least), max=quantity(most), step=quantity(step))
    )


def need(
    requested: str | None, value: str = "100Gi", policy: CapacityRequestPolicy | None = None, *, fractional: bool = True
) -> Need:
    capacity = {"memory": DeviceCapacity(value=Quantity.parse(value), request_policy=policy)}
    requests = {} if requested is None else {"memory": Quantity.parse(requested)}
    found = find_need(requests, capacity, fractional=fractional)
    assert found is not None
    return found


def consumed(requested: str | None, value: str = "100Gi", policy: CapacityRequestPolicy | None = None) -> str:
    return str(need(requested, value, policy).consumed["memory"])


def test_without_request_and_policy_everything_is_consumed() -> None:
    assert consumed(None) == "100Gi"


def test_without_request_the_default_of_the_policy_is_consumed() -> None:
    assert consumed(None, policy=CapacityRequestPolicy(default=Quantity.parse("5Gi"))) == "5Gi"


def test_a_request_below_the_minimum_consumes_the_minimum() -> None:
    assert consumed("1Gi", policy=ranged("4Gi")) == "4Gi"


@pytest.mark.parametrize(("requested", "rounded"), [("4Gi", "4Gi"), ("5Gi", "6Gi"), ("6Gi", "6Gi"), ("7Gi", "8Gi")])
def test_a_request_is_rounded_up_to_the_next_step(requested: str, rounded: str) -> None:
    assert consumed(requested, policy=ranged("4Gi", step="2Gi")) == rounded


def test_steps_of_thousandths_need_their_gate() -> None:
    policy = ranged("500m", step="250m")
    assert str(need("600m", "8", policy).consumed["memory"]) == "750m"
    assert str(need("600m", "8", policy, fractional=False).consumed["memory"]) == "1"


def test_a_request_takes_the_next_valid_value() -> None:
    policy = CapacityRequestPolicy(valid_values=(Quantity.parse("2Gi"), Quantity.parse("8Gi")))
    assert consumed("3Gi", policy=policy) == "8Gi"
    assert not need("9Gi", policy=policy).fits


def test_more_than_the_maximum_or_the_capacity_does_not_fit() -> None:
    assert not need("9Gi", policy=ranged("1Gi", "8Gi")).fits
    assert not need("200Gi").fits
    assert need("100Gi").fits


def test_a_capacity_that_the_device_lacks_can_not_be_had() -> None:
    assert find_need({"bandwidth": Quantity.parse("1")}, {}, fractional=True) is None


@pytest.mark.parametrize("requested", ["1e21", "9223372036854775807"])
def test_what_can_not_be_represented_stops_the_allocation(requested: str) -> None:
    with pytest.raises(CapacityProblem, match="represent"):
        need(requested, "1e30", ranged("2", step="4"))


def test_a_negative_capacity_stops_the_allocation() -> None:
    with pytest.raises(CapacityProblem, match="negative"):
        need("-1")


def shareable(name: str, memory: str) -> Device:
    return make_device(name, capacity={"memory": memory}, allow_multiple_allocations=True)


def test_two_requests_can_share_a_device_until_it_is_used_up() -> None:
    index = make_index(make_slice([shareable("a", "10Gi"), shareable("b", "10Gi")]))
    claim = make_claim(*(make_request(f"r{n}", capacity={"memory": "4Gi"}) for n in range(4)))
    assert ask(index, claim) == [["a", "a", "b", "b"]]


def test_one_request_never_gets_the_same_device_twice() -> None:
    index = make_index(make_slice([shareable("a", "10Gi"), shareable("b", "10Gi")]))
    assert ask(index, make_claim(make_request(count=2, capacity={"memory": "1Gi"}))) == [["a", "b"]]
    assert ask(index, make_claim(make_request(count=3, capacity={"memory": "1Gi"}))) is None


def test_a_share_has_an_id_and_what_it_consumes() -> None:
    index = make_index(make_slice([shareable("a", "10Gi")]))
    allocation = index.allocate("node-1", [make_claim(make_request(capacity={"memory": "4Gi"}))])
    assert allocation is not None
    (result,) = allocation[0].devices.results
    assert result.share_id == "00000000-0000-0000-0000-000000000001"
    assert {name: str(value) for name, value in result.consumed_capacity.items()} == {"memory": "4Gi"}


def test_what_shares_consume_is_in_use_until_their_claims_go() -> None:
    index = make_index(make_slice([shareable("a", "10Gi")]))
    claim = make_claim(make_request(capacity={"memory": "6Gi"}))
    allocation = index.allocate("node-1", [claim])
    assert allocation is not None
    index.hold(allocation)
    assert ask(index, claim) is None
    assert ask(index, make_claim(make_request(capacity={"memory": "4Gi"}))) == [["a"]]


def test_without_the_gate_a_shareable_device_is_an_ordinary_one() -> None:
    gates = ALL_GATES.with_changes({"DRAConsumableCapacity": False})
    index = make_index(make_slice([shareable("a", "10Gi")]), gates=gates)
    allocation = index.allocate("node-1", [make_claim(make_request())])
    assert allocation is not None
    assert allocation[0].devices.results[0].share_id is None
    assert ask(index, make_claim(make_request("a"), make_request("b"))) is None


def test_the_error_about_a_capacity_names_claim_request_device_and_capacity() -> None:
    policy = ranged("2", step="4")
    device = Device(
        name="big", capacity={"memory": DeviceCapacity(value=Quantity.parse("1e30"), request_policy=policy)}
    )
    index = make_index(make_slice([device]))
    with pytest.raises(CapacityUnusable) as caught:
        ask(index, make_claim(make_request("r", capacity={"memory": "1e21"})))
    text = str(caught.value)
    for part in ("default/claim", "request r", "gpu.example.com/node-1/big", '"memory"'):
        assert part in text
