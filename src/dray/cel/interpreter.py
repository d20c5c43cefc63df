"""The exact evaluator: every rule of cel-go about errors, order of evaluation and cost.

A plan becomes a tree of Python closures, `Step`s, that are called with the state of the evaluation. Errors are values
here (`EvaluationError` instances are returned, not raised), because `&&`, `||` and others go on after one. What ends
the evaluation for good is raised: `CostLimitExceeded`, and `Panic` where Kubernetes' own cost tracker crashes.

Costs are added in the order in which cel-go observes its steps, and compared with the limit each time, so that the
reported cost is the same also for an evaluation that was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from dray.cel.equality import equals
from dray.cel.errors import CostLimitExceeded, EvaluationError
from dray.cel.evaluation import DEFAULT_COST_LIMIT, Outcome, State, Step, as_error_value
from dray.cel.interpreter_attributes import Applied, Builder, make_resolver
from dray.cel.interpreter_folds import Pending, make_fold
from dray.cel.interpreter_literals import make_list, make_map, make_message
from dray.cel.plan import (
    Attribute,
    Call,
    Constant,
    Equality,
    Fold,
    Has,
    IsOneOf,
    Logic,
    NewList,
    NewMap,
    NewMessage,
    Node,
    NotStrictlyFalse,
    OptionalOr,
    Plan,
    Ternary,
    Variable,
)
from dray.cel.recursion import with_deep_stack
from dray.cel.run_time_costs import EQUALITY, SCALARS, SMALLER_SIZE, Panic
from dray.cel.values import NONE, Optional, Value

_UINT64: Final = 1 << 64
_NO_SUCH_OVERLOAD: Final = "no such overload"


class Interpreter:
    """Evaluates one plan."""

    __slots__ = ("_slots", "_step")

    def __init__(self, plan: Plan, observe: Observe | None = None) -> None:
        self._slots = plan.slots
        self._step = with_deep_stack(StepBuilder(observe).make_step, plan.root)

    def run(self, inputs: Mapping[str, Value], cost_limit: int = DEFAULT_COST_LIMIT) -> Outcome:
        return with_deep_stack(self._run, inputs, cost_limit)

    def _run(self, inputs: Mapping[str, Value], cost_limit: int) -> Outcome:
        state = State(inputs, self._slots, cost_limit)
        try:
            value = self._step(state)
        except (CostLimitExceeded, Panic) as error:
            return Outcome(None, error.with_traceback(None), state.cost)
        if type(value) is EvaluationError:
            return Outcome(None, value.with_traceback(None), state.cost)
        return Outcome(value, None, state.cost)


Observe: TypeAlias = Callable[[int, Value], None]
"""Told of the id of a node and each value that it had."""


class StepBuilder:
    """Makes the closures of a plan, once for each part; see `Builder`."""

    def __init__(self, observe: Observe | None = None) -> None:
        self.applied: dict[int, Applied] = {}
        self._observe = observe

    def make_step(self, node: Node) -> Step:
        return self.watch(node, _MAKERS[type(node)](self, node))

    def watch(self, node: Node, step: Step) -> Step:
        observe = self._observe
        if observe is None:
            return step
        node_id = observed_id(node)

        def observed(state: State) -> Value:
            value = step(state)
            observe(node_id, value)
            return value

        return observed


def observed_id(node: Node) -> int:
    """The id of the expression that a node evaluates: of an attribute, that of its last qualifier."""
    if isinstance(node, Attribute) and node.qualifiers:
        return node.qualifiers[-1].id
    return node.id


def _make_constant(builder: Builder, node: Constant) -> Step:
    value = node.value
    return lambda state: value


def _make_attribute(builder: Builder, node: Attribute | Ternary) -> Step:
    resolve = make_resolver(node, builder)
    if isinstance(node, Ternary):
        return resolve
    if not node.qualifiers and isinstance(node.base, Variable) and node.base.slot is not None:
        return _make_local(node.base.slot)

    def step(state: State) -> Value:
        value = resolve(state)
        state.cost += 1
        if state.cost > state.cost_limit:
            raise CostLimitExceeded
        return value

    return step


def _make_local(slot: int) -> Step:
    """A variable of a comprehension: the most frequent step of all."""

    def step(state: State) -> Value:
        value = state.slots[slot]
        if type(value) is Pending:
            value = value.force(state)
        state.cost += 1
        if state.cost > state.cost_limit:
            raise CostLimitExceeded
        return value

    return step


def _make_has(builder: Builder, node: Has) -> Step:
    resolve = make_resolver(node.attribute, builder)
    # cel-go takes back the price of an attribute, which a ternary never paid: the cost may even wrap around below 0.
    refund = 1 if isinstance(node.attribute, Ternary) else 0

    def step(state: State) -> Value:
        value = resolve(state)
        if refund:
            state.cost = (state.cost - refund) % _UINT64
            state.charge(0)
        return value is not NONE if isinstance(value, Optional) else value

    return step


def _make_logic(builder: Builder, node: Logic) -> Step:
    left, right, stops_at = builder.make_step(node.left), builder.make_step(node.right), node.stops_at

    def step(state: State) -> Value:
        first = left(state)
        if first is stops_at:
            return first
        second = right(state)
        if second is stops_at:
            return second
        for value in (first, second):
            if type(value) is not bool:
                return value if type(value) is EvaluationError else EvaluationError(_NO_SUCH_OVERLOAD)
        return not stops_at

    return step


def _make_equality(builder: Builder, node: Equality) -> Step:
    left, right, negated = builder.make_step(node.left), builder.make_step(node.right), node.negated
    price = (SMALLER_SIZE if negated else EQUALITY).actual

    def step(state: State) -> Value:
        first, second = left(state), right(state)
        answer: Value
        if type(first) is EvaluationError:
            answer = first
        elif type(second) is EvaluationError:
            answer = second
        else:
            answer = equals(first, second, state)
            if negated:
                answer = answer is not True
        if type(first) in SCALARS and type(second) in SCALARS:
            state.cost += 1
        else:
            state.cost += price((first, second), answer, state)
        if state.cost > state.cost_limit:
            raise CostLimitExceeded
        return answer

    return step


def _make_call(builder: Builder, node: Call) -> Step:
    """A call is paid for before it is made, unless the price is by its result: so work that is too much isn't done."""
    if len(node.arguments) == 1:
        return _make_unary(builder, node)
    if len(node.arguments) == 2 and not node.stops:
        return _make_binary(builder, node)
    steps, apply, price = tuple(map(builder.make_step, node.arguments)), node.apply, _price(node)
    by_result = node.cost is not None and node.cost.by_result
    last = len(steps) - 1

    def step(state: State) -> Value:
        arguments: list[Value] = []
        for index, argument in enumerate(steps):
            value = argument(state)
            arguments.append(value)
            if type(value) is EvaluationError and index < last:
                return value
        result = arguments[-1] if arguments else None
        if not by_result:
            state.charge(1 if price is None else price(tuple(arguments), result, state))
        if type(result) is not EvaluationError:
            try:
                result = apply(state, *arguments)
            except EvaluationError as raised:
                result = as_error_value(raised)
        if by_result and price is not None:
            state.charge(price(tuple(arguments), result, state))
        return result

    return step


