"""Constraints over the devices of a claim, turned into masks.

Attribute constraints see each device as a set of *elements*: a scalar is a set of one, a list a set of several. Devices
match while all their sets have an element in common; they are distinct while no two sets have one. In both cases
the devices that may still join depend only on a small integer, the constraint's *state*, and the rest is `&`.

    matchAttribute      state = the elements that all devices so far have in common; 0: no device yet
    distinctAttribute   state = the elements that some device has, shifted by one; bit 0: there is a device

Without the gate DRAListTypeAttributes, lists and unknown types can't be compared: such a device can only be the first.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Literal, NamedTuple

from dray.allocator.requests import Alternative
from dray.allocator.selectors import CelError, Expression
from dray.allocator.shapes import PoolShape, View
from dray.api.devices import Device, DeviceAttribute

Element = Hashable
ConstraintKind = Literal["match", "distinct", "cel"]


class Elements(NamedTuple):
    """What a constraint sees of a class of devices."""

    values: tuple[Element, ...] = ()
    comparable: bool = True
    """False: can only be the first device."""
    error: CelError | None = None


MISSING: Final = Elements()


class Constraint:
    """One constraint of a claim, compiled."""

    def __init__(
        self,
        index: int,
        kind: ConstraintKind,
        requests: tuple[str, ...],
        *,
        attribute: str = "",
        expression: Expression | None = None,
        lists: bool = True,
    ) -> None:
        self.index: Final = index
        self.kind: Final[ConstraintKind] = kind
        self.requests: Final = requests
        self.attribute: Final = attribute
        self.expression: Final = expression
        self._lists: Final = lists
        self._known: Final[dict[tuple[View, Expression | None, int], Elements]] = {}
        self.remembered: Final[dict[View, dict[tuple[int, ...], bool | CelError]]] = {}
        """Answers of a CEL expression, by the classes of the devices in the set."""

    def covers(self, alternative: Alternative) -> bool:
        """Naming a request covers all its subrequests; naming none covers all requests."""
        if not self.requests:
            return True
        return (alternative.parent or alternative.name) in self.requests or alternative.full_name in self.requests

    @property
    def attributes(self) -> frozenset[str] | None:
        return self.expression.attributes if self.expression is not None else frozenset((self.attribute,))

    def elements(self, alternative: Alternative, view: View, device_class: int) -> Elements:
        derived = alternative.derived.get(self.attribute)
        key = (view, derived, device_class)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._elements(derived, view, device_class)
        return found

    def _elements(self, derived: Expression | None, view: View, device_class: int) -> Elements:
        if derived is not None:
            try:
                attribute: DeviceAttribute | None = derived.attribute(view.value(device_class))
            except CelError as error:
                return Elements(error=error)
        else:
            representative = view.representatives[device_class]
            attribute = find_attribute(representative.driver, representative.device, self.attribute)
        if attribute is None:
            return MISSING
        values = attribute_elements(attribute)
        if self._lists:
            return Elements(values)
        comparable = len(values) == 1 and not is_list(attribute)
        return Elements(values if comparable else (None,), comparable)


def find_attribute(driver: str, device: Device, name: str) -> DeviceAttribute | None:
    """The attribute of that fully qualified name. Names of the driver's own domain may be written without it."""
    found = device.attributes.get(name)
    if found is None:
        domain, separator, identifier = name.partition("/")
        if separator and domain == driver:
            found = device.attributes.get(identifier)
    return found


def is_list(attribute: DeviceAttribute) -> bool:
    return bool(attribute.int_values or attribute.bool_values or attribute.string_values or attribute.version_values)


def attribute_elements(attribute: DeviceAttribute) -> tuple[Element, ...]:
    """The value as a set: elements of different types are never equal; empty for an unknown type."""
    lists = (
        ("int", attribute.int_values),
        ("bool", attribute.bool_values),
        ("string", attribute.string_values),
        ("version", attribute.version_values),
    )
    for kind, values in lists:
        if values:
            return tuple(dict.fromkeys((kind, value) for value in values))
    scalars = (
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("string", attribute.string_value),
        ("version", attribute.version_value),
    )
    for kind, value in scalars:
        if value is not None:
            return ((kind, value),)
    return ()


class AttributeColumn:
    """What an attribute constraint makes of the devices of a node, for one alternative."""

    def __init__(self, kind: ConstraintKind) -> None:
        self.matches: Final = kind == "match"
        self.has: int = 0
        """Devices that have the attribute."""
        self.failed: int = 0
        """Devices whose derived attribute can't be evaluated."""
        self.first_only: int = 0
        self.masks: Final[dict[int, int]] = {}
        """By element: the devices that have it."""
        self.bits: Final[list[int]] = []
        """By device: its elements."""
        self._allowed: Final[dict[int, int]] = {}

    def allowed(self, state: int) -> int:
        """The devices that may join."""
        found = self._allowed.get(state)
        if found is None:
            found = self._allowed[state] = self._find_allowed(state)
        return found

    def _find_allowed(self, state: int) -> int:
        if not state:
            return self.has
        with_elements = 0
        for element in iter_bits(state if self.matches else state >> 1):
            with_elements |= self.masks.get(element, 0)
        if self.matches:
            return with_elements & ~self.first_only
        return self.has & ~(with_elements | self.first_only)

    def after(self, state: int, position: int) -> int:
        """The state once the device has joined, which must be allowed."""
        bits = self.bits[position]
        if self.matches:
            return state & bits if state else bits
        return state | bits << 1 | 1


class ElementNumbers:
    """Numbers the elements of one constraint on one node, so that alternatives agree on them."""

    def __init__(self) -> None:
        self._numbers: Final[dict[Element, int]] = {}

    def fill(
        self, column: AttributeColumn, constraint: Constraint, alternative: Alternative, view: View, shape: PoolShape
    ) -> None:
        """Append the devices of a pool to the column."""
        known: dict[int, int] = {}
        for device_class in shape.classes:
            position = 1 << len(column.bits)
            elements = constraint.elements(alternative, view, device_class)
            bits = known.get(device_class)
            if bits is None:
                bits = 0
                for value in elements.values:
                    bits |= 1 << self._numbers.setdefault(value, len(self._numbers))
                known[device_class] = bits
            column.bits.append(bits)
            if elements.error is not None:
                column.failed |= position
            elif bits:
                column.has |= position
                if not elements.comparable:
                    column.first_only |= position
                for element in iter_bits(bits):
                    column.masks[element] = column.masks.get(element, 0) | position


def iter_bits(mask: int) -> list[int]:
    """Positions of the bits that are set, lowest first."""
    found: list[int] = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
