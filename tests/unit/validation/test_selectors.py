from __future__ import annotations

from dray.api.labels import LabelSelector
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.validation.fields import Errors, Path
from dray.validation.selectors import check_label_selector, check_node_selector


def fields_wrong_in(*terms: NodeSelectorTerm) -> list[str]:
    errors: Errors = []
    check_node_selector(NodeSelector(node_selector_terms=terms), Path("nodeSelector"), errors)
    return [error.field for error in errors]


def test_a_node_selector_needs_a_term() -> None:
    assert fields_wrong_in() == ["nodeSelector.nodeSelectorTerms"]


def test_each_requirement_is_checked_in_its_place() -> None:
    good = NodeSelectorRequirement(key="zone", operator="In", values=("a",))
    bad = NodeSelectorRequirement(key="a b", operator="Exists", values=("x",))
    name = NodeSelectorRequirement(key="metadata.name", operator="In", values=("Bad",))
    term = NodeSelectorTerm(match_expressions=(good, bad), match_fields=(name,))
    place = "nodeSelector.nodeSelectorTerms[0]"
    assert fields_wrong_in(term) == [
        f"{place}.matchExpressions[1].values",
        f"{place}.matchExpressions[1].key",
        f"{place}.matchFields[0].values[0]",
    ]


def test_labels_of_a_label_selector_are_checked() -> None:
    errors: Errors = []
    check_label_selector(LabelSelector(match_labels={"a b": "c"}), Path("selector"), errors)
    assert [error.field for error in errors] == ["selector.matchLabels"]
