from __future__ import annotations

from typing import Any

import pytest

from dray.api.codec import decode_object, encode_as
from dray.api.errors import BadRequest
from tests.unit.validation.builders import (
    NOW,
    created,
    expect_accepted,
    expect_errors,
    make,
    make_claim,
    make_device,
    make_request,
    make_slice,
    updated,
)

RULE: dict[str, Any] = {"taint": {"key": "a", "effect": "None"}}


def in_version(obj: Any, version: str) -> Any:
    return decode_object(encode_as(obj, version), now=NOW)


def test_an_object_gets_the_namespace_of_its_request() -> None:
    spec = {"devices": {"requests": [make_request()]}}
    stored = expect_accepted(created(make("ResourceClaim", spec, namespace=""), namespace="team"))
    assert stored.metadata.namespace == "team"
    with pytest.raises(BadRequest, match="the namespace of the provided object does not match"):
        created(make_claim(), namespace="team")


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    stored = expect_accepted(created(make("DeviceClass", {}, namespace="default")))
    assert stored.metadata.namespace == ""


def test_what_is_the_servers_is_not_taken_from_the_client() -> None:
    stored = expect_accepted(created(make("DeviceClass", {}, uid="u", creationTimestamp=NOW, deletionTimestamp=NOW)))
    assert (stored.metadata.uid, stored.metadata.creation_timestamp, stored.metadata.deletion_timestamp) == (
        "",
        None,
        None,
    )


def test_an_update_without_resource_version_replaces_whatever_is_stored() -> None:
    stored = expect_accepted(updated(make("DeviceClass", {}, resourceVersion=""), make("DeviceClass", {})))
    assert stored.metadata.resource_version == "1"


def test_a_taint_rule_is_never_replaced_unseen_in_v1() -> None:
    blind, old = make("DeviceTaintRule", RULE, resourceVersion=""), make("DeviceTaintRule", RULE)
    outcome = updated(blind, old)
    expect_errors(outcome, "metadata.resourceVersion: Invalid value: 0: must be specified for an update")
    assert outcome.refusal().message.startswith('devicetaintrules.resource.k8s.io "it" is invalid: metadata.resour')
    expect_accepted(updated(blind, old, version="v1beta2"))


def test_a_refusal_is_a_status_with_causes() -> None:
    refusal = created(make_claim(make_request("A"), make_request("b", count=-1))).refusal()
    assert refusal.code == 422
    assert refusal.message.startswith(
        'ResourceClaim.resource.k8s.io "it" is invalid: [spec.devices.requests[0].name: Inv'
    )
    assert refusal.details["kind"] == "ResourceClaim"
    assert [cause["field"] for cause in refusal.details["causes"]] == [
        "spec.devices.requests[0].name",
        "spec.devices.requests[1].exactly.count",
    ]


def test_a_refusal_with_one_error_has_no_brackets() -> None:
    message = created(make("DeviceClass", {"selectors": [{}]})).refusal().message
    assert message == 'DeviceClass.resource.k8s.io "it" is invalid: spec.selectors[0].cel: Required value'


def test_declarative_errors_show_the_fields_of_the_requested_version() -> None:
    claim = make_claim(make_request(allocationMode="Some"), make_request("b", count=-1))
    flat = in_version(claim, "v1beta1")
    expect_errors(
        created(flat, version="v1beta1"),
        "spec.devices.requests[0].allocationMode: Unsupported value",
        "spec.devices.requests[1].exactly.count: Invalid value: -1",
    )
    expect_errors(
        created(in_version(claim, "v1beta2"), version="v1beta2"),
        "spec.devices.requests[0].exactly.allocationMode: Unsupported value",
        "spec.devices.requests[1].exactly.count: Invalid value: -1",
    )


def test_devices_are_basic_in_v1beta1() -> None:
    obj = in_version(make_slice(make_device(attributes={"a": {}, "b c": {"int": 1}})), "v1beta1")
    expect_errors(
        created(obj, version="v1beta1"),
        'spec.devices[0].attributes: Invalid value: "b c"',
        'spec.devices[0].basic.attributes[a]: Invalid value: "": must specify one of',
    )


def test_a_duplicate_is_shown_in_the_shape_of_the_version() -> None:
    claim = in_version(make_claim(make_request(), make_request()), "v1beta1")
    shown = '{"name":"gpu","deviceClassName":"gpus","allocationMode":"ExactCount","count":1}'
    expect_errors(created(claim, version="v1beta1"), f"spec.devices.requests[1]: Duplicate value: {shown}")
