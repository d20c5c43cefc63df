"""Which nodes a kind of pod may go to, as far as labels and taints say: kept, and brought up to date by change.

Pods of one template ask the same of nodes. The answer for each such question is a set of node names; when nodes
change, only those are looked at again. So 5,000 nodes are walked once per template, not once per pod.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable

from dray.api.nodes import Node
from dray.placement.nodes import static_problem
from dray.placement.pods import PodFacts

QUESTIONS_KEPT = 1000
CHANGES_KEPT = 100_000


class Eligible:
    """The answer to one question: names that pass, and the problem of each that doesn't."""

    __slots__ = ("names", "problems", "seen")

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.problems: dict[str, str] = {}
        self.seen = 0

    def counts(self) -> Counter[str]:
        return Counter(self.problems.values())


class Eligibility:
    """Shared between forks of a picture for as long as they have the same nodes."""

    def __init__(self) -> None:
        self._changes: list[str] = []
        self._answers: OrderedDict[bytes, Eligible] = OrderedDict()

    def node_changed(self, name: str) -> None:
        self._changes.append(name)
        if len(self._changes) > CHANGES_KEPT:
            self._changes.clear()
            self._answers.clear()

    def find(self, pod: PodFacts, names: Iterable[str], node: Callable[[str], Node | None]) -> Eligible:
        """`names` are all nodes, for a question that was never asked; `node` gives one, or None if it is gone."""
        answer = self._answers.get(pod.static_key)
        if answer is None:
            answer = Eligible()
            for name in names:
                _judge(answer, pod, name, node(name))
            self._answers[pod.static_key] = answer
            if len(self._answers) > QUESTIONS_KEPT:
                self._answers.popitem(last=False)
        else:
            for name in self._changes[answer.seen :]:
                _judge(answer, pod, name, node(name))
            self._answers.move_to_end(pod.static_key)
        answer.seen = len(self._changes)
        return answer


def _judge(answer: Eligible, pod: PodFacts, name: str, node: Node | None) -> None:
    answer.names.pop(name, None)
    answer.problems.pop(name, None)
    if node is None:
        return
    problem = static_problem(pod, node)
    if problem is None:
        answer.names[name] = None
    else:
        answer.problems[name] = problem
