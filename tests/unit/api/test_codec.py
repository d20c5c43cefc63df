"""Objects from JSON and back."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import msgspec
import pytest

from dray.api.claims import DeviceClaim, DeviceRequest, OpaqueDeviceConfiguration, ResourceClaim, ResourceClaimSpec
from dray.api.codec import (
    DecodeError,
    InvalidSyntax,
    UnknownKind,
    decode_as,
    decode_object,
    encode,
    encode_as,
    read_object,
    to_json,
)
from dray.api.devices import DeviceAttribute
from dray.api.meta import NO_RAW
from dray.api.quantities import Quantity
from dray.api.slices import ResourceSlice

V1 = "resource.k8s.io/v1"


def make_slice(*devices: Any, version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": list(devices),
            **spec,
        },
    }


def make_claim(spec: Any, **other: Any) -> dict[str, Any]:
    return {"apiVersion": V1, "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": spec, **other}


def test_the_same_object_comes_from_bytes_text_and_plain_json() -> None:
    plain = make_slice({"name": "gpu-0", "capacity": {"memory": {"value": "1024Mi"}}})
    text = json.dumps(plain)
    assert decode_object(plain) == decode_object(text) == decode_object(text.encode())
    assert decode_object(plain).spec.devices[0].capacity["memory"].value == Quantity.parse("1Gi")


@pytest.mark.parametrize(
    "head",
    [
        f'{{"apiVersion":"{V1}","kind":"DeviceClass",',
        f'{{"kind":"DeviceClass","apiVersion":"{V1}",',
        f'{{ "spec": {{}}, "kind" : "DeviceClass" , "apiVersion" : "{V1}", ',
        f'{{"apiVersion":"{V1}","kind":"ResourceClaim","kind":"DeviceClass",',
    ],
)
def test_the_type_is_found_wherever_it_stands(head: str) -> None:
    assert decode_object(head + '"metadata":{"name":"x"}}').kind == "DeviceClass"


def test_versions_are_converted_to_the_hub() -> None:
    flat = {"requests": [{"name": "r", "deviceClassName": "gpu", "count": 2}]}
    claim = decode_object({**make_claim({"devices": flat}), "apiVersion": "resource.k8s.io/v1beta1"})
    assert claim.api_version == V1
    assert claim.spec.devices.requests[0].exactly.count == 2


def test_reading_alone_neither_converts_nor_fills_in() -> None:
    flat = {"requests": [{"name": "r", "deviceClassName": "gpu"}]}
    kind, value = read_object({**make_claim({"devices": flat}), "apiVersion": "resource.k8s.io/v1beta1"})
    assert kind.version == "v1beta1"
    assert value.spec.devices.requests[0].device_class_name == "gpu"
    assert value.spec.devices.requests[0].count == 0


def test_null_means_nothing_at_all() -> None:
    device = {"name": "d", "attributes": None, "taints": None, "nodeName": None, "allNodes": None}
    value = decode_object(make_slice(device, nodeSelector=None, sharedCounters=None))
    assert value == decode_object(make_slice({"name": "d"}))


def test_null_in_a_list_or_map_is_the_zero_value() -> None:
    value = decode_object(make_slice(None, {"name": "d", "capacity": {"m": None}, "attributes": {"a": None}}))
    assert [device.name for device in value.spec.devices] == ["", "d"]
    assert value.spec.devices[1].capacity["m"].value == Quantity.ZERO
    assert value.spec.devices[1].attributes["a"] == DeviceAttribute()


def test_a_number_keeps_the_way_it_was_written() -> None:
    text = json.dumps(make_slice({"name": "d", "capacity": {"m": {"value": 0}}})).replace('"value": 0', '"value": 1e3')
    assert b'"1e3"' in encode(decode_object(text))


def test_times_are_brought_into_their_stored_form() -> None:
    taint = {"key": "k", "effect": "NoSchedule", "timeAdded": "2026-02-03T04:05:06.7+02:00"}
    (device,) = decode_object(make_slice({"name": "d", "taints": [taint]})).spec.devices
    assert device.taints[0].time_added == "2026-02-03T02:05:06Z"


def test_opaque_parameters_stay_as_they_were_written() -> None:
    text = json.dumps(make_claim({"devices": {"config": [{"opaque": {"driver": "d", "parameters": {}}}]}}))
    value = decode_object(text.replace('"parameters": {}', '"parameters": {"b" : 1.0,\n "a":null}'))
    assert bytes(value.spec.devices.config[0].opaque.parameters) == b'{"b" : 1.0,\n "a":null}'


def test_managed_fields_do_not_keep_the_whole_text_alive() -> None:
    entry = {"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}
    value = decode_object({**make_slice(), "metadata": {"name": "s", "managedFields": [entry, {"manager": "n"}]}})
    first, second = value.metadata.managed_fields
    assert bytes(first.fields_v1) == b'{"f:spec":{}}'
    assert second.fields_v1 is NO_RAW
    assert to_json(value)["metadata"]["managedFields"] == [entry, {"manager": "n"}]


def test_list_attributes_are_read_in_the_spelling_of_the_kep() -> None:
    attributes = {
        "a": {"list": {"string": ["x", "y"]}},
        "b": {"list": {"int": [1]}},
        "c": {"list": {"bool": [True]}},
        "d": {"list": {"version": ["1.0.0"]}},
    }
    value = decode_object(make_slice({"name": "d", "attributes": attributes}))
    assert to_json(value)["spec"]["devices"][0]["attributes"] == {
        "a": {"strings": ["x", "y"]},
        "b": {"ints": [1]},
        "c": {"bools": [True]},
        "d": {"versions": ["1.0.0"]},
    }


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
def test_capacities_are_read_in_the_early_spelling(version: str) -> None:
    device = {"name": "d", "basic": {"capacity": {"memory": "16Gi", "cores": 8, "slots": {"value": "2"}}}}
    capacity = decode_object(make_slice(device, version=version)).spec.devices[0].capacity
    assert {name: str(entry.value) for name, entry in capacity.items()} == {
        "memory": "16Gi",
        "cores": "8",
        "slots": "2",
    }


@pytest.mark.parametrize(
    "data",
    [
        make_slice({"name": "d", "basic": {"capacity": {"memory": "16Gi"}}}, version="v1beta1"),
        {**make_claim({}), "apiVersion": "resource.k8s.io/v1alpha3"},
    ],
)
def test_early_spellings_can_be_refused(data: dict[str, Any]) -> None:
    decode_object(data)
    with pytest.raises(DecodeError):
        decode_object(data, early=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unexpected end of JSON input"),
        ('{"apiVersion": "resource.k8s.io/v1", "kind": ', "unexpected end of JSON input"),
        ("[]", "cannot unmarshal array"),
        ("7", "cannot unmarshal number"),
        ('{"apiVersion": "resource.k8s.io/v1"}', "Object 'Kind' is missing"),
        ('{"kind": "DeviceClass"}', "Object 'apiVersion' is missing"),
        ('{"kind": "DeviceClass", "apiVersion": "a/b/c"}', "unexpected GroupVersion string: a/b/c"),
        (
            '{"kind": "DeviceClass", "apiVersion": 1}',
            "json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string",
        ),
        (
            f'{{"kind": "DeviceClass", "apiVersion": "{V1}", "spec": {{"x": NaN}}}}',
            "invalid character 'N' looking for beginning of value",
        ),
        (f'{{"kind": "DeviceClass", "apiVersion": "{V1}", "x": {"[" * 100_000}', "exceeded max depth"),
        (f'{{"kind": "DeviceClass", "apiVersion": "{V1}"}} trailing', "invalid character 't' after top-level value"),
    ],
)
def test_what_is_no_object_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode_object(text)


def test_a_syntax_error_has_a_place() -> None:
    with pytest.raises(InvalidSyntax) as caught:
        decode_object(f'{{"apiVersion": "{V1}",\n "kind": "DeviceClass",\n "spec": nope}}')
    assert (caught.value.line, caught.value.column) == (3, 10)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [(V1, "Gadget"), ("resource.k8s.io/v9", "ResourceClaim"), ("resource.k8s.io/v1beta1", "DeviceTaintRule")],
)
def test_unknown_kinds_are_named(api_version: str, kind: str) -> None:
    with pytest.raises(UnknownKind) as caught:
        decode_object({"apiVersion": api_version, "kind": kind})
    assert caught.value.message == f'no kind "{kind}" is registered for version "{api_version}"'


def test_text_that_is_no_text_is_replaced_as_go_does() -> None:
    head = f'{{"apiVersion":"{V1}","kind":"DeviceClass","metadata":'.encode()
    assert decode_object(head + b'{"name":"a\xff"}}').metadata.name == "a\ufffd"
    assert decode_object(head + b'{"name":"a\\ud800b"}}').metadata.name == "a\ufffdb"
    assert decode_object(head + b'{"name":"\\ud83d\\ude00"}}').metadata.name == "\U0001f600"


def test_plain_json_that_is_no_json_is_refused() -> None:
    with pytest.raises(DecodeError, match="not JSON"):
        decode_object({"kind": {1, 2}, "apiVersion": object()})


def test_an_expected_kind_is_checked() -> None:
    assert decode_as(ResourceSlice, make_slice()).kind == "ResourceSlice"
    with pytest.raises(DecodeError, match="expected a ResourceClaim, got a ResourceSlice"):
        decode_as(ResourceClaim, make_slice())


def test_an_item_of_a_list_needs_no_kind() -> None:
    item = {key: value for key, value in make_slice().items() if key not in ("kind", "apiVersion")}
    assert decode_as(ResourceSlice, item).spec.driver == "d"


def test_fields_that_go_always_writes_are_written() -> None:
    assert to_json(ResourceSlice()) == {
        "metadata": {},
        "spec": {"driver": "", "pool": {"name": "", "generation": 0, "resourceSliceCount": 0}},
    }
    assert to_json(OpaqueDeviceConfiguration()) == {"driver": "", "parameters": None}


def test_an_absent_list_of_requests_is_null_and_an_empty_one_empty() -> None:
    absent = ResourceClaim()
    empty = ResourceClaim(spec=ResourceClaimSpec(devices=DeviceClaim(requests=())))
    assert to_json(absent)["spec"] == {"devices": {"requests": None}}
    assert to_json(empty)["spec"] == {"devices": {"requests": []}}
    assert absent == empty


def test_a_copy_is_written_like_the_original() -> None:
    claim = ResourceClaim()
    assert encode(copy.deepcopy(claim)) == encode(pickle.loads(pickle.dumps(claim))) == encode(claim)


def test_an_empty_list_attribute_is_known_but_not_written() -> None:
    value = decode_object(make_slice({"name": "d", "attributes": {"a": {"ints": []}, "b": {"ints": [1]}}}))
    assert value.spec.devices[0].attributes["a"].int_values == ()
    assert to_json(value)["spec"]["devices"][0]["attributes"] == {"a": {}, "b": {"ints": [1]}}


def test_lists_are_decoded_with_their_items() -> None:
    items = [{"metadata": {"name": "a"}}, {"kind": "DeviceClass", "apiVersion": V1, "metadata": {"name": "b"}}]
    classes = decode_object({"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClassList", "items": items})
    assert [item.metadata.name for item in classes.items] == ["a", "b"]
    assert json.loads(encode_as(classes, "v1beta2")) == {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceClassList",
        "metadata": {},
        "items": [{"metadata": {"name": "a"}, "spec": {}}, {"metadata": {"name": "b"}, "spec": {}}],
    }


def test_objects_made_in_code_are_written_with_their_kind() -> None:
    claim = ResourceClaim(spec=ResourceClaimSpec(devices=DeviceClaim(requests=(DeviceRequest(name="r"),))))
    written = json.loads(encode_as(claim, "v1beta1"))
    assert (written["apiVersion"], written["kind"]) == ("resource.k8s.io/v1beta1", "ResourceClaim")
    with pytest.raises(UnknownKind):
        encode_as(claim, "v7")


def test_raw_parts_can_be_compared() -> None:
    first, second = (decode_object(make_claim({}, status={"devices": [{"data": {"a": 1}}]})) for _ in range(2))
    assert first == second
    assert first.status.devices[0].data == msgspec.Raw(b'{"a":1}')
