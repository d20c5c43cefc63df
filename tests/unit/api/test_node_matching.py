from __future__ import annotations

import pytest

from dray.api.affinity import Affinity, NodeAffinity, NodeFilter, PreferredSchedulingTerm
from dray.api.labels import InvalidSelector
from dray.api.node_matching import NodeMatcher, compile_node_selector, single_node_name
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm


def expression(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator=operator, values=values),))


def field(operator: str, *values: str, key: str = "metadata.name") -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key=key, operator=operator, values=values),))


def selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


def test_terms_are_alternatives() -> None:
    matcher = compile_node_selector(selector(expression("zone", "In", "a"), field("In", "n1")))
    assert matcher.matches({"zone": "a"}, "n2")
    assert matcher.matches({}, "n1")
    assert not matcher.matches({"zone": "b"}, "n2")


def test_a_term_without_requirements_matches_no_node() -> None:
    assert not compile_node_selector(selector(NodeSelectorTerm())).matches({}, "n1")


def test_fields_are_ignored_for_a_node_without_name() -> None:
    assert compile_node_selector(selector(field("In", "n1"))).matches({}, "")


def test_numbers_are_compared_as_numbers() -> None:
    matcher = compile_node_selector(selector(expression("rank", "Gt", "9")))
    assert matcher.matches({"rank": "10"}, "n")
    assert not matcher.matches({"rank": "ten"}, "n")


def test_a_bad_term_matters_only_if_no_other_matches() -> None:
    bad = selector(expression("zone", "Around", "a"), expression("zone", "In", "a"))
    with pytest.raises(InvalidSelector, match=r"nodeSelectorTerms\[0\].matchExpressions\[0\].operator"):
        compile_node_selector(bad)
    assert NodeMatcher(bad).matches({"zone": "a"}, "n")
    with pytest.raises(InvalidSelector):
        NodeMatcher(bad).matches({"zone": "b"}, "n")


def test_a_selector_that_names_one_node_is_recognised() -> None:
    assert single_node_name(selector(field("In", "n1"))) == "n1"
    others = [
        selector(field("NotIn", "n1")),
        selector(field("In", "n1", "n2")),
        selector(field("In", "n1"), field("In", "n2")),
        selector(field("In", "n1", key="metadata.uid")),
        selector(expression("zone", "In", "n1")),
    ]
    assert [single_node_name(other) for other in others] == [None] * 5


def test_a_pod_needs_both_its_node_selector_and_its_affinity() -> None:
    affinity = Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=selector(expression("zone", "In", "a"))
        )
    )
    wanted = NodeFilter({"disk": "ssd"}, affinity)
    assert wanted.matches({"disk": "ssd", "zone": "a"}, "n")
    assert not wanted.matches({"zone": "a"}, "n")
    assert not wanted.matches({"disk": "ssd"}, "n")


def test_preferences_add_up() -> None:
    terms = tuple(
        PreferredSchedulingTerm(weight=weight, preference=expression("zone", "In", zone))
        for weight, zone in ((10, "a"), (5, "a"), (1, "b"))
    )
    preferring = NodeFilter(
        {}, Affinity(node_affinity=NodeAffinity(preferred_during_scheduling_ignored_during_execution=terms))
    )
    assert preferring.score({"zone": "a"}, "n") == 15
    assert preferring.score({}, "n") == 0
