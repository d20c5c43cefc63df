"""Shapes: pools with the same devices, told apart only by what a program can see of them.

A `View` looks at devices through the attributes that some program reads. Devices that agree on those, and on everything
else that allocation looks at, are of one *class*, a small number. The classes of a pool's devices in their order are
its shape; shapes are interned, so that what is computed for one pool holds for all pools of its shape.
A program that never reads a UUID sees thousands of nodes as equal although every UUID differs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from dray.allocator.counters import Bucket, CounterLayout, Draw
from dray.allocator.pools import Pool, PoolStatus
from dray.allocator.selectors import DeviceValue, bind
from dray.allocator.state import PoolUse
from dray.api.devices import Device, DeviceAttribute
from dray.api.versions import InvalidVersion, Semver

Attributes = frozenset[str] | None
"""Fully qualified attribute names; None: any attribute may be read."""


MOST_VIEWS_OF_A_POOL: Final = 32


class Representative(NamedTuple):
    """A device that stands for its whole class."""

    driver: str
    device: Device
    skips_node_operations: bool


class PoolShape:
    """Interned by its view, so compared by identity."""

    __slots__ = ("classes", "counters", "draws", "size", "status")

    def __init__(
        self, status: PoolStatus, classes: tuple[int, ...], counters: CounterLayout, draws: dict[int, tuple[Draw, ...]]
    ) -> None:
        self.status: Final = status
        self.classes: Final = classes
        self.size: Final = len(classes)
        self.counters: Final = counters
        self.draws: Final = draws
        """By class, for devices that consume counters."""


class Occupancy(NamedTuple):
    """What is in use of a pool, in terms of its shape."""

    used: int = 0
    """Devices in use as a whole."""
    shared: int = 0
    """Devices with shares."""
    consumed: tuple[tuple[int, tuple[tuple[str, int], ...]], ...] = ()
    """Consumed capacity: (position, amounts)."""
    buckets: tuple[Bucket, ...] = ()


class View:
    """Classes and shapes as seen through one set of attributes."""

    def __init__(self, attributes: Attributes) -> None:
        self.attributes: Final = attributes
        self._token: Final = object()
        """Stands for the view in what pools remember, so that they don't keep it alive."""
        self.representatives: Final[list[Representative]] = []
        self._values: list[DeviceValue | None] = []
        self._classes: dict[Hashable, int] = {}
        self._shapes: dict[Hashable, PoolShape] = {}
        self._names: dict[tuple[str, Attributes], tuple[str, ...] | None] = {}
        self._projected: dict[tuple[int, Attributes], int] = {}
        self._projections: dict[Hashable, int] = {}

    def shape(self, pool: Pool) -> PoolShape:
        found = pool.shapes.get(self._token)
        if found is None:
            if len(pool.shapes) >= MOST_VIEWS_OF_A_POOL:
                pool.shapes.clear()
            found = pool.shapes[self._token] = self._interned(pool)
        return found

    def value(self, device_class: int) -> DeviceValue:
        """The device that stands for the class, as expressions see it."""
        value = self._values[device_class]
        if value is None:
            chosen = self.representatives[device_class]
            value = self._values[device_class] = bind(chosen.driver, chosen.device)
        return value

    def _interned(self, pool: Pool) -> PoolShape:
        classes: list[int] = []
        for slice_ in pool.slices:
            skips = bool(slice_.spec.skip_node_operations)
            driver = slice_.spec.driver
            names = self._keys(driver, self.attributes)
            for device in slice_.spec.devices:
                key = _class_key(driver, skips, device, names)
                known = self._classes.get(key)
                if known is None:
                    known = self._classes[key] = len(self.representatives)
                    self.representatives.append(Representative(driver, device, skips))
                    self._values.append(None)
                classes.append(known)
        counters = CounterLayout.of(pool.counter_sets)
        shape_key = (pool.status, tuple(classes), counters)
        shape = self._shapes.get(shape_key)
        if shape is None:
            draws = {
                each: counters.draws(self.representatives[each].device.consumes_counters)
                for each in dict.fromkeys(classes)
                if counters.sets and self.representatives[each].device.consumes_counters
            }
            shape = self._shapes[shape_key] = PoolShape(pool.status, tuple(classes), counters, draws)
        return shape

    def projected(self, device_class: int, attributes: Attributes) -> int:
        """A number for what an expression sees of the class that reads only these attributes of it."""
        found = self._projected.get((device_class, attributes))
        if found is None:
            chosen = self.representatives[device_class]
            names = self._keys(chosen.driver, attributes)
            key = (
                attributes,
                bool(chosen.device.allow_multiple_allocations),
                _seen(chosen.driver, chosen.device, names),
            )
            found = self._projections.setdefault(key, len(self._projections))
            self._projected[device_class, attributes] = found
        return found

    def _keys(self, driver: str, attributes: Attributes) -> tuple[str, ...] | None:
        """The keys to look up in a device's attributes: names of the driver's own domain may be written without it."""
        if attributes is None:
            return None
        found = self._names.get((driver, attributes))
        if found is None:
            own = [name.removeprefix(f"{driver}/") for name in attributes if name.startswith(f"{driver}/")]
            found = self._names[driver, attributes] = (*sorted(attributes), *sorted(own))
        return found

    @property
    def size(self) -> int:
        """How many classes of devices there are."""
        return len(self.representatives)


