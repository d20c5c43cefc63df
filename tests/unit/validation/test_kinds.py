from __future__ import annotations

from typing import Any

import pytest

from tests.unit.validation.builders import (
    NOW,
    created,
    expect_accepted,
    expect_errors,
    make,
    make_claim,
    make_request,
    updated,
    without,
)

BEFORE = "2026-01-01T00:00:00Z"


def make_class(**spec: Any) -> Any:
    return make("DeviceClass", spec)


def make_rule(effect: str = "NoExecute", *, selector: dict[str, str] | None = None, **taint: Any) -> Any:
    spec: dict[str, Any] = {"taint": {"key": "broken", "effect": effect, "timeAdded": BEFORE, **taint}}
    return make("DeviceTaintRule", spec if selector is None else spec | {"deviceSelector": selector})


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"selectors": [{}]}, "spec.selectors[0].cel: Required value"),
        ({"selectors": [{"cel": {"expression": "true"}}] * 33}, "spec.selectors: Too many: 33"),
        ({"config": [{}]}, "spec.config[0].opaque: Required value"),
        ({"config": [{"opaque": {"driver": "a.b", "parameters": {}}}] * 33}, "spec.config: Too many: 33"),
        ({"extendedResourceName": "gpu"}, 'spec.extendedResourceName: Invalid value: "gpu": a name must be a domain'),
        (
            {"extendedResourceName": "x.kubernetes.io/a"},
            'spec.extendedResourceName: Invalid value: "x.kubernetes.io/a"',
        ),
    ],
)
def test_a_class_is_checked(spec: dict[str, Any], error: str) -> None:
    expect_errors(created(make_class(**spec)), error)


def test_a_class_may_change_and_counts_its_changes() -> None:
    old = expect_accepted(created(make_class()))
    assert old.metadata.generation == 1
    assert expect_accepted(updated(make_class(), old)).metadata.generation == 1
    assert expect_accepted(updated(make_class(extendedResourceName="a.b/c"), old)).metadata.generation == 2


def test_configuration_that_a_class_has_may_be_larger_than_allowed_today() -> None:
    large = [{"opaque": {"driver": "a.b", "parameters": {"a": "x" * 10240}}}]
    small = [{"opaque": {"driver": "a.b", "parameters": {}}}]
    expect_accepted(updated(make_class(config=large, extendedResourceName="a.b/c"), make_class(config=large)))
    outcome = updated(make_class(config=large + small), make_class(config=large))
    expect_errors(outcome, "spec.config[0].opaque.parameters: Too long")


def test_the_extended_resource_name_is_dropped_with_its_gate() -> None:
    gates = without("DRAExtendedResource")
    named = make_class(extendedResourceName="a.b/c")
    assert expect_accepted(created(named, gates=gates)).spec.extended_resource_name is None
    assert expect_accepted(updated(named, named, gates=gates)).spec.extended_resource_name == "a.b/c"


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (make_rule(""), "spec.taint.effect: Required value"),
        (
            make_rule("Bang"),
            'spec.taint.effect: Unsupported value: "Bang": supported values: "NoExecute", "NoSchedule"',
        ),
        (make_rule(key="a b"), 'spec.taint.key: Invalid value: "a b"'),
        (make_rule(value="a b"), 'spec.taint.value: Invalid value: "a b"'),
        (make_rule(selector={"driver": ""}), "spec.deviceSelector.driver: Required value"),
        (make_rule(selector={"pool": "A"}), 'spec.deviceSelector.pool: Invalid value: "A"'),
        (make_rule(selector={"device": "A"}), 'spec.deviceSelector.device: Invalid value: "A"'),
    ],
)
def test_a_taint_rule_is_checked(rule: Any, error: str) -> None:
    expect_errors(created(rule), error)


def test_an_unknown_effect_may_stay() -> None:
    expect_accepted(updated(make_rule("Old", value="x"), make_rule("Old")))
    expect_errors(updated(make_rule("New"), make_rule("Old")), 'spec.taint.effect: Unsupported value: "New"')


def test_a_new_effect_begins_now() -> None:
    old = expect_accepted(created(make_rule("None")))
    changed = expect_accepted(updated(make_rule("NoExecute"), old))
    assert changed.spec.taint.time_added == NOW
    assert changed.metadata.generation == 2
    same = expect_accepted(updated(make_rule("None", value="x"), old))
    assert same.spec.taint.time_added == BEFORE
    chosen = expect_accepted(updated(make_rule("NoExecute", timeAdded="2026-05-05T00:00:00Z"), old))
    assert chosen.spec.taint.time_added == "2026-05-05T00:00:00Z"


def test_status_is_not_set_by_create_nor_changed_by_update() -> None:
    status = {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}
    assert expect_accepted(created(make_claim(status=status))).status == make_claim().status
    stored = make_claim(status=status)
    assert expect_accepted(updated(make_claim(), stored)).status == stored.status


def test_the_generation_of_a_claim_is_not_managed() -> None:
    spec = {"devices": {"requests": [make_request()]}}
    assert expect_accepted(created(make("ResourceClaim", spec, generation=7))).metadata.generation == 7
    old = make("ResourceClaim", spec, generation=7)
    assert expect_accepted(updated(make("ResourceClaim", spec), old)).metadata.generation == 7


def test_fields_of_disabled_features_are_dropped_from_claims() -> None:
    full = make_request(
        tolerations=[{"operator": "Exists"}],
        adminAccess=True,
        capacity={"requests": {"memory": "1"}},
        derivedAttributes=[{"name": "a.b/c", "expression": "1"}],
    )
    gates = without("DRADeviceTaints", "DRAAdminAccess", "DRAConsumableCapacity", "DRADerivedAttributes")
    stored = expect_accepted(created(make_claim(full), gates=gates))
    assert stored.spec == make_claim().spec
    kept = expect_accepted(updated(make_claim(full), make_claim(full), gates=gates))
    assert kept.spec == make_claim(full).spec


def test_alternatives_without_their_gate_leave_an_empty_request() -> None:
    request = {"name": "gpu", "firstAvailable": [{"name": "a", "deviceClassName": "b"}]}
    outcome = created(make_claim(request), gates=without("DRAPrioritizedList"))
    expect_errors(outcome, "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable`")


@pytest.mark.parametrize(
    ("gate", "constraint"),
    [
        ("DRACELDeviceConstraint", {"cel": {"expression": "true"}}),
        ("DRAConsumableCapacity", {"distinctAttribute": "a.b/c"}),
    ],
)
def test_constraints_without_their_gate_are_empty_unless_in_use(gate: str, constraint: dict[str, Any]) -> None:
    claim = make_claim(constraints=[constraint])
    outcome = created(claim, gates=without(gate))
    assert [error.type.reason for error in outcome.errors] == ["FieldValueRequired"]
    assert expect_accepted(updated(claim, claim, gates=without(gate))).spec == claim.spec
