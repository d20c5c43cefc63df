"""Rules for node selectors and label selectors inside of objects."""

from __future__ import annotations

from dray.api.labels import LabelSelector, LabelSelectorRequirement
from dray.api.names import check_dns_subdomain, check_label_value, check_qualified_name
from dray.api.node_matching import NAME_FIELD
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement
from dray.validation.fields import Errors, Path, forbidden, invalid, required
from dray.validation.metadata import check_labels
from dray.validation.rendering import JsonText


def check_node_selector(selector: NodeSelector, path: Path, errors: Errors) -> None:
    terms = path.child("nodeSelectorTerms")
    if not selector.node_selector_terms:
        errors.append(required(terms, "must have at least one node selector term"))
    for position, term in enumerate(selector.node_selector_terms):
        place = terms.index(position)
        for number, requirement in enumerate(term.match_expressions):
            _check_node_requirement(requirement, place.child("matchExpressions").index(number), errors)
        for number, requirement in enumerate(term.match_fields):
            _check_node_field(requirement, place.child("matchFields").index(number), errors)


def check_label_selector(selector: LabelSelector, path: Path, errors: Errors) -> None:
    check_labels(selector.match_labels, path.child("matchLabels"), errors)
    for position, requirement in enumerate(selector.match_expressions):
        place = path.child("matchExpressions").index(position)
        _check_operator(requirement, place, errors)
        _check_key_and_values(requirement, place, errors)


def _check_node_requirement(requirement: NodeSelectorRequirement, path: Path, errors: Errors) -> None:
    if requirement.operator in ("Gt", "Lt"):
        if len(requirement.values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(path.child("values"), detail))
    else:
        _check_operator(requirement, path, errors)
    _check_key_and_values(requirement, path, errors)


def _check_operator(
    requirement: NodeSelectorRequirement | LabelSelectorRequirement, path: Path, errors: Errors
) -> None:
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                errors.append(required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
        case "Exists" | "DoesNotExist":
            if requirement.values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(path.child("values"), detail))
        case operator:
            errors.append(invalid(path.child("operator"), JsonText(operator), "not a valid selector operator"))


def _check_key_and_values(
    requirement: NodeSelectorRequirement | LabelSelectorRequirement, path: Path, errors: Errors
) -> None:
    errors += [
        invalid(path.child("key"), requirement.key, message) for message in check_qualified_name(requirement.key)
    ]
    for position, value in enumerate(requirement.values):
        place = path.child("values").index(position)
        errors += [invalid(place, value, message) for message in check_label_value(value)]


def _check_node_field(requirement: NodeSelectorRequirement, path: Path, errors: Errors) -> None:
    if requirement.operator not in ("In", "NotIn"):
        errors.append(invalid(path.child("operator"), JsonText(requirement.operator), "not a valid selector operator"))
    elif len(requirement.values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(path.child("values"), detail))
    if requirement.key != NAME_FIELD:
        errors.append(invalid(path.child("key"), requirement.key, "not a valid field selector key"))
        return
    for position, value in enumerate(requirement.values):
        place = path.child("values").index(position)
        errors += [invalid(place, value, message) for message in check_dns_subdomain(value)]
