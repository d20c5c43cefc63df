"""Claims that can't be handled, and which problem is told first."""

from __future__ import annotations

import pytest

from dray.allocator.errors import AllocationError, ClassMissing, FeatureDisabled, PoolUnusable, UnsupportedRequest
from dray.allocator.index import Index
from dray.api.claims import CapacityRequirements, DeviceRequest, DeviceSelector, ExactDeviceRequest, ResourceClaim
from dray.api.devices import DeviceTaint
from dray.api.features import ALL_GATES
from tests.unit.allocator.world import (
    ask,
    make_choice,
    make_claim,
    make_device,
    make_devices,
    make_index,
    make_request,
    make_slice,
)


def without(gate: str) -> Index:
    return make_index(make_slice(make_devices(2)), gates=ALL_GATES.with_changes({gate: False}))


@pytest.mark.parametrize(
    ("gate", "claim"),
    [
        ("DRAPrioritizedList", make_claim(make_choice("r", ("only", 1, "")))),
        ("DRAConsumableCapacity", make_claim(make_request("r", capacity={}))),
        ("DRAAdminAccess", make_claim(make_request("r", admin_access=False))),
    ],
)
def test_a_feature_that_is_off_is_refused_by_name(gate: str, claim: ResourceClaim) -> None:
    assert ask(make_index(make_slice(make_devices(2))), claim) == [["dev-0"]]
    with pytest.raises(FeatureDisabled) as caught:
        ask(without(gate), claim)
    assert caught.value.gate == gate
    assert gate in str(caught.value)
    assert "request r" in str(caught.value) or "request only" in str(caught.value)


def exactly(**fields: object) -> DeviceRequest:
    values = {"device_class_name": "gpu", "allocation_mode": "ExactCount", "count": 1, **fields}
    return DeviceRequest(name="r", exactly=ExactDeviceRequest(**values))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (exactly(selectors=(DeviceSelector(),)), "selector #0"),
        (exactly(device_class_name=""), "missing device class name"),
        (exactly(allocation_mode="Some"), "unsupported count mode Some"),
        (DeviceRequest(name="r"), "neither exactly nor firstAvailable"),
    ],
)
def test_what_is_not_known_is_refused(request_: DeviceRequest, problem: str) -> None:
    with pytest.raises(UnsupportedRequest, match=problem):
        ask(make_index(), make_claim(request_))


def test_a_missing_class_is_named_even_if_its_request_would_never_be_reached() -> None:
    claim = make_claim(make_request("r", device_class="gpu"), make_request("s", device_class="none"))
    with pytest.raises(ClassMissing) as caught:
        ask(make_index(make_slice(make_devices(2))), claim)
    assert (caught.value.class_name, caught.value.request) == ("none", "s")


def first_error(*requests: DeviceRequest) -> AllocationError:
    index = make_index(make_slice(make_devices(1), count=2))
    with pytest.raises(AllocationError) as caught:
        ask(index, make_claim(*requests))
    return caught.value


def test_the_first_problem_in_the_order_of_the_requests_is_told() -> None:
    everything = make_request("all", everything=True)
    missing = make_request("missing", device_class="none")
    assert isinstance(first_error(everything, missing), PoolUnusable)
    assert isinstance(first_error(missing, everything), ClassMissing)


def test_a_capacity_request_without_its_gate_is_refused_before_the_class_is_looked_up() -> None:
    request = exactly(device_class_name="none", capacity=CapacityRequirements())
    with pytest.raises(FeatureDisabled):
        ask(without("DRAConsumableCapacity"), make_claim(request))


def test_a_tainted_device_needs_a_toleration() -> None:
    tainted = make_device("bad", taints=(DeviceTaint(key="k", value="v", effect="NoSchedule"),))
    marked = make_device("marked", taints=(DeviceTaint(key="k", effect="None"),))
    index = make_index(make_slice([tainted, marked]))
    assert ask(index, make_claim(make_request())) == [["marked"]]
    off = make_index(make_slice([tainted, marked]), gates=ALL_GATES.with_changes({"DRADeviceTaints": False}))
    assert ask(off, make_claim(make_request())) == [["bad"]]
