"""v1beta1 and the hub."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api import v1beta1
from dray.api.claims import CapacityRequirements, DeviceRequest, DeviceSubRequest, ExactDeviceRequest
from dray.api.conversion import to_hub, to_v1beta1
from dray.api.devices import Device, DeviceAttribute
from dray.api.slices import ResourceSlice, ResourceSliceSpec


def convert_request(**fields: Any) -> DeviceRequest:
    claim = v1beta1.DeviceClaim(requests=(v1beta1.DeviceRequest(name="r", **fields),))
    converted = to_hub(v1beta1.ResourceClaim(spec=v1beta1.ResourceClaimSpec(devices=claim)))
    request: DeviceRequest = converted.spec.devices.requests[0]
    return request


@pytest.mark.parametrize(
    "fields",
    [
        {"device_class_name": "c"},
        {"selectors": ()},
        {"allocation_mode": "All"},
        {"count": 1},
        {"admin_access": False},
        {"tolerations": ()},
        {"capacity": CapacityRequirements()},
    ],
)
def test_any_field_that_is_set_makes_an_exact_request(fields: dict[str, Any]) -> None:
    assert convert_request(**fields).exactly is not None


def test_a_request_with_alternatives_only_has_no_exact_part() -> None:
    request = convert_request(first_available=(DeviceSubRequest(name="s"),))
    assert request.exactly is None
    assert request.first_available[0].name == "s"


def test_exact_requests_become_flat() -> None:
    exactly = ExactDeviceRequest(device_class_name="c", allocation_mode="ExactCount", count=3, admin_access=True)
    request = DeviceRequest(name="r", exactly=exactly)
    assert convert_request(device_class_name="c", allocation_mode="ExactCount", count=3, admin_access=True) == request


def test_the_content_of_devices_moves_under_basic() -> None:
    device = Device(name="d", attributes={"a": DeviceAttribute(int_value=1)}, node_name="n")
    flat = to_v1beta1(ResourceSlice(spec=ResourceSliceSpec(driver="x", devices=(device, Device(name="e")))))
    assert flat.spec.devices[0].basic.node_name == "n"
    assert flat.spec.devices[1].basic == v1beta1.BasicDevice()
    assert to_hub(flat).spec.devices == (device, Device(name="e"))


def test_a_slice_of_v1beta1_can_not_tell_an_empty_node_name_from_none() -> None:
    spec = ResourceSliceSpec(node_name="", all_nodes=False)
    assert to_hub(to_v1beta1(ResourceSlice(spec=spec))).spec == ResourceSliceSpec()
