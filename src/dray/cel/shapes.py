"""Upper bounds of how large values can be, known before an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from dray.cel.devices import MAX_DRIVER, MAX_ENTRIES, MAX_ITEMS, MAX_TEXT, MAX_WORK
from dray.cel.meter import CHARACTERS_PER_UNIT
from dray.cel.plan import Call, Constant
from dray.cel.run_time_costs import UNBOUNDED
from dray.cel.types import Type
from dray.cel.values import CIDR, IP, Value, as_map

MAX_DEVICES: Final = 32
_MAX_RANGE: Final = 1_000_000
_SCALAR_TEXT: Final = 64
"""No scalar (number, time, address) is written with more characters."""
_ADDRESS: Final = 16


class Shape(NamedTuple):
    """How long a value is at most, and what its elements are, if it has any. An optional has the shape of its value."""

    length: int
    item: Shape | None = None
    key: int = 0
    """How long the keys of a map are."""
    cap: int = UNBOUNDED
    """A bound on the work that is known otherwise."""

    @property
    def weight(self) -> int:
        """At least what Kubernetes charges for looking at all of it: a character may have four bytes."""
        if self.item is None:
            return 1 + self.length * 4 // 10
        return 1 + self.length * (1 + self.key + self.item.weight)

    @property
    def work(self) -> int:
        """At least the units of work that looking at all of it takes."""
        units = 1 + self.length // CHARACTERS_PER_UNIT
        if self.item is not None:
            units = 1 + self.length * (2 + self.item.work)
        return min(units, self.cap)

    @property
    def element(self) -> Shape:
        if self.item is not None:
            return self.item
        return UNKNOWN if self.length >= UNBOUNDED else SCALAR


SCALAR: Final = Shape(1)
UNKNOWN: Final = Shape(UNBOUNDED)
_ATTRIBUTE: Final = Shape(MAX_ITEMS, Shape(MAX_TEXT), cap=MAX_WORK)


def join(left: Shape, right: Shape) -> Shape:
    """The shape of a value that may be either."""
    if left == right:
        return left
    item = right.item if left.item is None else left.item if right.item is None else join(left.item, right.item)
    cap = max(left.work, right.work)
    return Shape(max(left.length, right.length), item, max(left.key, right.key), cap)


def shape_of_value(value: Value) -> Shape:
    """The exact shape of a constant."""
    if isinstance(value, str | bytes):
        return Shape(len(value))
    if isinstance(value, IP | CIDR):
        return Shape(_ADDRESS)
    if isinstance(value, list):
        return Shape(len(value), _join_all([shape_of_value(item) for item in value]))
    entries = as_map(value)
    if entries is None:
        return SCALAR
    key = max((len(key) if isinstance(key, str) else 1 for key in entries), default=0)
    return Shape(len(entries), _join_all([shape_of_value(item) for item in entries.values()]), key)


def _join_all(shapes: list[Shape]) -> Shape:
    result = shapes[0] if shapes else Shape(0)
    for shape in shapes[1:]:
        result = join(result, shape)
    return result


def device_field(name: str, *, limited: bool) -> Shape:
    """The shape of `device.<name>`; `limited` if the device is known to be as small as a valid one."""
    if name == "allowMultipleAllocations":
        return SCALAR
    if not limited:
        return UNKNOWN
    if name == "driver":
        return Shape(MAX_DRIVER)
    item = _ATTRIBUTE if name == "attributes" else SCALAR
    domain = Shape(MAX_ENTRIES, item, MAX_TEXT, MAX_WORK)
    return Shape(MAX_ENTRIES, domain, MAX_TEXT, MAX_WORK)


_SCALARS: Final = frozenset(
    (
        "bool",
        "int",
        "uint",
        "double",
        "null_type",
        "type",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.URL",
        "kubernetes.NamedFormat",
    )
)


def shape_of_type(type_: Type | None) -> Shape:
    """What a type alone says."""
    if type_ is None:
        return UNKNOWN
    if type_.name in _SCALARS:
        return SCALAR
    return Shape(_ADDRESS) if type_.name in ("net.IP", "net.CIDR") else UNKNOWN


def shape_of_result(call: Call, arguments: list[Shape], type_: Type | None) -> Shape:
    """The shape of what a call returns."""
    known = shape_of_type(type_)
    if known is not UNKNOWN:
        return known
    rule = _RESULTS.get(call.function)
    if rule is not None and arguments:
        return rule(arguments)
    if call.function == "lists.range":
        length = call.arguments[0]
        if isinstance(length, Constant) and type(length.value) is int:
            return Shape(max(0, length.value), SCALAR)
        return Shape(_MAX_RANGE, SCALAR)
    return UNKNOWN


def _text_of(arguments: list[Shape]) -> Shape:
    return Shape(max(_SCALAR_TEXT, arguments[0].length))


def _same(arguments: list[Shape]) -> Shape:
    return arguments[0]


def _element(arguments: list[Shape]) -> Shape:
    return arguments[0].element


def _sum(arguments: list[Shape]) -> Shape:
    left, right = arguments
    joined = join(left, right)
    return Shape(left.length + right.length, joined.item, joined.key)


def _inserted(arguments: list[Shape]) -> Shape:
    """`cel.@mapInsert`: of one entry, or of a whole map."""
    if len(arguments) == 2:
        return _sum(arguments)
    entries, key, value = arguments
    item = value if entries.item is None else join(entries.item, value)
    return Shape(entries.length + 1, item, max(entries.key, key.length))


def _replaced(arguments: list[Shape]) -> Shape:
    text, _, new, *_ = arguments
    return Shape((text.length + 1) * (new.length + 1))


def _joined(arguments: list[Shape]) -> Shape:
    items = arguments[0]
    separator = arguments[1].length if len(arguments) > 1 else 0
    return Shape(items.length * (items.element.length + separator))


def _pieces(arguments: list[Shape]) -> Shape:
    return Shape(arguments[0].length + 1, Shape(arguments[0].length))


def _flat(arguments: list[Shape]) -> Shape:
    inner = arguments[0].element
    return Shape(arguments[0].length * max(1, inner.length), join(inner, inner.element))


_RESULTS: Final[dict[str, Callable[[list[Shape]], Shape]]] = {
    "_+_": _sum,
    "cel.@mapInsert": _inserted,
    "string": _text_of,
    "bytes": lambda arguments: Shape(4 * arguments[0].length),
    "charAt": lambda arguments: SCALAR,
    "strings.quote": lambda arguments: Shape(2 * arguments[0].length + 2),
    "replace": _replaced,
    "join": _joined,
    "split": _pieces,
    "findAll": _pieces,
    "flatten": _flat,
    **dict.fromkeys(
        ("dyn", "substring", "trim", "lowerAscii", "upperAscii", "find", "sort", "reverse", "slice", "distinct"), _same
    ),
    **dict.fromkeys(("@sortByAssociatedKeys", "optional.of", "optional.ofNonZeroValue", "value", "unwrapOpt"), _same),
    **dict.fromkeys(("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"), lambda arguments: UNKNOWN),
    **dict.fromkeys(("first", "last", "min", "max", "sum"), _element),
    "optional.unwrap": _same,
    "optional.none": lambda arguments: SCALAR,
}
