"""Node selectors: which nodes can reach a device or an allocation."""

from __future__ import annotations

from dray.api.meta import NIL, ApiStruct, written


class NodeSelectorRequirement(ApiStruct, frozen=True):
    key: str = written("")
    operator: str = written("")
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiStruct, frozen=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiStruct, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = written(NIL)
