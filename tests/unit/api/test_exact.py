"""The exact decoder's messages and Go's peculiarities."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dray.api.codec import DecodeError, decode_object
from dray.api.exact import format_path, locate

V1 = "resource.k8s.io/v1"


def claim_text(spec: str, version: str = "v1") -> str:
    return (
        f'{{"apiVersion":"resource.k8s.io/{version}","kind":"ResourceClaim","metadata":{{"name":"a"}},"spec":{spec}}}'
    )


def error_of(text: str) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        decode_object(text)
    return caught.value


@pytest.mark.parametrize(
    ("spec", "message", "field"),
    [
        ('"x"', "string into Go struct field ResourceClaim.spec of type v1.ResourceClaimSpec", "spec"),
        (
            '{"devices":{"requests":[{},{"exactly":[]}]}}',
            "array into Go struct field DeviceRequest.spec.devices.requests.exactly of type v1.ExactDeviceRequest",
            "spec.devices.requests[1].exactly",
        ),
        (
            '{"devices":{"requests":[{"exactly":{"allocationMode":1}}]}}',
            "number into Go struct field ExactDeviceRequest.spec.devices.requests.exactly.allocationMode"
            " of type v1.DeviceAllocationMode",
            "spec.devices.requests[0].exactly.allocationMode",
        ),
        (
            '{"devices":{"constraints":[{"requests":["a",true]}]}}',
            "bool into Go struct field DeviceConstraint.spec.devices.constraints.requests of type string",
            "spec.devices.constraints[0].requests[1]",
        ),
        (
            '{"devices":{"requests":[{"exactly":{"capacity":{"requests":[]}}}]}}',
            "array into Go struct field CapacityRequirements.spec.devices.requests.exactly.capacity.requests"
            " of type map[v1.QualifiedName]resource.Quantity",
            "spec.devices.requests[0].exactly.capacity.requests",
        ),
    ],
)
def test_a_wrong_type_is_reported_as_go_reports_it(spec: str, message: str, field: str) -> None:
    error = error_of(claim_text(spec))
    assert (error.message, error.field) == (f"json: cannot unmarshal {message}", field)


def test_versions_name_their_own_types() -> None:
    error = error_of(claim_text('{"devices":{"requests":{}}}', "v1beta1"))
    assert error.message.endswith("of type []v1beta1.DeviceRequest")


def test_types_of_other_groups_keep_their_package() -> None:
    error = error_of(claim_text('{"devices":{}},"metadata":{"labels":{"a":1}}', "v1beta1"))
    assert (
        error.message == "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
    )
    error = error_of(claim_text('{"devices":{}},"metadata":[]', "v1beta1"))
    assert error.message.endswith("ResourceClaim.metadata of type v1.ObjectMeta")


def test_the_first_wrong_type_is_reported() -> None:
    error = error_of(claim_text('{"devices":{"requests":[{"name":1},{"name":true}]}}'))
    assert error.field == "spec.devices.requests[0].name"


def test_a_bad_quantity_is_reported_before_an_earlier_wrong_type() -> None:
    request = '{"name":1,"exactly":{"capacity":{"requests":{"m":"1GB"}}}}'
    error = error_of(claim_text(f'{{"devices":{{"requests":[{request}]}}}}'))
    assert error.message.startswith("quantities must match")
    assert error.path == ("spec", "devices", "requests", 0, "exactly", "capacity", "requests", "m")


@pytest.mark.parametrize("literal", ["1", "true", "{}"])
def test_a_time_must_be_text(literal: str) -> None:
    error = error_of(claim_text('{"devices":{}},"metadata":{"creationTimestamp":' + literal + "}"))
    assert error.message.startswith("json: cannot unmarshal")
    assert error.message.endswith("into Go value of type string")


def test_the_zero_time_counts_as_absent() -> None:
    text = claim_text('{"devices":{}},"metadata":{"creationTimestamp":"0001-01-01T00:00:00Z"}')
    assert decode_object(text).metadata.creation_timestamp is None


@pytest.mark.parametrize("literal", ["9223372036854775808", "-9223372036854775809", "1.0", "1e2", "1" + "0" * 5000])
def test_numbers_that_are_no_int64_are_refused(literal: str) -> None:
    error = error_of(claim_text('{"devices":{"requests":[{"exactly":{"count":' + literal + "}}]}}"))
    assert f"number {literal} into" in error.message


def test_paths_are_written_as_kubernetes_does() -> None:
    assert format_path(("spec", "devices", 0, "attributes", "a.b/c")) == "spec.devices[0].attributes.a.b/c"
    assert format_path(()) == ""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 0),
        (("a",), 1),
        (("a", "b", 1), 4),
        (("a", "b", 1, "c"), 5),
        (("a", "b", 7), 2),
        (("a", "unknown", "b", 0), 3),
        (("z",), 0),
    ],
)
def test_fields_are_found_in_json_text(path: Any, line: int) -> None:
    text = '{\n"a": {\n"b": [\n1,\n{\n"c" : "}"}]}}'
    assert json.loads(text)
    assert text.count("\n", 0, locate(text, path)) == line
