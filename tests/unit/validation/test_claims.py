from __future__ import annotations

from typing import Any

import pytest

from tests.unit.validation.builders import (
    created,
    expect_accepted,
    expect_errors,
    make_claim,
    make_request,
    make_template,
    updated,
    without,
)


def with_subrequests(*names: str, **details: Any) -> dict[str, Any]:
    subrequests = [{"name": name, "deviceClassName": "gpus", **details} for name in names]
    return {"name": "gpu", "firstAvailable": subrequests}


def test_a_plain_claim_is_fine() -> None:
    expect_accepted(created(make_claim()))


def test_a_request_is_exact_or_a_list_of_alternatives() -> None:
    both = make_request() | {"firstAvailable": [{"name": "a", "deviceClassName": "b"}]}
    expect_errors(created(make_claim({"name": "gpu"})), "spec.devices.requests[0]: Required value: exactly one of")
    expect_errors(created(make_claim(both)), "spec.devices.requests[0]: Invalid value: null: exactly one of")


def test_names_of_requests_are_labels_and_unique() -> None:
    expect_errors(created(make_claim(make_request("GPU"))), "spec.devices.requests[0].name: Invalid value")
    outcome = created(make_claim(make_request(), make_request()))
    expect_errors(outcome, 'spec.devices.requests[1]: Duplicate value: {"name":"gpu","exactly":{')


def test_too_many_requests_are_not_looked_at() -> None:
    outcome = created(make_claim(*[make_request("BAD")] * 33))
    expect_errors(outcome, "spec.devices.requests: Too many: 33: must have at most 32 items")


@pytest.mark.parametrize(
    ("details", "error"),
    [
        ({"deviceClassName": ""}, "deviceClassName: Required value"),
        ({"deviceClassName": "A"}, 'deviceClassName: Invalid value: "A"'),
        (
            {"allocationMode": "Some"},
            'allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"',
        ),
        ({"allocationMode": "All", "count": 2}, "count: Invalid value: 2: must not be specified"),
        ({"count": -1}, "count: Invalid value: -1: must be greater than zero"),
        ({"selectors": [{}]}, "selectors[0].cel: Required value"),
        ({"selectors": [{"cel": {"expression": "true"}}] * 33}, "selectors: Too many: 33"),
        ({"tolerations": [{"operator": "Like"}]}, 'tolerations[0].operator: Unsupported value: "Like"'),
        ({"tolerations": [{"operator": "Exists", "value": "x"}]}, "tolerations[0].value: Invalid value"),
        ({"tolerations": [{"key": "a b", "operator": "Exists"}]}, 'tolerations[0].key: Invalid value: "a b"'),
        ({"tolerations": [{"key": "a", "value": "b c"}]}, 'tolerations[0].value: Invalid value: "b c"'),
        ({"tolerations": [{"operator": "Exists", "effect": "Bang"}]}, "tolerations[0].effect: Unsupported value"),
    ],
)
def test_exact_requests_and_alternatives_are_checked_alike(details: dict[str, Any], error: str) -> None:
    expect_errors(created(make_claim(make_request(**details))), f"spec.devices.requests[0].exactly.{error}")
    alternative = created(make_claim(with_subrequests("a", **details)))
    expect_errors(alternative, f"spec.devices.requests[0].firstAvailable[0].{error}")


def test_alternatives_are_unique_and_at_most_eight() -> None:
    expect_errors(created(make_claim(with_subrequests("a", "a"))), "spec.devices.requests[0].firstAvailable[1]: Dup")
    many = with_subrequests(*(f"s{number}" for number in range(9)))
    expect_errors(created(make_claim(many)), "spec.devices.requests[0].firstAvailable: Too many: 9")


@pytest.mark.parametrize("reference", ["gpu", "gpu/a"])
def test_a_reference_names_a_request_or_an_alternative(reference: str) -> None:
    constraint = {"requests": [reference], "matchAttribute": "a.b/c"}
    expect_accepted(created(make_claim(with_subrequests("a"), constraints=[constraint])))


@pytest.mark.parametrize("reference", ["other", "gpu/b", "gpu/a/x"])
def test_a_reference_to_nothing_is_refused(reference: str) -> None:
    config = {"requests": [reference], "opaque": {"driver": "a.b", "parameters": {}}}
    outcome = created(make_claim(with_subrequests("a"), config=[config]))
    expect_errors(outcome, f'spec.devices.config[0].requests[0]: Invalid value: "{reference}": must be the name of')


