"""Devices as expressions see them: `device.driver`, `device.attributes["domain"].name`, `device.capacity[...]`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from dray.api.devices import Device, DeviceAttribute
from dray.api.versions import InvalidVersion, Semver
from dray.cel.errors import EvaluationError
from dray.cel.meter import CHARACTERS_PER_UNIT
from dray.cel.values import DefaultMap, Map, Value, register_map_type

MAX_DRIVER: Final = 63
MAX_TEXT: Final = 64
MAX_ITEMS: Final = 64
MAX_ENTRIES: Final = 32
"""What a valid device keeps to; the static bound on cost relies on it."""
MAX_WORK: Final = 768
"""So many units of work it takes at most to look at all of an ordinary device (see `meter`)."""
_MAX_LIST_WORK: Final = MAX_WORK - MAX_ENTRIES * (3 + MAX_TEXT // CHARACTERS_PER_UNIT)
"""What is left of that for lists: other values take no more than a text."""


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
    """Whether it is larger than Kubernetes admits, or than what is ordinary: exact evaluation takes care of it then."""

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
    list_work = 0
    attributes = DefaultMap()
    for name, attribute in device.attributes.items():
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
                found = _rare_value(attribute)
            except InvalidVersion as error:
                return _broken(f"attribute {name}: parse semantic version: {error}")
            except _NoValue:
                return _broken(f"attribute {name}: unsupported attribute value")
            list_work += _work_of(found)
        _put(attributes, driver, name, found)
    capacity = DefaultMap()
    for name, item in device.capacity.items():
        _put(capacity, driver, name, item.value)
    value.driver = driver
    value.attributes = attributes
    value.capacity = capacity
    value.allow_multiple_allocations = bool(device.allow_multiple_allocations)
    value.oversize = oversize or list_work > _MAX_LIST_WORK
    return value


def _put(entries: DefaultMap, driver: str, name: str, value: Value) -> None:
    domain, slash, identifier = name.partition("/")
    if not slash:
        domain, identifier = driver, name
    known = entries.get(domain)
    if known is None:
        entries[domain] = {identifier: value}
    else:
        known[identifier] = value  # type: ignore[index]


class _NoValue(Exception):
    """The attribute holds nothing that is known. Kubernetes evaluates no expression on such a device."""


def _rare_value(attribute: DeviceAttribute) -> Value:
    """A version or a list. Raises InvalidVersion and _NoValue."""
    if (version := attribute.version_value) is not None:
        return Semver.parse(version)
    if (texts := attribute.string_values) is not None:
        return list(texts)
    if (versions := attribute.version_values) is not None:
        return [Semver.parse(version) for version in versions]
    numbers = attribute.bool_values if attribute.int_values is None else attribute.int_values
    if numbers is None:
        raise _NoValue
    return list(numbers)


def _work_of(value: Value) -> int:
    """The units of work that a list takes; a list of invalid size takes more than there are."""
    if not isinstance(value, list):
        return 0
    texts = [len(item) for item in value if isinstance(item, str)]
    if len(value) > MAX_ITEMS or any(length > MAX_TEXT for length in texts):
        return MAX_WORK
    return 3 * len(value) + sum(texts) // CHARACTERS_PER_UNIT


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
