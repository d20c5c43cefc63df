"""Whatever decodes can be validated: the answer is a list of errors, never an exception."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dray.api.claims import ResourceClaim, ResourceClaimTemplate
from dray.api.classes import DeviceClass
from dray.api.codec import DecodeError, decode_object
from dray.api.errors import BadRequest
from dray.api.features import KNOWN_GATES, FeatureGates
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.validation.fields import FieldError
from dray.validation.outcome import RequestContext
from dray.validation.statusauthz import Decision, Requester
from dray.validation.strategy import create, update, update_status

NOW = "2026-08-01T00:00:00Z"
KINDS = (ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass, DeviceTaintRule)
VERSIONS = ("v1", "v1beta2", "v1beta1")
TEXTS = (
    *("", "a", "gpu-0", "A b", "dra.example.com", "a.b/c", "a/b/c", "é", "x" * 70, "x" * 300, "<&>\n"),
    *("All", "ExactCount", "Exists", "Equal", "NoExecute", "None", "In", "Gt", "FromClass", "*", "true"),
    *("1.2.3", "1Gi", "100m", "-1", "10.0.0.1/8", "cpu", "metadata.name", NOW, "orphan", "foregroundDeletion"),
    *("device.driver == 'a'", "devices.size() > 1", "123e4567-e89b-12d3-a456-426614174000"),
)

texts = st.sampled_from(TEXTS) | st.text(max_size=8)
numbers = st.sampled_from((-1, 0, 1, 2, 2**63 - 1))
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def json_of(info: Any) -> st.SearchStrategy[Any]:
    """JSON that mostly has the shape of a type, with the names of its fields and junk here and there."""
    match info:
        case msgspec.inspect.StructType():
            fields = {field.encode_name: st.deferred(lambda field=field: json_of(field.type)) for field in info.fields}
            return st.fixed_dictionaries({}, optional=fields)
        case msgspec.inspect.VarTupleType():
            return st.lists(st.deferred(lambda: json_of(info.item_type)), max_size=3)
        case msgspec.inspect.DictType():
            return st.dictionaries(texts, st.deferred(lambda: json_of(info.value_type)), max_size=3)
        case msgspec.inspect.UnionType():
            return st.one_of(*(json_of(member) for member in info.types))
        case msgspec.inspect.Metadata():
            return json_of(info.type)
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.IntType():
            return numbers
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.StrType():
            return texts
        case _:
            return texts | anything


SPECS = {kind: json_of(msgspec.inspect.type_info(kind)) for kind in KINDS}


@st.composite
def objects(draw: st.DrawFn, kind: type[Any]) -> Any:
    """A typed object, or None where the JSON can't be read as one."""
    body = draw(SPECS[kind] if draw(st.integers(0, 9)) else st.dictionaries(texts, anything, max_size=4))
    metadata = {"name": "it", "namespace": "default", "resourceVersion": "1"}
    if isinstance(body.get("metadata"), dict) and draw(st.booleans()):
        metadata |= body["metadata"]
    version = draw(st.sampled_from(VERSIONS)) if kind is not DeviceTaintRule else "v1"
    full = {**body, "apiVersion": f"resource.k8s.io/{version}", "kind": kind.__name__, "metadata": metadata}
    try:
        return decode_object(json.dumps(full).encode("utf-8", "surrogatepass"), now=NOW)
    except DecodeError:
        return None


contexts = st.builds(
    RequestContext,
    now=st.just(NOW),
    gates=st.sets(st.sampled_from(sorted(KNOWN_GATES))).map(
        lambda off: FeatureGates(name for name in KNOWN_GATES if name not in off)
    ),
    version=st.sampled_from(VERSIONS),
    namespace=st.just("default"),
    requester=st.booleans().map(lambda allowed: Requester(lambda access: Decision(allowed), "eve")),
)


def expect_answer(write: Any, *arguments: Any) -> Any:
    try:
        outcome = write(*arguments)
    except BadRequest:
        return None
    assert all(isinstance(error, FieldError) for error in outcome.errors)
    if outcome.accepted:
        return outcome
    refusal = outcome.refusal()
    assert len(refusal.details["causes"]) == len(outcome.errors)
    return outcome


@settings(max_examples=300, deadline=None)
@given(data=st.data(), context=contexts)
def test_validation_answers_with_errors_and_never_raises(data: st.DataObject, context: RequestContext) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    new, old = data.draw(objects(kind)), data.draw(objects(kind))
    if new is None:
        return
    expect_answer(create, new, context)
    if old is not None:
        expect_answer(update, new, old, context)
        if kind in (ResourceClaim, DeviceTaintRule):
            expect_answer(update_status, new, old, context)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), context=contexts)
def test_what_was_stored_can_be_written_again(data: st.DataObject, context: RequestContext) -> None:
    obj = data.draw(objects(data.draw(st.sampled_from(KINDS))))
    outcome = expect_answer(create, obj, context) if obj is not None else None
    if outcome is None or not outcome.accepted:
        return
    again = update(outcome.object, outcome.object, context)
    assert [str(error) for error in again.errors] == []
    assert again.object == outcome.object
