"""From a call to the Python function behind it, chosen by overload id, or at run time by the types of the arguments.

When the checker left one overload, its implementation is called, guarded by its parameter types: dynamic arguments
may turn out to be something else. When it left several, every overload of the function is tried in its order; of a
list or map only the first element is looked at. Operators, `size`, `type` and `dyn` have one implementation for all
their overloads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, cast

from dray.api.quantities import Quantity
from dray.api.versions import Semver
from dray.cel import (
    functions_conversions,
    functions_formats,
    functions_lists,
    functions_net,
    functions_optionals,
    functions_quantity,
    functions_regex,
    functions_strings,
    functions_times,
    functions_urls,
)
from dray.cel.arithmetic import OPERATORS, negate
from dray.cel.ast import Uint
from dray.cel.declarations import Function, Overload
from dray.cel.equality import compare_values
from dray.cel.errors import EvaluationError
from dray.cel.meter import Meter
from dray.cel.types import Type
from dray.cel.values import (
    CIDR,
    IP,
    URL,
    ConcatList,
    Duration,
    Format,
    MutableList,
    Optional,
    QuantitySum,
    Timestamp,
    TypeValue,
    Value,
    as_map,
    decode_key,
    find_key,
    no_such_overload,
)

Apply: TypeAlias = Callable[..., Value]
"""Called with a meter and the arguments; raises EvaluationError."""

_LIBRARIES: Final = (
    functions_conversions.OVERLOADS,
    functions_formats.OVERLOADS,
    functions_lists.OVERLOADS,
    functions_net.OVERLOADS,
    functions_optionals.OVERLOADS,
    functions_quantity.OVERLOADS,
    functions_regex.OVERLOADS,
    functions_strings.OVERLOADS,
    functions_times.OVERLOADS,
    functions_urls.OVERLOADS,
)
PLAIN: Final[dict[str, Callable[..., Value]]] = {
    name: function for table in _LIBRARIES for name, function in table.items()
}
"""Implementations that take just the arguments."""
METERED: Final[dict[str, Callable[..., Value]]] = (
    functions_lists.METERED | functions_strings.METERED | functions_optionals.METERED
)
"""Implementations whose first argument is the meter."""


class Binding(NamedTuple):
    apply: Apply
    stops: bool
    """Whether arguments after a failing one are left out."""


# Operators and other functions with one implementation


def _logical_not(meter: Meter, value: Value) -> Value:
    if type(value) is bool:
        return not value
    raise EvaluationError("no such overload")


def _ordering(accepted: frozenset[int]) -> Apply:
    def apply(meter: Meter, left: Value, right: Value) -> Value:
        answer = compare_values(left, right, meter)
        if isinstance(answer, EvaluationError):
            raise answer
        return answer in accepted

    return apply


def is_in(meter: Meter, wanted: Value, container: Value) -> bool:
    """`wanted in container`."""
    if isinstance(container, list):
        return functions_lists.contains(container, wanted, meter)
    entries = as_map(container)
    if entries is None:
        raise EvaluationError("no such overload")
    return find_key(entries, wanted) is not None


def size_of(meter: Meter, value: Value) -> int:
    """`size(value)`."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    entries = as_map(value)
    if entries is None:
        raise EvaluationError("no such overload: size")
    return len(entries)


def _matches(meter: Meter, text: Value, pattern: Value) -> bool:
    if type(text) is str and type(pattern) is str:
        return functions_regex.matches(text, pattern)
    raise no_such_overload("matches", text, pattern)


def _sort(meter: Meter, items: Value) -> Value:
    if isinstance(items, list):
        return functions_lists.sort(meter, items)
    raise EvaluationError("no such overload: sort")


def _sort_by_keys(meter: Meter, items: Value, keys: Value) -> Value:
    if isinstance(items, list) and isinstance(keys, list):
        return functions_lists.sort_by_keys(meter, items, keys)
    raise EvaluationError("no such overload: @sortByAssociatedKeys")


def _unguarded(function: Callable[[Value], Value]) -> Apply:
    return lambda meter, value: function(value)


