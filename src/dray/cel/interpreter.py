"""The exact evaluator: every rule of cel-go about errors, order of evaluation and cost.

A plan becomes a tree of Python closures, `Step`s, that are called with the state of the evaluation. Errors are values
here (`EvaluationError` instances are returned, not raised), because `&&`, `||` and others go on after one. What ends
the evaluation for good is raised: `CostLimitExceeded`, and `Panic` where Kubernetes' own cost tracker crashes.

Costs are added in the order in which cel-go observes its steps, and compared with the limit each time, so that the
reported cost is the same also for an evaluation that was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dray.cel.equality import equals
from dray.cel.errors import CostLimitExceeded, EvaluationError
from dray.cel.evaluation import DEFAULT_COST_LIMIT, Outcome, State, Step, as_error_value
from dray.cel.interpreter_attributes import make_resolver
from dray.cel.interpreter_folds import make_fold
from dray.cel.messages import make_message
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
)
from dray.cel.recursion import with_deep_stack
from dray.cel.run_time_costs import EQUALITY, SMALLER_SIZE, Panic
from dray.cel.values import NONE, Map, MapKey, Optional, Value, encode_key

_UINT64: Final = 1 << 64
_NO_SUCH_OVERLOAD: Final = "no such overload"


class Interpreter:
    """Evaluates one plan."""

    __slots__ = ("_slots", "_step")

    def __init__(self, plan: Plan) -> None:
        self._slots = plan.slots
        self._step = with_deep_stack(make_step, plan.root)

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


def make_step(node: Node) -> Step:
    """The closure that evaluates a node."""
    return _MAKERS[type(node)](node)


def _make_constant(node: Constant) -> Step:
    value = node.value
    return lambda state: value


def _make_attribute(node: Attribute | Ternary) -> Step:
    resolve = make_resolver(node, make_step)
    if isinstance(node, Ternary):
        return resolve

    def step(state: State) -> Value:
        value = resolve(state)
        state.cost += 1
        if state.cost > state.cost_limit:
            raise CostLimitExceeded
        return value

    return step


def _make_has(node: Has) -> Step:
    resolve = make_resolver(node.attribute, make_step)
    # cel-go takes back the price of an attribute, which a ternary never paid: the cost may even wrap around below 0.
    refund = 1 if isinstance(node.attribute, Ternary) else 0

    def step(state: State) -> Value:
        value = resolve(state)
        if refund:
            state.cost = (state.cost - refund) % _UINT64
            state.charge(0)
        return value is not NONE if isinstance(value, Optional) else value

    return step


def _make_logic(node: Logic) -> Step:
    left, right, stops_at = make_step(node.left), make_step(node.right), node.stops_at

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


def _make_equality(node: Equality) -> Step:
    left, right, negated = make_step(node.left), make_step(node.right), node.negated
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
        state.charge(price((first, second), answer, state))
        return answer

    return step


def _make_call(node: Call) -> Step:
    if len(node.arguments) == 1:
        return _make_unary(node)
    if len(node.arguments) == 2 and not node.stops:
        return _make_binary(node)
    steps, apply, price = tuple(map(make_step, node.arguments)), node.apply, _price(node)
    last = len(steps) - 1

    def step(state: State) -> Value:
        arguments: list[Value] = []
        error: EvaluationError | None = None
        for index, argument in enumerate(steps):
            value = argument(state)
            arguments.append(value)
            if type(value) is EvaluationError:
                if index < last:
                    return value
                error = value
        result: Value = error
        if error is None:
            try:
                result = apply(state, *arguments)
            except EvaluationError as raised:
                result = as_error_value(raised)
        state.charge(1 if price is None else price(tuple(arguments), result, state))
        return result

    return step


def _price(node: Call) -> Callable[[tuple[Value, ...], Value, State], int] | None:
    return None if node.cost is None else node.cost.actual


def _make_unary(node: Call) -> Step:
    argument, apply, price = make_step(node.arguments[0]), node.apply, _price(node)

    def step(state: State) -> Value:
        value = argument(state)
        result = value
        if type(value) is not EvaluationError:
            try:
                result = apply(state, value)
            except EvaluationError as raised:
                result = as_error_value(raised)
        state.cost += 1 if price is None else price((value,), result, state)
        if state.cost > state.cost_limit:
            raise CostLimitExceeded
        return result

    return step


def _make_binary(node: Call) -> Step:
    left, right, apply, price = make_step(node.arguments[0]), make_step(node.arguments[1]), node.apply, _price(node)

    def step(state: State) -> Value:
        first, second = left(state), right(state)
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
        state.cost += 1 if price is None else price((first, second), result, state)
        if state.cost > state.cost_limit:
            raise CostLimitExceeded
        return result

    return step


def _make_not_strictly_false(node: NotStrictlyFalse) -> Step:
    argument = make_step(node.argument)

    def step(state: State) -> Value:
        value = argument(state)
        state.cost += 1
        if state.cost > state.cost_limit:
            raise CostLimitExceeded
        return value if type(value) is bool else True

    return step


def _make_is_one_of(node: IsOneOf) -> Step:
    argument, keys = make_step(node.argument), node.keys

    def step(state: State) -> Value:
        value = argument(state)
        if type(value) is EvaluationError:
            return value
        return value == value and isinstance(value, str | int | float) and (type(value), value) in keys

    return step


def _make_optional_or(node: OptionalOr) -> Step:
    left, right, unwraps = make_step(node.left), make_step(node.right), node.unwraps

    def step(state: State) -> Value:
        value = left(state)
        if not isinstance(value, Optional):
            return value
        if value is NONE:
            return right(state)
        return value.value if unwraps else value

    return step


def _make_list(node: NewList) -> Step:
    steps, optional = tuple(map(make_step, node.elements)), node.optional

    def step(state: State) -> Value:
        result: Value = None
        elements: list[Value] = []
        for index, element in enumerate(steps):
            value = element(state)
            if type(value) is EvaluationError:
                result = value
                break
            if index in optional:
                if not isinstance(value, Optional):
                    result = EvaluationError("cannot initialize optional list element from non-optional value")
                    break
                if value is NONE:
                    continue
                value = value.value
            elements.append(value)
        state.charge(10)
        return elements if result is None else result

    return step


def _make_map(node: NewMap) -> Step:
    entries = tuple((make_step(entry.key), make_step(entry.value), entry.optional) for entry in node.entries)

    def build(state: State) -> Value:
        result: Map = {}
        for key_step, value_step, optional in entries:
            key = key_step(state)
            if type(key) is EvaluationError:
                return key
            value = value_step(state)
            if type(value) is EvaluationError:
                return value
            encoded: MapKey = encode_key(key)
            if optional:
                if not isinstance(value, Optional):
                    return EvaluationError("cannot initialize optional entry from non-optional value")
                if value is NONE:
                    result.pop(encoded, None)
                    continue
                value = value.value
            result[encoded] = value
        return result

    return _charged(build, 30)


def _make_message(node: NewMessage) -> Step:
    fields = tuple((field.name, make_step(field.value), field.optional) for field in node.fields)

    def build(state: State) -> Value:
        values: dict[str, Value] = {}
        for name, value_step, optional in fields:
            value = value_step(state)
            if type(value) is EvaluationError:
                return value
            if optional:
                if not isinstance(value, Optional):
                    return EvaluationError(f"cannot initialize optional entry '{name}' from non-optional value")
                if value is NONE:
                    continue
                value = value.value
            values[name] = value
        return make_message(node.type_name, values)

    return _charged(build, 40)


def _charged(build: Step, cost: int) -> Step:
    def step(state: State) -> Value:
        try:
            result = build(state)
        except EvaluationError as raised:
            result = as_error_value(raised)
        state.charge(cost)
        return result

    return step


def _make_fold(node: Fold) -> Step:
    return make_fold(node, make_step)


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
    NewList: _make_list,
    NewMap: _make_map,
    NewMessage: _make_message,
    Fold: _make_fold,
}
