"""Comprehensions, evaluated exactly.

The accumulator's initial value is computed when it is first used, which is how `cel.bind` is lazy. An empty list or map
becomes mutable then: `+` and `cel.@mapInsert` change it in place, and the result is made immutable at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from dray.cel.errors import EvaluationError
from dray.cel.evaluation import State, Step
from dray.cel.plan import Fold, Node
from dray.cel.values import Map, MutableList, MutableMap, Value, as_map, decode_key, iter_keys, type_name


class Pending:
    """An accumulator that nothing has asked for yet."""

    __slots__ = ("init", "mark", "slot")

    def __init__(self, slot: int, mark: int, init: Step) -> None:
        self.slot = slot
        self.mark = mark
        self.init = init

    def force(self, state: State) -> Value:
        value = self.init(state)
        if isinstance(value, list) and not value:
            value = MutableList()
            state.slots[self.mark] = True
        elif isinstance(value, dict) and not value:
            value = MutableMap()
            state.slots[self.mark] = True
        state.slots[self.slot] = value
        return value


def make_fold(node: Fold, make_step: Callable[[Node], Step]) -> Step:
    range_step, condition, step_ = make_step(node.range), make_step(node.condition), make_step(node.step)
    result_step = make_step(node.result)
    first, second, accumulator, mark = node.first, node.second, node.accumulator, node.mark
    pending = Pending(accumulator, mark, make_step(node.init))

    def step(state: State) -> Value:
        slots = state.slots
        slots[accumulator] = pending
        slots[mark] = False
        items = range_step(state)
        if type(items) is EvaluationError:
            return items
        pairs = _iterate(items, second is not None)
        if pairs is None:
            return EvaluationError(f"got '{type_name(items)}', expected iterable type")
        for key, value in pairs:
            slots[first] = key
            if second is not None:
                slots[second] = value
            # The price of a loop may be nothing at all; its time isn't.
            state.spend(1)
            if condition(state) is False:
                break
            slots[accumulator] = step_(state)
        result = result_step(state)
        return _immutable(result) if slots[mark] else result

    return step


def _iterate(items: Value, two_variables: bool) -> Iterator[tuple[Value, Value]] | None:
    """The elements, or pairs of index or key and element; None if there is nothing to iterate over.

    A list that grows while it is iterated over shows the elements that it had at the start.
    """
    if isinstance(items, list):
        snapshot = items[:] if type(items) is MutableList else items
        if two_variables:
            return enumerate(snapshot)
        return ((item, None) for item in snapshot)
    entries = as_map(items)
    if entries is None:
        return None
    if two_variables:
        return ((decode_key(key), value) for key, value in entries.items())
    return ((key, None) for key in iter_keys(entries))


def _immutable(value: Value) -> Value:
    if type(value) is MutableList:
        return list(value)
    if type(value) is MutableMap:
        return dict(cast("Map", value))
    return value