_SINGLE: Final[dict[str, Apply]] = {
    "!_": _logical_not,
    "-_": negate,
    **OPERATORS,
    "_<_": _ordering(frozenset((-1,))),
    "_<=_": _ordering(frozenset((-1, 0))),
    "_>_": _ordering(frozenset((1,))),
    "_>=_": _ordering(frozenset((0, 1))),
    "@in": is_in,
    "size": size_of,
    "type": _unguarded(functions_conversions.type_of_value),
    "dyn": _unguarded(functions_conversions.identity),
    "matches": _matches,
    "sort": _sort,
    "@sortByAssociatedKeys": _sort_by_keys,
}
_UNGUARDED: Final = frozenset(("list_flatten",))
"""Overloads that take what their parameter types would refuse at run time."""


# Types at run time

Predicate: TypeAlias = Callable[[Value], bool]

_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "int": (int,),
    "uint": (Uint,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "null_type": (type(None),),
    "google.protobuf.Timestamp": (Timestamp,),
    "google.protobuf.Duration": (Duration,),
    "type": (TypeValue,),
    "optional_type": (Optional,),
    "kubernetes.Quantity": (Quantity, QuantitySum),
    "kubernetes.Semver": (Semver,),
    "net.IP": (IP,),
    "net.CIDR": (CIDR,),
    "kubernetes.URL": (URL,),
    "kubernetes.NamedFormat": (Format,),
}
_LISTS: Final = frozenset((list, ConcatList, MutableList))


@lru_cache(maxsize=1024)
def predicate_of(type_: Type) -> Predicate | None:
    """Whether a value is of a type, as far as cel-go looks; None if every value is."""
    match type_.kind:
        case "dyn" | "any" | "parameter":
            return None
        case "list":
            element = predicate_of(type_.parameters[0])
            return lambda value: (
                type(value) in _LISTS and (element is None or not value or element(cast("list[Value]", value)[0]))
            )
        case "map":
            return _map_predicate(predicate_of(type_.parameters[0]), predicate_of(type_.parameters[1]))
    kinds = _KINDS.get(type_.name)
    if kinds is None:
        return lambda value: False
    if len(kinds) == 1:
        kind = kinds[0]
        return lambda value: type(value) is kind
    return lambda value: type(value) in kinds


def _map_predicate(key: Predicate | None, element: Predicate | None) -> Predicate:
    def check(value: Value) -> bool:
        entries = as_map(value)
        if entries is None:
            return False
        for first, item in entries.items():
            return (key is None or key(decode_key(first))) and (element is None or element(item))
        return True

    return check


# Choice


def bind_call(function: Function, overload_ids: tuple[str, ...], arity: int) -> Binding:
    """What evaluates a call of `function` for which the checker left these overloads."""
    single = _SINGLE.get(function.name)
    if single is not None:
        return Binding(single, arity > 2)
    if len(overload_ids) == 1:
        for overload in function.overloads:
            if overload.id == overload_ids[0]:
                return Binding(_guarded(function.name, overload), arity > 2 or overload.id == "string_format")
    if len(function.overloads) == 1:
        return Binding(_guarded(function.name, function.overloads[0]), arity > 2)
    return Binding(_dispatching(function, arity), True)


def implementation(overload_id: str) -> Apply | None:
    """The implementation of an overload, without a guard."""
    metered = METERED.get(overload_id)
    if metered is not None:
        return metered
    plain = PLAIN.get(overload_id)
    return None if plain is None else lambda meter, *arguments: plain(*arguments)


def _guarded(name: str, overload: Overload) -> Apply:
    apply = implementation(overload.id)
    predicates = tuple(predicate_of(parameter) for parameter in overload.parameters)

    def call(meter: Meter, *arguments: Value) -> Value:
        if apply is None:
            raise no_such_overload(name, *arguments)
        for check, argument in zip(predicates, arguments, strict=True):
            if check is not None and not check(argument):
                raise no_such_overload(name, *arguments)
        return apply(meter, *arguments)

    if overload.id in _UNGUARDED and apply is not None:
        return apply
    return call


def _dispatching(function: Function, arity: int) -> Apply:
    choices = [
        (tuple(predicate_of(parameter) for parameter in overload.parameters), apply)
        for overload in function.overloads
        if len(overload.parameters) == arity and (apply := implementation(overload.id)) is not None
    ]

    def call(meter: Meter, *arguments: Value) -> Value:
        for predicates, apply in choices:
            if all(check is None or check(argument) for check, argument in zip(predicates, arguments, strict=True)):
                return apply(meter, *arguments)
        raise no_such_overload(function.name, *arguments)

    return call
