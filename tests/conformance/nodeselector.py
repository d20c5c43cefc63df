"""Node selectors, label selectors and field selectors: validation, parsing, matching."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from dray.api.fieldselectors import InvalidFieldSelector, check_field_selector, parse_field_selector
from dray.api.label_parser import parse_label_selector
from dray.api.labels import InvalidSelector, LabelSelector, Selector, compile_label_selector
from dray.api.node_matching import NodeMatcher, compile_node_selector
from dray.api.nodeselectors import NodeSelector
from dray.validation.fields import FieldError
from dray.validation.fields import Path as FieldPath
from dray.validation.selectors import check_label_selector, check_node_selector
from tests.conformance.differences import describe
from tests.conformance.runner import Case, has_keys, iter_data

is_mine = has_keys("nodeSelectors", "labelSelectors", "labelSelectorStrings", "fieldSelectors")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for _, data in iter_data(paths, is_mine):
        nodes, label_sets = data.get("nodes", []), data.get("labelSets", [])
        sections: dict[str, Callable[[Any], dict[str, Any]]] = {
            "nodeSelectors": partial(node_selector_answers, nodes=nodes),
            "labelSelectors": partial(label_selector_answers, label_sets=label_sets),
            "labelSelectorStrings": partial(label_text_answers, label_sets=label_sets),
            "fieldSelectors": field_selector_answers,
        }
        for section, answers in sections.items():
            for vector in data.get(section, []):
                name = vector.get("name", repr(vector.get("input")))
                yield Case(f"{section} {name}", partial(check, vector, answers))


def check(vector: dict[str, Any], answers: Callable[[dict[str, Any]], dict[str, Any]]) -> str | None:
    return describe(vector, answers(vector))


def node_selector_answers(vector: dict[str, Any], nodes: list[Any]) -> dict[str, Any]:
    answers = {"name": vector["name"], "nodeSelector": vector["nodeSelector"]}
    if vector["nodeSelector"] is None:
        return answers
    selector = msgspec.convert(vector["nodeSelector"], NodeSelector)
    errors: list[FieldError] = []
    check_node_selector(selector, FieldPath("nodeSelector"), errors)
    answers["validationErrors"] = list(map(plain, errors))
    try:
        strict = compile_node_selector(selector)
    except InvalidSelector as error:
        strict = None
        answers["parseError"] = str(error)
    answers["matches"] = {
        f"{position}:{node['metadata'].get('name', '')}": match_answers(strict, NodeMatcher(selector), node["metadata"])
        for position, node in enumerate(nodes)
    }
    return answers


def match_answers(strict: NodeMatcher | None, lazy: NodeMatcher, node: dict[str, Any]) -> dict[str, Any]:
    labels, name = node.get("labels", {}), node.get("name", "")
    answers: dict[str, Any] = {}
    if strict is not None:
        answers["match"] = strict.matches(labels, name)
    try:
        answers["lazyMatch"] = lazy.matches(labels, name)
    except InvalidSelector as error:
        answers |= {"lazyMatch": False, "lazyError": str(error)}
    return answers


def label_selector_answers(vector: dict[str, Any], label_sets: list[dict[str, str]]) -> dict[str, Any]:
    answers = {"name": vector["name"], "labelSelector": vector["labelSelector"]}
    selector = None
    if vector["labelSelector"] is not None:
        selector = msgspec.convert(vector["labelSelector"], LabelSelector)
        errors: list[FieldError] = []
        check_label_selector(selector, FieldPath("selector"), errors)
        answers["validationErrors"] = list(map(plain, errors))
    try:
        answers |= selector_answers(compile_label_selector(selector), label_sets)
    except InvalidSelector as error:
        answers["parseError"] = str(error)
    return answers


def label_text_answers(vector: dict[str, Any], label_sets: list[dict[str, str]]) -> dict[str, Any]:
    try:
        answers = selector_answers(parse_label_selector(vector["input"]), label_sets)
    except InvalidSelector as error:
        answers = {"error": str(error)}
    return {"input": vector["input"], **answers}


def selector_answers(selector: Selector, label_sets: list[dict[str, str]]) -> dict[str, Any]:
    return {"string": str(selector), "matches": [selector.matches(labels) for labels in label_sets]}


def field_selector_answers(vector: dict[str, Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {"input": vector["input"]}
    try:
        selector = parse_field_selector(vector["input"])
    except InvalidFieldSelector as error:
        return {**answers, "parseError": str(error)}
    answers["string"] = str(selector)
    for version in vector.keys() - {"input", "string"}:
        answers[version] = {}
        for kind in vector[version]:
            try:
                check_field_selector(selector, f"resource.k8s.io/{version}", kind)
                answers[version][kind] = "ok"
            except InvalidFieldSelector as error:
                answers[version][kind] = str(error)
    return answers


def plain(error: FieldError) -> dict[str, str]:
    return {
        "type": error.type.reason,
        "field": error.field,
        "detail": error.detail,
        "message": error.message,
    }
