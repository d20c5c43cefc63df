"""Variables with chains of qualifiers, evaluated exactly.

Each qualifier that is applied costs 1, also one that fails; an optional one that finds nothing is free. From the first
optional qualifier on, or if the base is an optional value, the whole rest of the chain is optional.
"""

from __future__ import annotations

from typing import Protocol, cast

from dray.cel.errors import CostLimitExceeded, EvaluationError
from dray.cel.evaluation import State, Step, as_error_value
from dray.cel.interpreter_folds import Pending
from dray.cel.plan import Attribute, Node, Qualifier, Resolved, Ternary, Variable
from dray.cel.qualifiers import ABSENT, qualify, qualify_if_present
from dray.cel.values import NONE, Optional, Value


class Builder(Protocol):
    """Makes steps. Branches of a ternary share their qualifiers, which are made once."""

    applied: dict[int, Applied]

    def make_step(self, node: Node) -> Step:
        """The closure that evaluates a node."""

    def watch(self, node: Node, step: Step) -> Step:
        """The step, observed if somebody wants to know its values."""


def make_resolver(node: Resolved, builder: Builder) -> Step:
    """Evaluates an attribute without the price of the attribute itself."""
    if isinstance(node, Ternary):
        return _make_ternary(node, builder)
    base = _make_base(node, builder)
    if not node.qualifiers:
        return base
    if all(_is_plain(qualifier) for qualifier in node.qualifiers):
        return _make_plain_chain(base, [qualifier.key for qualifier in node.qualifiers])
    return _make_chain(base, [_apply_once(qualifier, builder) for qualifier in node.qualifiers])


def _make_ternary(node: Ternary, builder: Builder) -> Step:
    condition = builder.make_step(node.condition)
    then = builder.watch(node.then, make_resolver(node.then, builder))
    otherwise = builder.watch(node.otherwise, make_resolver(node.otherwise, builder))

    def resolve(state: State) -> Value:
        value = condition(state)
        if value is True:
            return then(state)
        if value is False:
            return otherwise(state)
        return value if type(value) is EvaluationError else EvaluationError("no such overload")

    return resolve


def _make_base(node: Attribute, builder: Builder) -> Step:
    base = node.base
    if not isinstance(base, Variable):
        return builder.make_step(base)
    name, slot = base.name, base.slot
    if slot is None:
        return lambda state: (
            state.inputs[name] if name in state.inputs else EvaluationError(f"no such attribute(s): {name}")
        )
    known_slot = slot
    if not base.lazy:
        return lambda state: state.slots[known_slot]

    def resolve(state: State) -> Value:
        value = state.slots[known_slot]
        return value.force(state) if type(value) is Pending else value

    return resolve


def _is_plain(qualifier: Qualifier) -> bool:
    return qualifier.constant and type(qualifier.key) is str and not qualifier.optional and not qualifier.tests


def _make_plain_chain(base: Step, keys: list[object]) -> Step:
    """`a.b["c"].d`: by far the most common form."""

    def resolve(state: State) -> Value:
        target = base(state)
        if type(target) is EvaluationError:
            return target
        if type(target) is Optional:
            return _resolve_optional(state, target)
        for key in keys:
            try:
                target = qualify(target, key)
            except EvaluationError as raised:
                target = as_error_value(raised)
            state.cost += 1
            if state.cost > state.cost_limit:
                raise CostLimitExceeded
            if type(target) is EvaluationError:
                return target
        return target

    def _resolve_optional(state: State, target: Optional) -> Value:
        value: Value = target
        for key in keys:
            if value is NONE:
                return NONE
            value = _look_up(state, cast("Optional", value).value, key)
            if type(value) is EvaluationError:
                return value
        return value

    return resolve


def _look_up(state: State, target: Value, key: Value) -> Value:
    """One optional qualifier: an optional value, or an error."""
    try:
        found = qualify_if_present(target, key)
    except EvaluationError as raised:
        return as_error_value(raised)
    if found is ABSENT:
        return NONE
    state.charge(1)
    return Optional(found)


class Applied:
    """One qualifier, ready to be applied."""

    __slots__ = ("_compute", "_key", "_tests", "optional")

    def __init__(self, qualifier: Qualifier, builder: Builder) -> None:
        self._key = qualifier.key
        self._compute: Step | None = None
        if not qualifier.constant:
            key = cast("Resolved", qualifier.key)
            self._compute = builder.watch(key, make_resolver(key, builder))
        self._tests = qualifier.tests
        self.optional = qualifier.optional

    def apply(self, state: State, target: Value) -> Value:
        key = self._key if self._compute is None else self._compute(state)
        result: Value
        if type(key) is EvaluationError:
            result = key
        else:
            try:
                if self._tests:
                    result = qualify_if_present(target, key) is not ABSENT
                else:
                    result = qualify(target, key)
            except EvaluationError as raised:
                result = as_error_value(raised)
        state.charge(1)
        return result

    def apply_if_present(self, state: State, target: Value) -> Value:
        """NONE, an optional value, or an error."""
        key = self._key if self._compute is None else self._compute(state)
        if type(key) is EvaluationError:
            return key
        return _look_up(state, target, key)


def _apply_once(qualifier: Qualifier, builder: Builder) -> Applied:
    applied = builder.applied.get(id(qualifier))
    if applied is None:
        applied = builder.applied[id(qualifier)] = Applied(qualifier, builder)
    return applied


def _make_chain(base: Step, qualifiers: list[Applied]) -> Step:
    def resolve(state: State) -> Value:
        target = base(state)
        if type(target) is EvaluationError or target is NONE:
            return target
        is_optional = isinstance(target, Optional)
        if isinstance(target, Optional):
            target = target.value
        for qualifier in qualifiers:
            is_optional = is_optional or qualifier.optional
            if is_optional:
                found = qualifier.apply_if_present(state, target)
                if not isinstance(found, Optional) or found is NONE:
                    return found
                target = found.value
            else:
                target = qualifier.apply(state, target)
                if type(target) is EvaluationError:
                    return target
        return Optional(target) if is_optional else target

    return resolve
