"""Equality of CEL values: `left.Equal(right)` of cel-go, errors included.

The answer is True, False or an error ("no such overload": Kubernetes' types compare with their own kind only).
Lists and maps treat an element whose comparison fails as equal; only a `ConcatList` passes the error on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, cast

from dray.api.quantities import Quantity
from dray.api.versions import Semver
from dray.cel.ast import Uint
from dray.cel.errors import EvaluationError
from dray.cel.meter import Meter
from dray.cel.values import (
    CIDR,
    IP,
    NONE,
    URL,
    ConcatList,
    DefaultMap,
    Duration,
    Format,
    MutableList,
    MutableMap,
    Optional,
    QuantitySum,
    Timestamp,
    TypeValue,
    Value,
    as_map,
    decode_key,
    find_key,
)

Answer: TypeAlias = bool | EvaluationError
NO_SUCH_OVERLOAD: Final = "no such overload"


def equals(left: Value, right: Value, meter: Meter) -> Answer:
    """`left == right`."""
    if left is None or right is None:
        return left is right
    return equals_self(left, right, meter)


def is_equal(left: Value, right: Value, meter: Meter) -> bool:
    """Whether `left == right` is true; false also where it is an error."""
    return equals(left, right, meter) is True


def equals_self(left: Value, right: Value, meter: Meter) -> Answer:
    """`left.Equal(right)`, without the rule that null compares with everything."""
    compare = _EQUALS.get(type(left))
    if compare is not None:
        return compare(left, right, meter)
    return _equal_maps(left, right, meter)


def _equal_texts(left: Value, right: Value, meter: Meter) -> Answer:
    if type(left) is not type(right):
        return False
    meter.spend_text(min(len(cast("str", left)), len(cast("str", right))))
    return left == right


def _equal_bools(left: Value, right: Value, meter: Meter) -> Answer:
    return type(right) is bool and left is right


def _equal_numbers(left: Value, right: Value, meter: Meter) -> Answer:
    kind = type(right)
    if kind is type(left):
        return left == right
    return kind in _NUMBERS and left == left and right == right and _order_numbers(left, right) == 0


def _equal_of_kind(left: Value, right: Value, meter: Meter) -> Answer:
    return type(left) is type(right) and left == right


def _equal_nulls(left: Value, right: Value, meter: Meter) -> Answer:
    return right is None


def _equal_timestamps(left: Value, right: Value, meter: Meter) -> Answer:
    return isinstance(left, Timestamp) and isinstance(right, Timestamp) and left.nanos == right.nanos


def _equal_kubernetes(left: Value, right: Value, meter: Meter) -> Answer:
    if type(left) is not type(right):
        return EvaluationError(NO_SUCH_OVERLOAD)
    return left == right


def _equal_sums(left: Value, right: Value, meter: Meter) -> Answer:
    if type(right) is not Quantity:
        return EvaluationError(NO_SUCH_OVERLOAD)
    return cast("QuantitySum", left).quantity == right


def _equal_urls(left: Value, right: Value, meter: Meter) -> Answer:
    if type(right) is not URL:
        return EvaluationError(NO_SUCH_OVERLOAD)
    return cast("URL", left).text == right.text


def _equal_formats(left: Value, right: Value, meter: Meter) -> Answer:
    if type(right) is not Format:
        return EvaluationError(NO_SUCH_OVERLOAD)
    return cast("Format", left).name == right.name


def _equal_optionals(left: Value, right: Value, meter: Meter) -> Answer:
    if not isinstance(right, Optional):
        return False
    if left is NONE or right is NONE:
        return left is right
    return equals_self(cast("Optional", left).value, right.value, meter)


def _equal_lists(left: Value, right: Value, meter: Meter) -> Answer:
    first_error: EvaluationError | None = None
    ours = cast("list[Value]", left)
    if not isinstance(right, list) or len(ours) != len(right):
        return False
    meter.spend(2 + 2 * len(ours))
    for mine, other in zip(ours, right, strict=True):
        answer = equals(mine, other, meter)
        if answer is False:
            return False
        if answer is not True and first_error is None:
            first_error = answer
    if first_error is not None and type(left) is ConcatList:
        return first_error
    return True


def _equal_maps(left: Value, right: Value, meter: Meter) -> Answer:
    ours, others = as_map(left), as_map(right)
    if ours is None or others is None or len(ours) != len(others):
        return False
    meter.spend(2 + 2 * len(ours))
    for key, mine in ours.items():
        found = find_key(others, decode_key(key))
        if found is not None:
            other = others[found]
        elif type(others) is DefaultMap:
            other = others.__missing__(key)
        else:
            return False
        if equals(mine, other, meter) is False:
            return False
    return True


_EQUALS: Final[dict[type, Callable[[Value, Value, Meter], Answer]]] = {
    str: _equal_texts,
    bytes: _equal_texts,
    bool: _equal_bools,
    int: _equal_numbers,
    Uint: _equal_numbers,
    float: _equal_numbers,
    type(None): _equal_nulls,
    list: _equal_lists,
    ConcatList: _equal_lists,
    MutableList: _equal_lists,
    dict: _equal_maps,
    DefaultMap: _equal_maps,
    MutableMap: _equal_maps,
    TypeValue: _equal_of_kind,
    Duration: _equal_of_kind,
    Timestamp: _equal_timestamps,
    Optional: _equal_optionals,
    Quantity: _equal_kubernetes,
    QuantitySum: _equal_sums,
    Semver: _equal_kubernetes,
    IP: _equal_kubernetes,
    CIDR: _equal_kubernetes,
    URL: _equal_urls,
    Format: _equal_formats,
}


def compare_values(left: Value, right: Value, meter: Meter) -> int | EvaluationError:
    """-1, 0 or 1; an error for types that have no order or not a common one, and for NaN."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        mine, others = cast("float", left), cast("float", right)
        if mine != mine or others != others:
            return EvaluationError("NaN values cannot be ordered")
        return _order_numbers(mine, others)
    if kind is not other or kind not in _ORDERED:
        return EvaluationError(NO_SUCH_OVERLOAD)
    if kind is Timestamp:
        first, second = cast("Timestamp", left).nanos, cast("Timestamp", right).nanos
        return (first > second) - (first < second)
    if kind is str or kind is bytes:
        meter.spend_text(min(len(cast("str", left)), len(cast("str", right))))
    mine_text, others_text = cast("str", left), cast("str", right)
    return (mine_text > others_text) - (mine_text < others_text)


def _order_numbers(left: Value, right: Value) -> int:
    """Like cel-go: an integer is rounded to a double before it is compared with one, unless the double is out of range.

    Python's exact comparison gives another answer from 2**53 on.
    """
    mine, others = cast("float", left), cast("float", right)
    if type(left) is float and type(right) is not float:
        others = float(others)
    elif type(right) is float and type(left) is not float:
        mine = float(mine)
    return (mine > others) - (mine < others)


_NUMBERS: Final = frozenset((int, Uint, float))
_ORDERED: Final = frozenset((bool, str, bytes, Timestamp, Duration))


def is_ordered(value: Value) -> bool:
    """Whether values of this type have an order."""
    return type(value) in _NUMBERS or type(value) in _ORDERED
