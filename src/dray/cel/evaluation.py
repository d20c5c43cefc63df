"""The state of one exact evaluation, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from dray.cel.errors import CostLimitExceeded, EvaluationError
from dray.cel.meter import Meter
from dray.cel.values import Value

DEFAULT_COST_LIMIT: Final = 1_000_000


class Outcome(NamedTuple):
    """How an evaluation ended: with a value or an error, and what it cost until then."""

    value: Value
    error: EvaluationError | None
    cost: int


class State(Meter):
    """One evaluation: inputs, variables of comprehensions by slot, and both budgets."""

    __slots__ = ("cost", "cost_limit", "inputs", "slots")

    def __init__(self, inputs: Mapping[str, Value], slots: int, cost_limit: int) -> None:
        super().__init__()
        self.cost = 0
        self.cost_limit = cost_limit
        self.inputs = inputs
        self.slots: list[Value] = [None] * slots

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.cost_limit:
            raise CostLimitExceeded


Step: TypeAlias = Callable[[State], Value]
"""Evaluates a node. Errors are returned, unless they end the evaluation."""


def as_error_value(raised: EvaluationError) -> EvaluationError:
    """An error that a function raised, as a value; what ends the evaluation is raised on."""
    if type(raised) is not EvaluationError:
        raise raised
    return raised.with_traceback(None)