def _price(node: Call) -> Callable[[tuple[Value, ...], Value, State], int] | None:
    return None if node.cost is None else node.cost.actual


def _make_unary(builder: Builder, node: Call) -> Step:
    argument, apply, price = builder.make_step(node.arguments[0]), node.apply, _price(node)
    by_result = node.cost is not None and node.cost.by_result

    def step(state: State) -> Value:
        value = result = argument(state)
        if not by_result:
            state.cost += 1 if price is None else price((value,), None, state)
            if state.cost > state.cost_limit:
                raise CostLimitExceeded
        if type(value) is not EvaluationError:
            try:
                result = apply(state, value)
            except EvaluationError as raised:
                result = as_error_value(raised)
        if by_result and price is not None:
            state.charge(price((value,), result, state))
        return result

    return step


def _make_binary(builder: Builder, node: Call) -> Step:
    left, right = map(builder.make_step, node.arguments)
    apply, price = node.apply, _price(node)
    by_result = node.cost is not None and node.cost.by_result

    def step(state: State) -> Value:
        first, second = left(state), right(state)
        if not by_result:
            state.cost += 1 if price is None else price((first, second), None, state)
            if state.cost > state.cost_limit:
                raise CostLimitExceeded
        result: Value
        if type(first) is EvaluationError:
            result = first
        elif type(second) is EvaluationError:
            result = second
        else:
            try:
                result = apply(state, first, second)
            except EvaluationError as raised:
                result = as_error_value(raised)
        if by_result and price is not None:
            state.charge(price((first, second), result, state))
        return result

    return step


def _make_not_strictly_false(builder: Builder, node: NotStrictlyFalse) -> Step:
    argument = builder.make_step(node.argument)

    def step(state: State) -> Value:
        value = argument(state)
        state.cost += 1
        if state.cost > state.cost_limit:
            raise CostLimitExceeded
        return value if type(value) is bool else True

    return step


def _make_is_one_of(builder: Builder, node: IsOneOf) -> Step:
    argument, keys = builder.make_step(node.argument), node.keys

    def step(state: State) -> Value:
        value = argument(state)
        if type(value) is EvaluationError:
            return value
        return value == value and isinstance(value, str | int | float) and (type(value), value) in keys

    return step


def _make_optional_or(builder: Builder, node: OptionalOr) -> Step:
    left, right, unwraps = builder.make_step(node.left), builder.make_step(node.right), node.unwraps

    def step(state: State) -> Value:
        value = left(state)
        if not isinstance(value, Optional):
            return value
        if value is NONE:
            return right(state)
        return value.value if unwraps else value

    return step


def _make_fold(builder: Builder, node: Fold) -> Step:
    return make_fold(node, builder.make_step)


_MAKERS: Final[dict[type, Callable[..., Step]]] = {
    Constant: _make_constant,
    Attribute: _make_attribute,
    Ternary: _make_attribute,
    Has: _make_has,
    Logic: _make_logic,
    Equality: _make_equality,
    Call: _make_call,
    NotStrictlyFalse: _make_not_strictly_false,
    IsOneOf: _make_is_one_of,
    OptionalOr: _make_optional_or,
    NewList: make_list,
    NewMap: make_map,
    NewMessage: make_message,
    Fold: _make_fold,
}
