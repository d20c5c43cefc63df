"""What each version fills in."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.codec import decode_object, read_object
from dray.api.defaults import apply_defaults

NOW = "2026-08-01T00:00:00Z"


def claim(request: Any, version: str = "v1") -> dict[str, Any]:
    spec = {"devices": {"requests": [request]}}
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceClaim", "spec": spec}


def exactly(request: Any, version: str = "v1") -> Any:
    return decode_object(claim(request, version)).spec.devices.requests[0].exactly


@pytest.mark.parametrize(
    ("given", "mode", "count"),
    [
        ({}, "ExactCount", 1),
        ({"count": 3}, "ExactCount", 3),
        ({"allocationMode": "All"}, "All", 0),
        ({"allocationMode": "Weird"}, "Weird", 0),
    ],
)
def test_requests_ask_for_one_device(given: Any, mode: str, count: int) -> None:
    request = exactly({"name": "r", "exactly": {"deviceClassName": "c", **given}})
    assert (request.allocation_mode, request.count) == (mode, count)


def test_subrequests_ask_for_one_device_in_every_version() -> None:
    for version in ("v1", "v1beta2", "v1beta1"):
        value = decode_object(claim({"name": "r", "firstAvailable": [{"name": "s"}]}, version))
        (sub,) = value.spec.devices.requests[0].first_available
        assert (sub.allocation_mode, sub.count) == ("ExactCount", 1)


def test_v1beta1_leaves_a_request_without_class_alone() -> None:
    request = exactly({"name": "r", "tolerations": [{"key": "a"}]}, "v1beta1")
    assert (request.allocation_mode, request.count) == ("", 0)
    assert request.tolerations[0].operator == "Equal"


def test_tolerations_compare_for_equality_in_requests_and_results() -> None:
    tolerations = [{"key": "a"}, {"key": "b", "operator": "Exists"}]
    result = {"request": "r", "tolerations": tolerations}
    status = {"allocation": {"devices": {"results": [result]}}}
    value = decode_object({**claim({"name": "r", "exactly": {"tolerations": tolerations}}), "status": status})
    asked = value.spec.devices.requests[0].exactly.tolerations
    given = value.status.allocation.devices.results[0].tolerations
    assert [entry.operator for entry in asked] == [entry.operator for entry in given] == ["Equal", "Exists"]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_taints_are_stamped_with_the_time_that_is_handed_in(version: str) -> None:
    taints = [{"key": "a"}, {"key": "b", "timeAdded": "2026-01-01T00:00:00Z"}]
    content = {"taints": taints} if version == "v1" else {"basic": {"taints": taints}}
    spec = {"devices": [{"name": "d", **content}, {"name": "e"}]}
    data = {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceSlice", "spec": spec}
    stamped = decode_object(data, now=NOW).spec.devices[0].taints
    assert [taint.time_added for taint in stamped] == [NOW, "2026-01-01T00:00:00Z"]
    assert decode_object(data).spec.devices[0].taints[0].time_added is None


def test_taint_rules_are_stamped_too() -> None:
    data = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "spec": {"taint": {"key": "k"}}}
    assert decode_object(data, now=NOW).spec.taint.time_added == NOW


def test_an_object_that_needs_nothing_is_not_copied() -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}}
    value = read_object(claim(request)).value
    assert apply_defaults(value, NOW) is value


def test_pool_status_requests_are_limited() -> None:
    data = {"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourcePoolStatusRequest", "spec": {"driver": "d"}}
    assert decode_object(data).spec.limit == 100
