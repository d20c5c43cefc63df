"""Objects survive being written and read, in every version, by either decoder."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dray.api.codec import DecodeError, decode_object, encode, encode_as, find_kind, kind_record, read_object, to_json
from dray.api.exact import read_exactly
from dray.api.kinds import KINDS
from dray.api.slices import ResourceSlice
from dray.api.strict import decode_strict, find_strict_errors
from tests.properties.api_objects import JSON, any_objects, objects

NOW = "2026-08-01T00:00:00Z"

relaxed = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@relaxed
@given(any_objects())
def test_an_object_that_was_written_reads_the_same(plain: dict[str, Any]) -> None:
    value = read_object(plain).value
    text = encode(value)
    again = read_object(text).value
    assert again == value
    assert encode(again) == text
    assert to_json(value) == json.loads(text)


@relaxed
@given(any_objects())
def test_defaults_are_filled_in_once(plain: dict[str, Any]) -> None:
    once = decode_object(encode_as(decode_object(plain, now=NOW), plain["apiVersion"].rpartition("/")[2]), now=NOW)
    assert once == decode_object(plain, now=NOW)


@relaxed
@given(any_objects())
def test_both_decoders_read_the_same(plain: dict[str, Any]) -> None:
    text = json.dumps(plain)
    kind, value = read_object(text)
    exact = read_exactly(text, kind_record(kind, early=True))
    assert exact.value == value
    assert encode(exact.value) == encode(value)
    assert exact.strict_errors == []
    assert find_strict_errors(text.encode()) == []


@relaxed
@given(any_objects(), st.sampled_from(["v1", "v1beta2", "v1beta1", "v1alpha3"]))
def test_conversion_there_and_back_loses_nothing_but_what_v1beta1_can_not_say(plain: dict[str, Any], via: str) -> None:
    value = decode_object(plain, now=NOW)
    if (f"resource.k8s.io/{via}", value.kind) not in KINDS:
        return
    back = decode_object(encode_as(value, via), now=NOW)
    if isinstance(value, ResourceSlice) and find_kind(f"resource.k8s.io/{via}", value.kind).flat:
        spec = replace(value.spec, node_name=value.spec.node_name or None, all_nodes=value.spec.all_nodes or None)
        value = replace(value, spec=spec)
    if plain["kind"].startswith("ResourceClaim") and plain["apiVersion"].endswith(("v1beta1", "v1alpha3")):
        # A flat request without class has no defaults, its counterpart in the other versions has.
        assert decode_object(encode(value), now=NOW) == decode_object(encode(back), now=NOW)
    else:
        assert back == value
        assert encode(back) == encode(value)


@relaxed
@given(any_objects(), st.data())
def test_unknown_fields_are_found_and_change_nothing(plain: dict[str, Any], data: st.DataObject) -> None:
    place: Any = plain
    path: list[str] = []
    while True:
        inner = [
            name for name in ("spec", "status", "metadata", "devices", "pool") if isinstance(place.get(name), dict)
        ]
        if not inner or data.draw(st.booleans()):
            break
        path.append(data.draw(st.sampled_from(inner)))
        place = place[path[-1]]
    expected = decode_object(json.dumps(plain), now=NOW)
    place["bogus"] = data.draw(JSON)
    value, errors = decode_strict(json.dumps(plain).encode(), now=NOW)
    assert errors == [f'unknown field "{".".join([*path, "bogus"])}"']
    assert value == expected


@relaxed
@given(st.sampled_from(sorted(KINDS)), st.dictionaries(st.sampled_from(["metadata", "spec", "status", "items"]), JSON))
def test_any_json_either_decodes_or_is_refused(kind: tuple[str, str], body: dict[str, Any]) -> None:
    try:
        value = decode_object({"apiVersion": kind[0], "kind": kind[1], **body})
    except DecodeError:
        return
    assert decode_object(encode(value)) == value


@relaxed
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_object(data)


@settings(relaxed, max_examples=50)
@given(st.lists(objects(KINDS["resource.k8s.io/v1beta1", "ResourceSlice"]), max_size=3))
def test_lists_are_made_of_their_items(items: list[dict[str, Any]]) -> None:
    listed = decode_object({"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceSliceList", "items": items})
    singles = [replace(decode_object(item), api_version="", kind="") for item in items]
    assert list(listed.items) == singles