def _seen(driver: str, device: Device, names: tuple[str, ...] | None) -> Hashable:
    """What expressions can see of a device that read only the attributes of these names."""
    attributes = device.attributes
    return (
        driver,
        frozenset(attributes.items()) if names is None else tuple(map(attributes.get, names)),
        frozenset(device.capacity.items()) if device.capacity else None,
        _is_readable(device),
    )


def _is_readable(device: Device) -> bool:
    """An attribute that has no value, or no valid one, spoils its device for every expression, read or not."""
    for each in device.attributes.values():
        if each.string_value is None and each.int_value is None and each.bool_value is None and not _has_value(each):
            return False
    return True


def _has_value(attribute: DeviceAttribute) -> bool:
    """For an attribute that is a version or a list, if anything."""
    versions = (attribute.version_value,) if attribute.version_value is not None else attribute.version_values
    if versions is not None:
        return all(map(_is_version, versions))
    return attribute.string_values is not None or attribute.int_values is not None or attribute.bool_values is not None


@lru_cache(maxsize=4096)
def _is_version(text: str) -> bool:
    try:
        Semver.parse(text)
    except InvalidVersion:
        return False
    return True


def _class_key(driver: str, skips: bool, device: Device, names: tuple[str, ...] | None) -> Hashable:
    seen = _seen(driver, device, names)
    if not (
        device.consumes_counters or device.taints or device.binding_conditions or device.allow_multiple_allocations
    ):
        return (skips, seen)
    return (
        skips,
        seen,
        tuple(
            (each.counter_set, frozenset(each.counters.items()), frozenset(each.compatibility_groups))
            for each in device.consumes_counters
        ),
        frozenset((taint.key, taint.value, taint.effect) for taint in device.taints),
        bool(device.binding_conditions),
        bool(device.allow_multiple_allocations),
    )


NOT_OCCUPIED: Final = Occupancy()


def find_occupancy(pool: Pool, use: PoolUse) -> Occupancy:
    """What is in use of the pool's devices that the node can reach, and what is left of its counters."""
    if use.is_empty and not pool.counter_sets:
        return NOT_OCCUPIED
    positions = pool.positions
    used = _mask(positions, use.devices)
    if not (use.shares or use.capacity or pool.counter_sets):
        return Occupancy(used)
    consumed = tuple(
        sorted(
            (positions[name], tuple(sorted(amounts.items())))
            for name, amounts in use.capacity.items()
            if name in positions
        )
    )
    shared = _mask(positions, use.shares) | _mask(positions, use.capacity)
    buckets = CounterLayout.of(pool.counter_sets).buckets(pool, use) if pool.counter_sets else ()
    return Occupancy(used, shared, consumed, buckets)


def _mask(positions: dict[str, int], names: Iterable[str]) -> int:
    mask = 0
    for name in names:
        if (position := positions.get(name)) is not None:
            mask |= 1 << position
    return mask
