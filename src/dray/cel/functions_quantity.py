"""Quantities and semantic versions, and the comparisons that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dray.api.quantities import Quantity
from dray.api.versions import InvalidVersion, Semver
from dray.cel.errors import EvaluationError
from dray.cel.values import QuantitySum, Value

AnyQuantity = Quantity | QuantitySum


def _plain(value: AnyQuantity) -> Quantity:
    return value.quantity if type(value) is QuantitySum else value  # type: ignore[return-value]


def to_quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except ValueError:
        return False
    return True


def sign(value: AnyQuantity) -> int:
    return _plain(value).sign


def quantity_is_greater(left: AnyQuantity, right: AnyQuantity) -> bool:
    return _plain(left) > _plain(right)


def quantity_is_less(left: AnyQuantity, right: AnyQuantity) -> bool:
    return _plain(left) < _plain(right)


def quantity_compare(left: AnyQuantity, right: AnyQuantity) -> int:
    return _plain(left).compare(_plain(right))


def approximate_float(value: AnyQuantity) -> float:
    return _plain(value).approximate_float()


def as_integer(value: AnyQuantity) -> int:
    number = _plain(value).as_int64()
    if number is None:
        raise EvaluationError("cannot convert value to integer")
    return number


def is_integer(value: AnyQuantity) -> bool:
    return _plain(value).as_int64() is not None


def add(left: AnyQuantity, right: AnyQuantity) -> QuantitySum:
    return QuantitySum(_plain(left) + _plain(right))


def add_int(left: AnyQuantity, right: int) -> QuantitySum:
    return QuantitySum(_plain(left) + Quantity.of(right))


def subtract(left: AnyQuantity, right: AnyQuantity) -> QuantitySum:
    return QuantitySum(_plain(left) - _plain(right))


def subtract_int(left: AnyQuantity, right: int) -> QuantitySum:
    return QuantitySum(_plain(left) - Quantity.of(right))


def to_semver(text: str, normalize: bool = False) -> Semver:
    try:
        return Semver.parse(text, normalize=normalize)
    except InvalidVersion as error:
        raise EvaluationError(str(error)) from None


def is_semver(text: str, normalize: bool = False) -> bool:
    try:
        Semver.parse(text, normalize=normalize)
    except InvalidVersion:
        return False
    return True


def semver_is_greater(left: Semver, right: Semver) -> bool:
    return left > right


def semver_is_less(left: Semver, right: Semver) -> bool:
    return left < right


def semver_compare(left: Semver, right: Semver) -> int:
    return left.compare(right)


def _number(value: int) -> int:
    """A part of a version as CEL's int; Kubernetes lets larger ones wrap around."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


OVERLOADS: Final[dict[str, Callable[..., Value]]] = {
    "string_to_quantity": to_quantity,
    "is_quantity_string": is_quantity,
    "quantity_sign": sign,
    "quantity_is_greater_than": quantity_is_greater,
    "quantity_is_less_than": quantity_is_less,
    "quantity_compare_to": quantity_compare,
    "quantity_get_float": approximate_float,
    "quantity_get_int": as_integer,
    "quantity_is_integer": is_integer,
    "quantity_add": add,
    "quantity_add_int": add_int,
    "quantity_sub": subtract,
    "quantity_sub_int": subtract_int,
    "string_to_semver": to_semver,
    "string_bool_to_semver": to_semver,
    "is_semver_string": is_semver,
    "is_semver_string_bool": is_semver,
    "semver_is_greater_than": semver_is_greater,
    "semver_is_less_than": semver_is_less,
    "semver_compare_to": semver_compare,
    "semver_major": lambda version: _number(version.major),
    "semver_minor": lambda version: _number(version.minor),
    "semver_patch": lambda version: _number(version.patch),
}
