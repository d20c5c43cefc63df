"""Devices as expressions see them: `device.driver`, `device.attributes["domain"].name`, `device.capacity[...]`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Final, cast

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
    """One device, ready to be looked at. Equal if an expression can't tell the difference.

    What only few expressions ask for is computed when it is first asked for.
    """

    __slots__ = (
        "_content",
        "_entries",
        "_fingerprint",
        "_source",
        "allow_multiple_allocations",
        "attributes",
        "capacity",
        "driver",
        "error",
        "oversize",
    )

    driver: str
    attributes: Map
    """By domain, then by name. To expressions it is a `DefaultMap`."""
    capacity: Map
    allow_multiple_allocations: bool
    error: EvaluationError | None
    """Why the device has no value (an unreadable version): it has no attributes and capacities either then."""
    oversize: bool
    """Whether it is larger than Kubernetes admits, or than what is ordinary: exact evaluation takes care of it then."""
    _source: Device
    _entries: Map
    _content: Hashable
    _fingerprint: int | None

    def __getattr__(self, name: str) -> object:
        compute = _COMPUTED.get(name)
        if compute is None:
            raise AttributeError(name)
        value = compute(self)
        setattr(self, name, value)
        return value

    def as_map(self) -> Map:
        """The device as the CEL map that it is at run time."""
        return self._entries

    @property
    def content(self) -> Hashable:
        """Everything that an expression can see."""
        return self._content

    @property
    def fingerprint(self) -> int | None:
        """The hash of the content, if Python compares that content as CEL does: texts, numbers, bools, quantities."""
        return self._fingerprint

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceValue):
            return NotImplemented
        if self.error is not None or other.error is not None:
            return self is other
        return self._content == other._content

    def __hash__(self) -> int:
        return id(self) if self.error is not None else hash(self._content)

    def __repr__(self) -> str:
        if self.error is not None:
            return f"DeviceValue(error={str(self.error)!r})"
        return f"DeviceValue({self.driver!r}, {dict(self.attributes)!r}, {dict(self.capacity)!r})"


def _entries_of(value: DeviceValue) -> Map:
    return {
        "driver": value.driver,
        "attributes": DefaultMap(value.attributes),
        "capacity": DefaultMap(value.capacity),
        "allowMultipleAllocations": value.allow_multiple_allocations,
    }


def _content_of(value: DeviceValue) -> Hashable:
    maps = _frozen(value.attributes), _frozen(value.capacity)
    return value.driver, value.allow_multiple_allocations, *maps


def _fingerprint_of(value: DeviceValue) -> int | None:
    if value.error is not None:
        return None
    for domain in value.attributes.values():
        if not all(type(found) in _PLAIN for found in cast("Map", domain).values()):
            return None
    return hash(value.content)


def _is_oversize(value: DeviceValue) -> bool:
    device = value._source
    if len(value.driver) > MAX_DRIVER or len(device.attributes) + len(device.capacity) > MAX_ENTRIES:
        return True
    list_work = 0
    for domain in value.attributes.values():
        for found in cast("Map", domain).values():
            if isinstance(found, str) and len(found) > MAX_TEXT:
                return True
            list_work += _work_of(found)
    return list_work > _MAX_LIST_WORK


_PLAIN: Final = frozenset((str, int, bool))

_COMPUTED: Final[dict[str, Callable[[DeviceValue], object]]] = {
    "_content": _content_of,
    "_entries": _entries_of,
    "_fingerprint": _fingerprint_of,
    "allow_multiple_allocations": lambda value: value._source.allow_multiple_allocations is True,
    "error": lambda value: None,
    "oversize": _is_oversize,
}


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
    attributes: Map = {}
    capacity: Map = {}
    own: Map = {}
    for name, attribute in device.attributes.items():
        found: Value = attribute.string_value
        if found is None:
            found = attribute.int_value
            if found is None:
                found = attribute.bool_value
                if found is None:
                    try:
                        text = attribute.version_value
                        found = _version(text) if text is not None else _list_of(attribute)
                    except InvalidVersion as error:
                        return _broken(f"attribute {name}: parse semantic version: {error}")
                    except _NoValue:
                        return _broken(f"attribute {name}: unsupported attribute value")
        if "/" in name:
            _put(attributes, name, found)
        else:
            own[name] = found
    if own:
        attributes[driver] = own if driver not in attributes else {**cast("Map", attributes[driver]), **own}
    own = {}
    for name, item in device.capacity.items():
        if "/" in name:
            _put(capacity, name, item.value)
        else:
            own[name] = item.value
    if own:
        capacity[driver] = own if driver not in capacity else {**cast("Map", capacity[driver]), **own}
    value = DeviceValue()
    value.driver = driver
    value.attributes = attributes
    value.capacity = capacity
    value._source = device
    return value


def _put(entries: Map, name: str, value: Value) -> None:
    domain, identifier = _split(name)
    known: Map | None = entries.get(domain)  # type: ignore[assignment]
    if known is None:
        entries[domain] = {identifier: value}
    else:
        known[identifier] = value


@lru_cache(maxsize=1 << 15)
def _split(name: str) -> tuple[str, str]:
    """Domain and rest of a qualified name. The same names come again with every device."""
    domain, _, identifier = name.partition("/")
    return domain, identifier


_version: Final = lru_cache(maxsize=1 << 12)(Semver.parse)


class _NoValue(Exception):
    """The attribute holds nothing that is known. Kubernetes evaluates no expression on such a device."""


def _list_of(attribute: DeviceAttribute) -> list[Value]:
    """Raises InvalidVersion and _NoValue."""
    if (texts := attribute.string_values) is not None:
        return list(texts)
    if (versions := attribute.version_values) is not None:
        return [_version(version) for version in versions]
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
