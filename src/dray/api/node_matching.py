"""Which nodes a node selector selects: compiled once, asked for many nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dray.api.labels import InvalidSelector, Labels, Operator, Requirement, join_problems
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.api.quoting import quote, quote_json

NAME_FIELD: Final = "metadata.name"

_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}
_FIELD_OPERATORS: Final = {"In": Operator.EQUALS, "NotIn": Operator.NOT_EQUALS}


class _Term:
    """All requirements of a term; one that can't be parsed matches nothing and keeps its problems."""

    __slots__ = ("fields", "labels", "problems")

    def __init__(self, term: NodeSelectorTerm, path: str) -> None:
        self.problems: Final[list[str]] = []
        self.labels: Final = self._parse(term.match_expressions, f"{path}.matchExpressions", self._label_requirement)
        self.fields: Final = self._parse(term.match_fields, f"{path}.matchFields", self._field_requirement)

    def _parse(
        self,
        requirements: Sequence[NodeSelectorRequirement],
        path: str,
        parse: Callable[[NodeSelectorRequirement, str], Requirement | None],
    ) -> tuple[Requirement, ...]:
        parsed = [parse(requirement, f"{path}[{position}]") for position, requirement in enumerate(requirements)]
        return tuple(requirement for requirement in parsed if requirement is not None)

    def _label_requirement(self, requirement: NodeSelectorRequirement, path: str) -> Requirement | None:
        operator = _OPERATORS.get(requirement.operator)
        if operator is None:
            self.problems.append(_unsupported(requirement.operator, path, _OPERATORS))
            return None
        parsed = Requirement(requirement.key, operator, requirement.values)
        self.problems.extend(parsed.problems(path))
        return parsed

    def _field_requirement(self, requirement: NodeSelectorRequirement, path: str) -> Requirement | None:
        operator = _FIELD_OPERATORS.get(requirement.operator)
        if operator is None:
            self.problems.append(_unsupported(requirement.operator, path, _FIELD_OPERATORS))
            return None
        if len(requirement.values) != 1:
            values = f"[{','.join(map(quote_json, requirement.values))}]" if requirement.values else "null"
            self.problems.append(f"{path}.values: Invalid value: {values}: must have one element")
            return None
        return Requirement(requirement.key, operator, requirement.values)

    def matches(self, labels: Labels, name: str) -> bool:
        for requirement in self.labels:
            if not requirement.matches(labels):
                return False
        # A node without a name has no fields, and then fields aren't looked at: Kubernetes' rule.
        return not name or all(self._field_matches(requirement, name) for requirement in self.fields)

    @staticmethod
    def _field_matches(requirement: Requirement, name: str) -> bool:
        value = name if requirement.key == NAME_FIELD else ""
        return (value == requirement.values[0]) is (requirement.operator is Operator.EQUALS)


class NodeMatcher:
    """A compiled node selector: its terms are alternatives, and a term without requirements matches no node."""

    __slots__ = ("_terms",)

    def __init__(self, selector: NodeSelector) -> None:
        self._terms: Final = tuple(
            _Term(term, f"nodeSelectorTerms[{position}]")
            for position, term in enumerate(selector.node_selector_terms)
            if term.match_expressions or term.match_fields
        )

    @property
    def problem(self) -> str | None:
        """Why some term can't be parsed, or None."""
        problems = [problem for term in self._terms for problem in term.problems]
        return join_problems(problems) if problems else None

    def matches(self, labels: Labels, name: str) -> bool:
        """Whether some term matches the node. Raises InvalidSelector if none does, and one can't be parsed."""
        problems: list[str] = []
        for term in self._terms:
            if term.problems:
                problems += term.problems
            elif term.matches(labels, name):
                return True
        if problems:
            raise InvalidSelector(join_problems(problems))
        return False


def compile_node_selector(selector: NodeSelector) -> NodeMatcher:
    """Ready to match. Raises InvalidSelector if any term can't be parsed; NodeMatcher itself is lenient."""
    matcher = NodeMatcher(selector)
    if (problem := matcher.problem) is not None:
        raise InvalidSelector(problem)
    return matcher


def single_node_name(selector: NodeSelector) -> str | None:
    """The node's name if the selector does nothing but name one node."""
    match selector.node_selector_terms:
        case (NodeSelectorTerm(match_expressions=(), match_fields=(requirement,)),):
            if requirement.key == NAME_FIELD and requirement.operator == "In" and len(requirement.values) == 1:
                return requirement.values[0]
    return None


def _unsupported(operator: str, path: str, supported: dict[str, Operator]) -> str:
    choices = ", ".join(map(quote, supported))
    return f"{path}.operator: Unsupported value: {quote_json(operator)}: supported values: {choices}"
