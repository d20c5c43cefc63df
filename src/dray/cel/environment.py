"""What an expression may talk about: variables, types and functions.

There are three kinds. `device` is what selectors and derived attributes see; its `new` form is what an API server
admits, its `stored` form what a scheduler evaluates. `devices` is the same for CEL constraints over a set of devices
(KEP-5254). `generic` is for any other variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from dray.cel.declarations import (
    AUTHORIZATION_TYPES,
    CIDR,
    DEVICE,
    IP,
    NAMED_FORMAT,
    QUANTITY,
    SEMVER,
    URL,
    Function,
    read_functions,
)
from dray.cel.declarations_extensions import EXTENSION_TABLES
from dray.cel.declarations_kubernetes import INCLUDES, KUBERNETES_TABLES
from dray.cel.declarations_standard import STANDARD_TABLES
from dray.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    wrapper_of,
)

_WRAPPERS: Final = {
    "google.protobuf.BoolValue": BOOL,
    "google.protobuf.BytesValue": BYTES,
    "google.protobuf.DoubleValue": DOUBLE,
    "google.protobuf.FloatValue": DOUBLE,
    "google.protobuf.Int32Value": INT,
    "google.protobuf.Int64Value": INT,
    "google.protobuf.StringValue": STRING,
    "google.protobuf.UInt32Value": UINT,
    "google.protobuf.UInt64Value": UINT,
}

_TYPES: Final[Mapping[str, Type]] = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "int": INT,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": NULL,
    "optional_type": optional_of(DYN),
    "string": STRING,
    "type": TYPE,
    "uint": UINT,
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
    **{name: wrapper_of(primitive) for name, primitive in _WRAPPERS.items()},
    **{found.name: found for found in (IP, CIDR, QUANTITY, SEMVER, URL, NAMED_FORMAT, *AUTHORIZATION_TYPES.values())},
}

_OBJECTS: Final[Mapping[str, Mapping[str, Type]]] = {
    "google.protobuf.Duration": {"seconds": INT, "nanos": INT},
    "google.protobuf.Timestamp": {"seconds": INT, "nanos": INT},
    **{name: {"value": primitive} for name, primitive in _WRAPPERS.items()},
}


@dataclass(frozen=True, eq=False, slots=True)
class Environment:
    """Made by `device_environment`, `devices_environment` or `generic_environment`."""

    name: Literal["device", "devices", "generic"]
    variables: Mapping[str, Type]
    functions: Mapping[str, Function]
    types: Mapping[str, Type]
    """Type names that may stand as values (`int`, `net.IP`)."""
    objects: Mapping[str, Mapping[str, Type]]
    """Types that have fields, and the types of these."""
    container: str = ""
    """Namespace that names are looked up in first."""
    attribute_type: Type = DYN
    """Static type of one attribute value of a device."""
    stored: bool = True
    consumable_capacity: bool = True
    list_type_attributes: bool = True


@cache
def device_environment(
    *, stored: bool = True, consumable_capacity: bool = True, list_type_attributes: bool = True
) -> Environment:
    """The environment of selectors and derived attributes: one variable, `device`.

    Features matter for new expressions only: what is stored must stay usable after a feature was switched off.
    """
    attribute_type = DYN if stored or list_type_attributes else ANY
    return Environment(
        "device",
        {"device": DEVICE},
        _functions(includes=stored or list_type_attributes),
        {**_TYPES, DEVICE.name: DEVICE},
        {**_OBJECTS, DEVICE.name: _device_fields(attribute_type, sharing=stored or consumable_capacity)},
        attribute_type=attribute_type,
        stored=stored,
        consumable_capacity=consumable_capacity,
        list_type_attributes=list_type_attributes,
    )


@cache
def devices_environment(
    *, stored: bool = True, consumable_capacity: bool = True, list_type_attributes: bool = True
) -> Environment:
    """The environment of CEL constraints (KEP-5254): one variable, `devices`, a list of what `device` is elsewhere."""
    device = device_environment(
        stored=stored, consumable_capacity=consumable_capacity, list_type_attributes=list_type_attributes
    )
    return Environment(
        "devices",
        {"devices": list_of(DEVICE)},
        device.functions,
        device.types,
        device.objects,
        attribute_type=device.attribute_type,
        stored=stored,
        consumable_capacity=consumable_capacity,
        list_type_attributes=list_type_attributes,
    )


def generic_environment(
    variables: Mapping[str, Type], functions: Iterable[Function] = (), container: str = ""
) -> Environment:
    """All libraries, over variables (and further functions, or overloads of known ones) of one's own."""
    known = dict(_functions(includes=True))
    for function in functions:
        overloads = known[function.name].overloads if function.name in known else ()
        known[function.name] = Function(function.name, (*overloads, *function.overloads))
    return Environment("generic", variables, known, _TYPES, _OBJECTS, container)


@cache
def _functions(*, includes: bool) -> dict[str, Function]:
    tables = (*STANDARD_TABLES, *EXTENSION_TABLES, *KUBERNETES_TABLES)
    if not includes:
        return read_functions(*tables)
    functions = read_functions(*tables, INCLUDES)
    # The text of KEP-5491 says `include`, Kubernetes `includes`. The checker gives both the name of the latter.
    return functions | {"include": functions["includes"]}


def _device_fields(attribute_type: Type, *, sharing: bool) -> dict[str, Type]:
    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, attribute_type)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    return fields | {"allowMultipleAllocations": BOOL} if sharing else fields
