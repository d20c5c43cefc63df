from __future__ import annotations

from typing import Any

import pytest

from tests.unit.validation.builders import created, expect_accepted, expect_errors, make, make_template, updated

CLASS: dict[str, Any] = {}


def make_class(**metadata: Any) -> Any:
    return make("DeviceClass", CLASS, **metadata)


def make_rule(**metadata: Any) -> Any:
    return make("DeviceTaintRule", {"taint": {"key": "broken", "effect": "NoExecute"}}, **metadata)


def test_a_name_is_required() -> None:
    expect_errors(created(make_rule(name="")), "metadata.name: Required value: name or generateName is required")


def test_a_name_is_a_subdomain() -> None:
    expect_errors(created(make_rule(name="A_b")), 'metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain')


def test_a_generated_name_may_end_with_a_hyphen() -> None:
    expect_accepted(created(make_rule(name="rule-x1", generateName="rule-")))
    expect_errors(created(make_rule(name="x", generateName="rule_")), 'metadata.generateName: Invalid value: "rule_"')


def test_a_class_judges_only_the_generated_name() -> None:
    expect_accepted(created(make_class(name="x", generateName="Any Thing")))
    expect_errors(created(make_class(name="x", generateName="a/b")), "metadata.generateName: Invalid value")


def test_a_class_without_generated_name_is_the_servers_fault() -> None:
    expect_errors(
        created(make_class(name="", generateName="gpu-")),
        'metadata.name: Internal error: generateName was specified ("gpu-"), but no name was generated',
        "metadata.name: Required value",
    )


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"labels": {"a/b/c": "x"}}, 'metadata.labels: Invalid value: "a/b/c": a valid label key'),
        ({"labels": {"a": "b c"}}, 'metadata.labels: Invalid value: "b c": a valid label'),
        ({"annotations": {"a b": "x"}}, 'metadata.annotations: Invalid value: "a b": name part'),
        ({"annotations": {"a": "x" * 262144}}, "metadata.annotations: Too long: may not be more than 262144 bytes"),
        ({"finalizers": ["a b/c"]}, 'metadata.finalizers: Invalid value: "a b/c": prefix part'),
        ({"finalizers": ["mine"]}, 'metadata.finalizers[0]: Invalid value: "mine": name is neither a standard'),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan',
        ),
    ],
)
def test_metadata_is_checked(metadata: dict[str, Any], error: str) -> None:
    expect_errors(created(make_rule(**metadata)), error)


def test_annotation_keys_may_have_capitals() -> None:
    expect_accepted(created(make_rule(annotations={"Example.COM/Key": "x"})))


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ({"apiVersion": ""}, "metadata.ownerReferences[0].apiVersion: Required value: must not be empty"),
        ({"apiVersion": "a/b/c"}, 'metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": must be <group>'),
        ({"apiVersion": "apps/"}, 'metadata.ownerReferences[0].apiVersion: Invalid value: "apps/"'),
        ({"kind": ""}, "metadata.ownerReferences[0].kind: Required value"),
        ({"name": ""}, "metadata.ownerReferences[0].name: Required value"),
        ({"uid": ""}, "metadata.ownerReferences[0].uid: Required value"),
        ({"kind": "Event"}, "metadata.ownerReferences[0]: Invalid value: {"),
    ],
)
def test_owners_are_checked(reference: dict[str, str], error: str) -> None:
    good = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    expect_accepted(created(make_rule(ownerReferences=[good])))
    expect_errors(created(make_rule(ownerReferences=[good | reference])), error)


def test_only_one_owner_is_the_controller() -> None:
    first = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    outcome = created(make_rule(ownerReferences=[first, first | {"name": "q"}]))
    expect_errors(outcome, "metadata.ownerReferences: Invalid value: [{")
    assert outcome.errors[0].detail.endswith("references for Pod/p and Pod/q")


def test_an_update_keeps_the_identity() -> None:
    old = make_rule(uid="u1", creationTimestamp="2026-01-01T00:00:00Z")
    stored = expect_accepted(updated(make_rule(), old))
    assert stored.metadata.uid == "u1"
    assert stored.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    expect_errors(updated(make_rule(uid="u2"), old), 'metadata.uid: Invalid value: "u2": field is immutable')
    expect_errors(updated(make_rule(name="other"), old), 'metadata.name: Invalid value: "other": field is immutable')


def test_an_update_can_not_undo_a_deletion_nor_start_one() -> None:
    old = make_rule(deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=0, finalizers=["a.b/c"])
    stored = expect_accepted(updated(make_rule(finalizers=["a.b/c"]), old))
    assert stored.metadata.deletion_timestamp == "2026-01-01T00:00:00Z"
    assert stored.metadata.deletion_grace_period_seconds == 0
    started = make_rule(deletionTimestamp="2026-01-01T00:00:00Z")
    expect_errors(updated(started, make_rule()), "metadata.deletionTimestamp: Invalid value")


def test_no_finalizer_is_added_to_what_is_being_deleted() -> None:
    old = make_rule(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a.b/c"])
    outcome = updated(make_rule(finalizers=["a.b/c", "a.b/d"]), old)
    expect_errors(outcome, "metadata.finalizers: Forbidden: no new finalizers")
    assert outcome.errors[0].detail.endswith('found new finalizers []string{"a.b/d"}')


def test_a_template_carries_labels_and_annotations_only() -> None:
    expect_accepted(created(make_template(metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}})))
    expect_errors(
        created(make_template(metadata={"name": "x", "uid": "y", "labels": {"a b": ""}})),
        "spec.metadata.name: Forbidden: cannot be set",
        "spec.metadata.uID: Forbidden: cannot be set",
        'spec.metadata.labels: Invalid value: "a b"',
    )
