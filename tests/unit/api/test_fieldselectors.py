from __future__ import annotations

import pytest

from dray.api.fieldselectors import InvalidFieldSelector, check_field_selector, parse_field_selector
from dray.api.meta import Json

POD: Json = {
    "metadata": {"name": "p", "namespace": "ns"},
    "spec": {"nodeName": "n1", "hostNetwork": True},
    "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("spec.nodeName=n1", True),
        ("spec.nodeName!=n1", False),
        ("spec.nodeName=n1,status.phase!=Succeeded", True),
        ("status.podIP=10.0.0.1", True),
        ("spec.hostNetwork=true", True),
        ("spec.schedulerName=", True),
    ],
)
def test_objects_are_selected_by_their_fields(text: str, matches: bool) -> None:
    assert parse_field_selector(text).matches_object(POD) is matches


def test_a_node_that_says_nothing_is_schedulable() -> None:
    assert parse_field_selector("spec.unschedulable=false").matches_object({"spec": {}})


def test_an_event_without_source_is_found_by_who_reports_it() -> None:
    assert parse_field_selector("source=dray").matches_object({"reportingComponent": "dray"})


def test_commas_and_equals_signs_can_be_escaped() -> None:
    selector = parse_field_selector(r"metadata.name=a\,b\=c")
    assert selector.requirements[0].value == "a,b=c"
    assert str(selector) == r"metadata.name=a\,b\=c"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_a_bad_selector_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidFieldSelector) as failure:
        parse_field_selector(text)
    assert str(failure.value) == reason


@pytest.mark.parametrize(
    ("api_version", "kind", "reason"),
    [
        ("v1", "Pod", "field label not supported: spec.x"),
        ("batch/v1", "Job", 'field label "spec.x" not supported for Job'),
        ("v1", "ConfigMap", '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        (
            "resource.k8s.io/v1beta1",
            "ResourceSlice",
            "field label not supported for resource.k8s.io/v1beta1, Kind=ResourceSlice: spec.x",
        ),
    ],
)
def test_unknown_fields_are_refused_in_the_words_of_the_kind(api_version: str, kind: str, reason: str) -> None:
    with pytest.raises(InvalidFieldSelector) as failure:
        check_field_selector(parse_field_selector("spec.x=1"), api_version, kind)
    assert str(failure.value) == reason


def test_the_old_name_of_a_pods_node_still_works() -> None:
    selector = check_field_selector(parse_field_selector("spec.host=n1"), "v1", "Pod")
    assert selector.exact_value("spec.nodeName") == "n1"


def test_an_exact_value_is_known_only_if_it_is_required() -> None:
    selector = parse_field_selector("spec.nodeName!=n1,metadata.name=x")
    assert selector.exact_value("spec.nodeName") is None
    assert selector.exact_value("metadata.name") == "x"
