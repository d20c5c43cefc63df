"""Requests, compiled: what a request, or one of its alternatives, asks of a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from dray.allocator.capacity import CapacityProblem, Need, find_need
from dray.allocator.selectors import CelError, Expression, derived_attribute, selector
from dray.allocator.shapes import PoolShape, Representative, View
from dray.allocator.statistics import Statistics
from dray.api.claims import (
    ALLOCATION_MODE_ALL,
    DeviceDerivedAttribute,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
)
from dray.api.classes import DeviceClass
from dray.api.features import FeatureGates
from dray.api.quantities import Quantity
from dray.api.taints import find_untolerated


class Verdict(IntEnum):
    """What becomes of a device when it is looked at for a request."""

    REFUSED = 0
    """It doesn't match."""
    UNUSABLE = 1
    """It matches, and yet can't be allocated: tainted, or of a kind that isn't enabled."""
    USABLE = 2
    FAILED = 3
    """A selector ends in an error: allocation stops."""
    INCALCULABLE = 4
    """Its capacity can't be calculated with: allocation stops, if the node can reach the device."""


class Failure(NamedTuple):
    """Why looking at a device ends in an error."""

    cause: Exception
    class_name: str = ""
    selector: int = 0
    """Its number, in the class or in the request."""


class Opinion(NamedTuple):
    """What a request thinks of a class of devices."""

    verdict: Verdict
    failure: Failure | None = None
    needs_optional_operations: bool = False
    """Usable only where the node can leave out node operations."""


class Column(NamedTuple):
    """The opinions on all devices of a pool, as masks."""

    match: int
    usable: int
    failed: int
    incalculable: int
    optional: int
    """Usable only where the node can leave out node operations."""


class Alternative:
    """One way to satisfy a request: the request itself, or one entry of `firstAvailable`."""

    def __init__(
        self,
        parent: str,
        name: str,
        spec: ExactDeviceRequest | DeviceSubRequest,
        device_class: DeviceClass,
        gates: FeatureGates,
    ) -> None:
        self.name: Final = name
        """As errors name it: a subrequest without its request."""
        self.parent: Final = parent
        """Name of the request that holds this subrequest; empty for a request without alternatives."""
        self.full_name: Final = f"{parent}/{name}" if parent else name
        self.device_class: Final = device_class
        self.takes_all: Final = spec.allocation_mode == ALLOCATION_MODE_ALL
        self.count: Final = max(0, spec.count)  # validation refuses less than one; if it was not asked, less is none
        self.admin: Final = bool(getattr(spec, "admin_access", None))
        self.tolerations: Final[tuple[DeviceToleration, ...]] = spec.tolerations
        self.capacity: Final[Mapping[str, Quantity]] = spec.capacity.requests if spec.capacity is not None else {}
        self.class_selectors: Final = _expressions(device_class.spec.selectors, gates)
        self.selectors: Final = _expressions(spec.selectors, gates)
        self.derived: Final = _derived(spec.derived_attributes, gates)
        self._gates: Final = gates
        self._opinions: Final[dict[View, dict[int, Opinion]]] = {}
        self._columns: Final[dict[PoolShape, Column]] = {}
        self._needs: Final[dict[tuple[View, int], Need | None]] = {}

    @property
    def attributes(self) -> frozenset[str] | None:
        """All attributes that the selectors read. Constraints add what their derived attributes read."""
        return all_attributes([*self.class_selectors, *self.selectors, *self.derived.values()])

    def opinion(self, view: View, device_class: int, statistics: Statistics) -> Opinion:
        known = self._opinions.setdefault(view, {})
        found = known.get(device_class)
        if found is None:
            found = known[device_class] = self._judge(view, device_class, statistics)
        return found

    def need(self, view: View, device_class: int) -> Need | None:
        """What an allocation consumes of a device of this class; None if the device lacks a requested capacity.

        Raises CapacityProblem.
        """
        key = (view, device_class)
        if key not in self._needs:
            capacity = view.representatives[device_class].device.capacity
            fractional = "DRAFractionalCapacityRange" in self._gates
            self._needs[key] = find_need(self.capacity, capacity, fractional=fractional)
        return self._needs[key]

    def column(self, view: View, shape: PoolShape, statistics: Statistics) -> Column:
        found = self._columns.get(shape)
        if found is None:
            masks = [0] * len(Verdict)
            optional = 0
            for position, device_class in enumerate(shape.classes):
                opinion = self.opinion(view, device_class, statistics)
                masks[opinion.verdict] |= 1 << position
                if opinion.needs_optional_operations:
                    optional |= 1 << position
            _, unusable, usable, failed, incalculable = masks
            found = self._columns[shape] = Column(unusable | usable, usable, failed, incalculable, optional)
        return found

    def _judge(self, view: View, device_class: int, statistics: Statistics) -> Opinion:
        """The checks that don't depend on what is in use, in Kubernetes' order."""
        representative = view.representatives[device_class]
        device = representative.device
        if device.binding_conditions and not (
            "DRADeviceBindingConditions" in self._gates and "DRAResourceClaimDeviceStatus" in self._gates
        ):
            return Opinion(Verdict.REFUSED)
        value = view.value(device_class)
        for owner, expressions in ((self.device_class.metadata.name, self.class_selectors), ("", self.selectors)):
            for index, expression in enumerate(expressions):
                try:
                    if not expression.matches(value, statistics):
                        return Opinion(Verdict.REFUSED)
                except CelError as error:
                    return Opinion(Verdict.FAILED, failure=Failure(error, owner, index))
        if "DRAConsumableCapacity" in self._gates:
            try:
                need = self.need(view, device_class)
            except CapacityProblem as problem:
                return Opinion(Verdict.INCALCULABLE, failure=Failure(problem))
            if need is None or not need.fits:
                return Opinion(Verdict.REFUSED)
        return self._usable(representative)

    def _usable(self, representative: Representative) -> Opinion:
        device = representative.device
        skips = representative.skips_node_operations
        if (
            (skips and "DRAOptionalNodeOperations" not in self._gates)
            or (device.consumes_counters and "DRAPartitionableDevices" not in self._gates)
            or ("DRADeviceTaints" in self._gates and self.is_kept_off(representative))
        ):
            return Opinion(Verdict.UNUSABLE)
        return Opinion(Verdict.USABLE, needs_optional_operations=skips)

    def is_kept_off(self, representative: Representative) -> bool:
        """Whether the device has a taint that the request doesn't tolerate."""
        return find_untolerated(representative.device.taints, self.tolerations) is not None


def all_attributes(expressions: Sequence[Expression]) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for expression in expressions:
        if expression.attributes is None:
            return None
        found |= expression.attributes
    return found


def _expressions(selectors: Sequence[DeviceSelector], gates: FeatureGates) -> tuple[Expression, ...]:
    return tuple(selector(each.cel.expression if each.cel else "", gates) for each in selectors)


def _derived(attributes: Sequence[DeviceDerivedAttribute], gates: FeatureGates) -> dict[str, Expression]:
    return {each.name: derived_attribute(each.expression, gates) for each in attributes}
