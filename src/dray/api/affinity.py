"""Where a pod wants to run: node affinity and the plain node selector."""

from __future__ import annotations

from typing import Final

from dray.api.labels import Labels
from dray.api.meta import ApiStruct
from dray.api.node_matching import NodeMatcher
from dray.api.nodeselectors import NodeSelector, NodeSelectorTerm


class PreferredSchedulingTerm(ApiStruct, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class Affinity(ApiStruct, frozen=True):
    node_affinity: NodeAffinity | None = None


class NodeFilter:
    """What a pod requires and prefers of nodes, compiled once for many nodes."""

    __slots__ = ("_labels", "_preferred", "_required")

    def __init__(self, node_selector: Labels, affinity: Affinity | None) -> None:
        node_affinity = (affinity.node_affinity if affinity is not None else None) or NodeAffinity()
        required = node_affinity.required_during_scheduling_ignored_during_execution
        preferred = node_affinity.preferred_during_scheduling_ignored_during_execution
        self._labels: Final = tuple(node_selector.items())
        self._required: Final = NodeMatcher(required) if required is not None else None
        self._preferred: Final = tuple(
            (term.weight, NodeMatcher(NodeSelector(node_selector_terms=(term.preference,))))
            for term in preferred
            if term.weight
        )

    def matches(self, labels: Labels, name: str) -> bool:
        """Whether the node will do. Raises InvalidSelector if that can't be said."""
        for key, value in self._labels:
            if labels.get(key) != value:
                return False
        return self._required is None or self._required.matches(labels, name)

    def score(self, labels: Labels, name: str) -> int:
        """The sum of the weights of preferences that the node meets. Raises InvalidSelector."""
        return sum(weight for weight, matcher in self._preferred if matcher.matches(labels, name))
