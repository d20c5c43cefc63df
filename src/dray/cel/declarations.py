"""Functions and their overloads, written as lines of text in `declarations_<library>.py` and read here.

A line is a function, the id of one overload, and its signature: `contains contains_string string.(string) -> bool`.
A single capital letter is a type parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from dray.cel import types
from dray.cel.types import Type


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. The receiver of a member call is the first parameter."""

    id: str
    member: bool
    parameters: tuple[Type, ...]
    result: Type
    type_parameters: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    overloads: tuple[Overload, ...]
    by_shape: Mapping[tuple[bool, int], tuple[Overload, ...]] = field(init=False, repr=False, compare=False)
    """The overloads by call style (member or not) and number of parameters, receiver included."""

    def __post_init__(self) -> None:
        shapes: dict[tuple[bool, int], tuple[Overload, ...]] = {}
        for overload in self.overloads:
            shape = (overload.member, len(overload.parameters))
            shapes[shape] = (*shapes.get(shape, ()), overload)
        object.__setattr__(self, "by_shape", shapes)


IP: Final = types.opaque("net.IP")
CIDR: Final = types.opaque("net.CIDR")
QUANTITY: Final = types.object_type("kubernetes.Quantity")
SEMVER: Final = types.object_type("kubernetes.Semver")
URL: Final = types.object_type("kubernetes.URL")
NAMED_FORMAT: Final = types.object_type("kubernetes.NamedFormat")
DEVICE: Final = types.object_type("kubernetes.DRADevice")

AUTHORIZATION_TYPES: Final = {
    name: types.object_type(f"kubernetes.authorization.{name}")
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
}

_NAMED_TYPES: Final[Mapping[str, Type]] = {
    "dyn": types.DYN,
    "bool": types.BOOL,
    "int": types.INT,
    "uint": types.UINT,
    "double": types.DOUBLE,
    "string": types.STRING,
    "bytes": types.BYTES,
    "duration": types.DURATION,
    "timestamp": types.TIMESTAMP,
    "IP": IP,
    "CIDR": CIDR,
    "Quantity": QUANTITY,
    "Semver": SEMVER,
    "URL": URL,
    "NamedFormat": NAMED_FORMAT,
    **AUTHORIZATION_TYPES,
}


def read_functions(*tables: str) -> dict[str, Function]:
    """The functions of some libraries together. The overloads of a function stand in the order of the lines."""
    overloads: dict[str, list[Overload]] = {}
    for table in tables:
        for line in table.splitlines():
            if line and not line.startswith("#"):
                name, overload_id, signature = line.split(None, 2)
                overloads.setdefault(name, []).append(read_overload(overload_id, signature))
    return {name: Function(name, tuple(found)) for name, found in overloads.items()}


def read_overload(overload_id: str, signature: str) -> Overload:
    arguments, result = signature.split(" -> ")
    receiver, _, arguments = arguments.rpartition(".(") if not arguments.startswith("(") else ("", "", arguments[1:])
    parameters = [read_type(receiver)] if receiver else []
    parameters += [read_type(part) for part in _split(arguments[:-1])]
    result_type = read_type(result)
    found = dict.fromkeys(_type_parameters([*parameters, result_type]))
    return Overload(overload_id, bool(receiver), tuple(parameters), result_type, tuple(found))


@cache
def read_type(text: str) -> Type:
    if len(text) == 1:
        return types.type_parameter(text)
    name, bracket, rest = text.partition("(")
    if not bracket:
        return _NAMED_TYPES[name]
    parameters = [read_type(part) for part in _split(rest[:-1])]
    match name:
        case "list":
            return types.list_of(*parameters)
        case "map":
            return types.map_of(*parameters)
        case "optional":
            return types.optional_of(*parameters)
        case "type":
            return types.type_of(*parameters)
        case _:
            return types.opaque(name, *parameters)


def _split(text: str) -> list[str]:
    """Split at the commas that aren't inside brackets."""
    parts: list[str] = []
    start = depth = 0
    for index, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _type_parameters(found: Iterable[Type]) -> Iterable[Type]:
    for candidate in found:
        if candidate.kind == "parameter":
            yield candidate
        yield from _type_parameters(candidate.parameters)
