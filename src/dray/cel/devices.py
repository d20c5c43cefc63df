"""Devices as expressions see them: `device.driver`, `device.attributes["domain"].name`, `device.capacity[...]`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from dray.api.devices import Device, DeviceAttribute
from dray.api.versions import InvalidVersion, Semver
from dray.cel.errors import EvaluationError
from dray.cel.values import DefaultMap, Map, Value, register_map_type

MAX_DRIVER: Final = 63
MAX_TEXT: Final = 64
MAX_ITEMS: Final = 64
MAX_ENTRIES: Final = 32
"""What a valid device keeps to; the static bound on cost relies on it."""


class DeviceValue:
    """One device, ready to be looked at. Equal if an expression can't tell the difference."""

    __slots__ = (
        "_content",
        "_entries",
        "allow_multiple_allocations",
        "attributes",
        "capacity",
        "driver",
        "error",
        "oversize",
    )

    driver: str
    attributes: Map
    capacity: Map
    allow_multiple_allocations: bool
    error: EvaluationError | None
    """Why the device has no value (an unreadable version): the other fields are unset then."""
    oversize: bool
    """Whether something in it is larger than Kubernetes admits."""

    def as_map(self) -> Map:
        """The device as the CEL map that it is at run time."""
        try:
            return self._entries
        except AttributeError:
            self._entries: Map = {
                "driver": self.driver,
                "attributes": self.attributes,
                "capacity": self.capacity,
                "allowMultipleAllocations": self.allow_multiple_allocations,
            }
            return self._entries

    @property
    def content(self) -> Hashable:
        """Everything that an expression can see."""
        try:
            return self._content
        except AttributeError:
            self._content: Hashable = (
                self.driver,
                self.allow_multiple_allocations,
                _frozen(self.attributes),
                _frozen(self.capacity),
            )
            return self._content

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceValue):
            return NotImplemented
        if self.error is not None or other.error is not None:
            return self is other
        return self.content == other.content

    def __hash__(self) -> int:
        return id(self) if self.error is not None else hash(self.content)

    def __repr__(self) -> str:
        if self.error is not None:
            return f"DeviceValue(error={str(self.error)!r})"
        return f"DeviceValue({self.driver!r}, {dict(self.attributes)!r}, {dict(self.capacity)!r})"


register_map_type(DeviceValue)


def _frozen(value: Value) -> Hashable:
    """A hashable form; the class keeps 1 and true apart."""
    if isinstance(value, dict):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return type(value), value


def bind_device(driver: str, device: Device) -> DeviceValue:
    """The value of `device` in selectors. Names without a domain get the driver's name as domain."""
    value = DeviceValue()
    value.error = None
    oversize = len(driver) > MAX_DRIVER or len(device.attributes) + len(device.capacity) > MAX_ENTRIES
    attributes = DefaultMap()
    for name, attribute in device.attributes.items():
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        found: Value
        if (text := attribute.string_value) is not None:
            found = text
            oversize = oversize or len(text) > MAX_TEXT
        elif (number := attribute.int_value) is not None:
            found = number
        elif (flag := attribute.bool_value) is not None:
            found = flag
        else:
            try:
                found, large = _rare_value(attribute)
            except InvalidVersion as error:
                return _broken(f"attribute {name}: parse semantic version: {error}")
            except _NoValue:
                return _broken(f"attribute {name}: unsupported attribute value")
            oversize = oversize or large
        domain_entries = attributes.get(domain)
        if domain_entries is None:
            attributes[domain] = {identifier: found}
        else:
            domain_entries[identifier] = found  # type: ignore[index]
    capacity = DefaultMap()
    for name, item in device.capacity.items():
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        domain_entries = capacity.get(domain)
        if domain_entries is None:
            capacity[domain] = {identifier: item.value}
        else:
            domain_entries[identifier] = item.value  # type: ignore[index]
    value.driver = driver
    value.attributes = attributes
    value.capacity = capacity
    value.allow_multiple_allocations = bool(device.allow_multiple_allocations)
    value.oversize = oversize
    return value


class _NoValue(Exception):
    """The attribute holds nothing, or nothing that is known."""


def _rare_value(attribute: DeviceAttribute) -> tuple[Value, bool]:
    """A version or a list, and whether it is larger than it should be. Raises InvalidVersion and _NoValue."""
    if (version := attribute.version_value) is not None:
        return Semver.parse(version), len(version) > MAX_TEXT
    items: list[Value]
    if (texts := attribute.string_values) is not None:
        items = list(texts)
        return items, len(items) > MAX_ITEMS or any(len(text) > MAX_TEXT for text in texts)
    if (versions := attribute.version_values) is not None:
        items = [Semver.parse(version) for version in versions]
        return items, len(items) > MAX_ITEMS or any(len(version) > MAX_TEXT for version in versions)
    numbers = attribute.bool_values if attribute.int_values is None else attribute.int_values
    if numbers is None:
        raise _NoValue
    items = list(numbers)
    return items, len(items) > MAX_ITEMS


def _broken(message: str) -> DeviceValue:
    value = DeviceValue()
    value.error = EvaluationError(message)
    value.oversize = True
    return value


_SCALARS: Final[dict[type, tuple[str, Callable[..., DeviceAttribute]]]] = {
    bool: ("bool", lambda value: DeviceAttribute(bool_value=value)),
    int: ("int", lambda value: DeviceAttribute(int_value=value)),
    str: ("string", lambda value: DeviceAttribute(string_value=value)),
    Semver: ("semver", lambda value: DeviceAttribute(version_value=str(value))),
}
_LISTS: Final[dict[type, Callable[[list[Value]], DeviceAttribute]]] = {
    bool: lambda items: DeviceAttribute(bool_values=tuple(items)),  # type: ignore[arg-type]
    int: lambda items: DeviceAttribute(int_values=tuple(items)),  # type: ignore[arg-type]
    str: lambda items: DeviceAttribute(string_values=tuple(items)),  # type: ignore[arg-type]
    Semver: lambda items: DeviceAttribute(version_values=tuple(map(str, items))),
}


def to_attribute(value: Value) -> DeviceAttribute:
    """The result of an expression as an attribute. Raises EvaluationError."""
    if (scalar := _SCALARS.get(type(value))) is not None:
        return scalar[1](value)
    if not isinstance(value, list):
        raise EvaluationError(f"unsupported CEL return type: {type(value).__name__}")
    if not value:
        raise EvaluationError("an empty list can't be an attribute: its type is unknown")
    kind = type(value[0])
    if kind not in _LISTS:
        raise EvaluationError(f"unsupported CEL return type: list of {kind.__name__}")
    for index, item in enumerate(value):
        if type(item) is not kind:
            raise EvaluationError(
                f"expected list element at index {index} to be {_SCALARS[kind][0]}, got {type(item).__name__}"
            )
    return _LISTS[kind](value)
