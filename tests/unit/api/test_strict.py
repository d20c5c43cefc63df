"""Unknown and duplicate fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dray.api.codec import UnknownKind, decode_object
from dray.api.exact import MAX_STRICT_ERRORS
from dray.api.strict import decode_strict, find_strict_errors

HEAD = '{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",'


def find(text: str, **options: Any) -> list[str]:
    return [str(error) for error in find_strict_errors(text.encode(), **options)]


def test_a_clean_object_has_none() -> None:
    assert (
        find(HEAD + '"metadata":{"name":"s","labels":{"a":"b"}},"spec":{"driver":"d","devices":[{"name":"x"}]}}') == []
    )


@pytest.mark.parametrize(
    ("rest", "errors"),
    [
        ('"bogus":1}', ['unknown field "bogus"']),
        ('"Spec":{}}', ['unknown field "Spec"']),
        ('"spec":{"devices":[{},{"x":{"y":1}}]}}', ['unknown field "spec.devices[1].x"']),
        (
            '"spec":{"devices":[{"attributes":{"a.b/c":{"float":1}}}]}}',
            ['unknown field "spec.devices[0].attributes.a.b/c.float"'],
        ),
        ('"spec":{"driver":"a","driver":"b"}}', ['duplicate field "spec.driver"']),
        ('"metadata":{"labels":{"a":"1","a":"2"}}}', ['duplicate field "metadata.labels.a"']),
        ('"y":1,"spec":{"z":1},"y":2}', ['unknown field "y"', 'unknown field "spec.z"']),
        ('"a\\"\\n":1}', [r'unknown field "a\"\n"']),
    ],
)
def test_each_is_reported_in_the_order_of_the_text(rest: str, errors: list[str]) -> None:
    assert find(HEAD + rest) == errors


def test_errors_lead_to_their_field() -> None:
    (error,) = find_strict_errors((HEAD + '"spec":{"devices":[{"attributes":{"a.b/c":{"float":1}}}]}}').encode())
    assert error.path == ("spec", "devices", 0, "attributes", "a.b/c", "float")


def test_opaque_parameters_are_not_looked_into() -> None:
    config = '{"opaque":{"driver":"d","parameters":{"x":1,"x":2}}}'
    text = f'{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","spec":{{"config":[{config}]}}}}'
    assert find(text) == []


def test_the_spelling_of_the_kep_is_known_unless_refused() -> None:
    text = HEAD + '"spec":{"devices":[{"attributes":{"a":{"list":{"int":[1],"float":[1]}}}}]}}'
    assert find(text) == ['unknown field "spec.devices[0].attributes.a.list.float"']
    assert find(text, early=False) == ['unknown field "spec.devices[0].attributes.a.list"']


def test_constraints_with_cel_are_known() -> None:
    claim = {"devices": {"constraints": [{"cel": {"expression": "true"}}]}}
    text = json.dumps({"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim", "spec": claim})
    assert find(text) == []


def test_there_is_an_end_to_them() -> None:
    fields = ",".join(f'"x{number}":1' for number in range(200))
    assert len(find(f"{HEAD}{fields}}}")) == MAX_STRICT_ERRORS


def test_an_unknown_kind_is_no_strict_error() -> None:
    with pytest.raises(UnknownKind):
        find_strict_errors(b'{"apiVersion":"resource.k8s.io/v1","kind":"Gadget"}')


def test_structs_and_maps_that_come_twice_are_merged() -> None:
    labels = '"metadata":{"name":"a","labels":{"a":"1","b":"1"}},"metadata":{"labels":{"b":"2"}}'
    value, errors = decode_strict(f'{HEAD}{labels},"spec":{{"driver":"d"}}}}'.encode())
    assert errors == ['duplicate field "metadata"']
    assert value.metadata.name == "a"
    assert value.metadata.labels == {"a": "1", "b": "2"}


def test_a_clean_object_is_decoded_as_ever() -> None:
    data = f'{HEAD}"spec":{{"devices":[{{"name":"d","taints":[{{"key":"k"}}]}}]}}}}'.encode()
    assert decode_strict(data, now="2026-01-01T00:00:00Z") == (decode_object(data, now="2026-01-01T00:00:00Z"), [])
