"""Static types of CEL, in cel-go's sense."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """A type and its parameters. `kind` separates what `name` alone does not: dyn, opaque types, type parameters."""

    kind: str
    name: str
    parameters: tuple[Type, ...] = ()
    is_open: bool = field(init=False, repr=False, compare=False)
    """Whether a type parameter occurs in it."""
    depth: int = field(init=False, repr=False, compare=False)
    """How deep its parameters nest."""

    def __post_init__(self) -> None:
        is_open, depth = self.kind == "parameter", 0
        for parameter in self.parameters:
            is_open = is_open or parameter.is_open
            depth = max(depth, parameter.depth + 1)
        object.__setattr__(self, "is_open", is_open)
        object.__setattr__(self, "depth", depth)

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        # Not `map(str, ...)`: types nest, and what recurses through C has limits of its own.
        return f"{self.name}({', '.join([parameter.__str__() for parameter in self.parameters])})"


DYN: Final = Type("dyn", "dyn")
ANY: Final = Type("any", "google.protobuf.Any")
ERROR: Final = Type("error", "*error*")
NULL: Final = Type("primitive", "null_type")
BOOL: Final = Type("primitive", "bool")
INT: Final = Type("primitive", "int")
UINT: Final = Type("primitive", "uint")
DOUBLE: Final = Type("primitive", "double")
STRING: Final = Type("primitive", "string")
BYTES: Final = Type("primitive", "bytes")
DURATION: Final = Type("primitive", "google.protobuf.Duration")
TIMESTAMP: Final = Type("primitive", "google.protobuf.Timestamp")
TYPE: Final = Type("type", "type")


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def type_of(parameter: Type) -> Type:
    return Type("type", "type", (parameter,))


def opaque(name: str, *parameters: Type) -> Type:
    return Type("opaque", name, parameters)


def object_type(name: str) -> Type:
    return Type("object", name)


def type_parameter(name: str) -> Type:
    return Type("parameter", name)


def wrapper_of(primitive: Type) -> Type:
    """A primitive that may be null: what `google.protobuf.Int64Value` and its like are in CEL."""
    return Type("wrapper", "wrapper", (primitive,))