@pytest.mark.parametrize(
    ("opaque", "error"),
    [
        (None, "opaque: Required value"),
        ({"driver": "", "parameters": {}}, "opaque.driver: Required value"),
        ({"driver": "a_b", "parameters": {}}, 'opaque.driver: Invalid value: "a_b": an RFC 1123 subdomain'),
        ({"driver": "a" * 64, "parameters": {}}, "opaque.driver: Too long: may not be more than 63 characters"),
        ({"driver": "a.b"}, "opaque.parameters: Required value"),
        ({"driver": "a.b", "parameters": None}, "opaque.parameters: Required value"),
        ({"driver": "a.b", "parameters": {"s": "1e999", "n": [10**400]}}, "opaque.parameters: Invalid value"),
        ({"driver": "a.b", "parameters": [1]}, 'opaque.parameters: Invalid value: "<value omitted>": must be a valid'),
        ({"driver": "a.b", "parameters": {"a": "x" * 10240}}, "opaque.parameters: Too long: may not be more than"),
    ],
)
def test_configuration_is_checked(opaque: dict[str, Any] | None, error: str) -> None:
    config = {"opaque": opaque} if opaque is not None else {}
    expect_errors(created(make_claim(config=[config])), f"spec.devices.config[0].{error}")


def test_a_constraint_needs_an_attribute_with_a_domain() -> None:
    expect_errors(created(make_claim(constraints=[{}])), "spec.devices.constraints[0]: Required value: exactly one of")
    expect_errors(
        created(make_claim(constraints=[{"matchAttribute": "numa"}])),
        'spec.devices.constraints[0].matchAttribute: Invalid value: "numa": a fully qualified name',
    )
    expect_errors(
        created(make_claim(constraints=[{}]), gates=without("DRAConsumableCapacity")),
        "spec.devices.constraints[0].matchAttribute: Required value",
    )


def test_a_cel_constraint_stands_alone() -> None:
    expression = {"cel": {"expression": "devices.size() > 0"}}
    expect_accepted(created(make_claim(constraints=[expression])))
    outcome = created(make_claim(constraints=[expression | {"matchAttribute": "a.b/c"}]))
    expect_errors(outcome, 'spec.devices.constraints[0]: Invalid value: null: exactly one of "matchAttribute"')


def test_a_derived_attribute_is_used_by_a_constraint_on_its_request() -> None:
    derived = {"name": "derived/numa", "expression": "device.driver"}
    request = make_request(derivedAttributes=[derived])
    matching = {"matchAttribute": "derived/numa"}
    expect_accepted(created(make_claim(request, constraints=[matching])))
    expect_accepted(created(make_claim(request, constraints=[matching | {"requests": ["gpu"]}])))
    place = "spec.devices.requests[0].exactly.derivedAttributes[0].name: Invalid value"
    expect_errors(created(make_claim(request)), place)
    elsewhere = make_claim(request, make_request("nic"), constraints=[matching | {"requests": ["nic"]}])
    expect_errors(created(elsewhere), place)


def test_a_derived_attribute_of_an_alternative_may_be_used_through_its_request() -> None:
    derived = {"name": "derived/numa", "expression": "device.driver"}
    request = with_subrequests("a", derivedAttributes=[derived])
    constraint = {"matchAttribute": "derived/numa", "requests": ["gpu"]}
    expect_accepted(created(make_claim(request, constraints=[constraint])))


def test_the_spec_of_a_claim_is_immutable() -> None:
    outcome = updated(make_claim(make_request("other")), make_claim())
    expect_errors(outcome, "spec: Invalid value: null: field is immutable")


def test_the_spec_of_a_template_is_immutable_and_checked_again() -> None:
    outcome = updated(make_template(make_request("BAD")), make_template())
    expect_errors(outcome, 'spec: Invalid value: {"Spec":{', 'spec.spec.devices.requests[0].name: Invalid value: "BAD"')


def test_what_a_template_had_already_is_reported_in_the_handwritten_words() -> None:
    many = make_request(selectors=[{"cel": {"expression": "true"}}] * 33)
    outcome = updated(make_template(many, make_request("new")), make_template(many))
    expect_errors(outcome, "spec: Invalid value", "spec.spec.devices.requests[0].exactly.selectors: Too many: 33")


def test_admin_access_needs_a_label_on_the_namespace() -> None:
    place = "spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires"
    requests = [make_request(), make_request("admin", adminAccess=True), make_request("more", adminAccess=True)]
    labels = {"resource.kubernetes.io/admin-access": "true"}
    for obj in (make_claim(*requests), make_template(*requests)):
        expect_errors(created(obj), place)
        expect_errors(created(obj, namespace_labels={"resource.kubernetes.io/admin-access": "yes"}), place)
        expect_accepted(created(obj, namespace_labels=labels))


def test_absurdly_many_derived_attributes_are_not_compiled() -> None:
    attributes = [{"name": f"a.b/c{number}", "expression": "nope"} for number in range(1001)]
    outcome = created(make_claim(make_request(derivedAttributes=attributes)))
    expect_errors(outcome, "spec.devices.requests[0].exactly.derivedAttributes: Too many: 1001")
