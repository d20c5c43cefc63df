"""Lists, maps and messages that an expression makes. They are paid for also when an element is an error."""

from __future__ import annotations

from dray.cel.errors import EvaluationError
from dray.cel.evaluation import State, Step, as_error_value
from dray.cel.interpreter_attributes import Builder
from dray.cel.messages import make_message as create_message
from dray.cel.plan import NewList, NewMap, NewMessage
from dray.cel.values import NONE, Map, MapKey, Optional, Value, encode_key


def make_list(builder: Builder, node: NewList) -> Step:
    steps, optional = tuple(map(builder.make_step, node.elements)), node.optional

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


def make_map(builder: Builder, node: NewMap) -> Step:
    entries = tuple(
        (builder.make_step(entry.key), builder.make_step(entry.value), entry.optional) for entry in node.entries
    )

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


def make_message(builder: Builder, node: NewMessage) -> Step:
    fields = tuple((field.name, builder.make_step(field.value), field.optional) for field in node.fields)

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
        return create_message(node.type_name, values)

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
