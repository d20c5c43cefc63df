"""CEL values as Python objects.

    bool int Uint float str bytes None      the primitives; int is 64 bit, checked where it is computed
    list                                    lists; never changed once they are visible (but see `MutableList`)
    dict                                    maps; keys are encoded (`encode_key`) because 1, 1u, 1.0 and true differ
    TypeValue Timestamp Duration Optional   CEL's own types
    Quantity Semver IP CIDR URL Format      Kubernetes' types
    EvaluationError                         an error, while `&&` and `||` may still absorb it

Values are told apart with `type(value)`: Python's own `True == 1 == 1.0` must not leak into CEL.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias, cast

from dray.api.quantities import Quantity
from dray.api.versions import Semver
from dray.cel.ast import Uint
from dray.cel.errors import EvaluationError

Value: TypeAlias = object

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
UINT_MAX: Final = (1 << 64) - 1


class TypeValue(NamedTuple):
    """What `type(x)` gives and what `int` or `net.IP` stand for. Types are equal if their names are."""

    name: str


class Timestamp(NamedTuple):
    """Nanoseconds since 1970 and the offset it was written with, in seconds: `string()` gives that back."""

    nanos: int
    offset: int = 0


class Duration(NamedTuple):
    nanos: int


class Optional:
    """`optional.of(value)`, or `NONE`."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value: Final = value

    def __repr__(self) -> str:
        return "optional.none()" if self is NONE else f"optional.of({self.value!r})"


NONE: Final = Optional(None)


class ConcatList(list[Value]):
    """Two non-empty lists joined with `+`. Unlike other lists its `==` passes on errors of its elements."""

    __slots__ = ()


class MutableList(list[Value]):
    """The empty list that a comprehension or `cel.bind` starts with: `+` on it changes it in place."""

    __slots__ = ()


class MutableMap(dict["MapKey", Value]):
    """The empty map that a comprehension or `cel.bind` starts with."""

    __slots__ = ()


class DefaultMap(dict["MapKey", Value]):
    """A map that gives an empty map for a missing key when indexed; `in`, `size()` and iteration see what is there."""

    __slots__ = ()

    def __missing__(self, key: MapKey) -> Value:
        return EMPTY_MAP


class WrappedKey(NamedTuple):
    """A map key that Python would take for another one: 1u, 1.0 and true equal 1 there."""

    type_name: str
    value: Value


MapKey: TypeAlias = str | int | WrappedKey
Map: TypeAlias = dict[MapKey, Value]
EMPTY_MAP: Final[Map] = {}


class QuantitySum:
    """What `add` and `sub` give. Kubernetes returns a pointer there, which is never equal to a quantity on its left."""

    __slots__ = ("quantity",)

    def __init__(self, quantity: Quantity) -> None:
        self.quantity: Final = quantity

    def __repr__(self) -> str:
        return f"QuantitySum({str(self.quantity)!r})"


IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


class IP(NamedTuple):
    address: IPAddress

    def __str__(self) -> str:
        return str(self.address)


class CIDR(NamedTuple):
    """An address with a prefix length; bits after the prefix are kept."""

    address: IPAddress
    prefix: int

    def __str__(self) -> str:
        return f"{self.address}/{self.prefix}"


class URL(NamedTuple):
    scheme: str
    host: str
    path: str
    escaped_path: str
    query: str
    text: str
    """The URL put together again: what equality compares."""

    def __str__(self) -> str:
        return self.text


class Format(NamedTuple):
    """A named format of Kubernetes, such as `format.dns1123Label()`; its own name is `DNS1123Label`."""

    name: str
    check: Callable[[str], list[str]]
    regex_size: int
    """How long a regular expression its cost assumes."""


_TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    ConcatList: "list",
    MutableList: "list",
    dict: "map",
    DefaultMap: "map",
    MutableMap: "map",
    TypeValue: "type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    Optional: "optional_type",
    Quantity: "kubernetes.Quantity",
    QuantitySum: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    IP: "net.IP",
    CIDR: "net.CIDR",
    URL: "kubernetes.URL",
    Format: "kubernetes.NamedFormat",
    EvaluationError: "error",
}


def register_map_type(kind: type) -> None:
    """Tells that values of `kind` are maps (they offer `as_map()`)."""
    _TYPE_NAMES[kind] = "map"


def type_name(value: Value) -> str:
    """The run-time type, as `type(value)` shows it."""
    return _TYPE_NAMES[type(value)]


def no_such_overload(function: str, *arguments: Value) -> EvaluationError:
    return EvaluationError(f"no such overload: {function}({', '.join(type_name(value) for value in arguments)})")


def as_map(value: Value) -> Map | None:
    """The entries of a map, None for anything else."""
    if isinstance(value, dict):
        return value
    convert = getattr(value, "as_map", None)
    return None if convert is None else cast("Map", convert())


def encode_key(value: Value) -> MapKey:
    """The dict key of a CEL value. Raises EvaluationError for values that can't be keys."""
    kind = type(value)
    if kind is str or kind is int:
        return cast("MapKey", value)
    if kind in (bool, Uint, float, type(None), Timestamp, Duration, TypeValue):
        return WrappedKey(_TYPE_NAMES[kind], value)
    raise EvaluationError(f"unsupported key type: {type_name(value)}")


def decode_key(key: MapKey) -> Value:
    return key.value if isinstance(key, WrappedKey) else key


def iter_keys(entries: Map) -> Iterator[Value]:
    """The keys of a map as CEL values."""
    for key in entries:
        yield key.value if type(key) is WrappedKey else key


def find_key(entries: Map, key: Value) -> MapKey | None:
    """The key of `entries` that `key` stands for, numbers compared across types; None if there is none."""
    kind = type(key)
    if kind is str:
        return cast("str", key) if key in entries else None
    if kind is int:
        number = cast("int", key)
        if number in entries:
            return number
        wrapped = WrappedKey("uint", Uint(number))
        return wrapped if number >= 0 and wrapped in entries else None
    if kind is Uint:
        unsigned = cast("Uint", key)
        wrapped = WrappedKey("uint", unsigned)
        if wrapped in entries:
            return wrapped
        return int(unsigned) if unsigned <= INT_MAX and int(unsigned) in entries else None
    if kind is float:
        return _find_double(entries, cast("float", key))
    try:
        encoded = encode_key(key)
    except EvaluationError:
        return None
    return encoded if encoded in entries else None


def _find_double(entries: Map, key: float) -> MapKey | None:
    wrapped = WrappedKey("double", key)
    if wrapped in entries:
        return wrapped
    if not key.is_integer():
        return None
    number = int(key)
    if INT_MIN <= number <= INT_MAX and number in entries:
        return number
    wrapped = WrappedKey("uint", Uint(number))
    return wrapped if 0 <= number <= UINT_MAX and wrapped in entries else None
