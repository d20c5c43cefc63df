"""Programs: claims compiled once, so that all claims of one template share the work.

A `ClaimProgram` belongs to a spec, and to the device classes it names as they are now. A `Program` is the sequence of
claims of one pod. Programs know nothing of names and namespaces: errors get those from the claim at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from dray.allocator.constraints import Constraint
from dray.allocator.errors import (
    AllocationError,
    ClassMissing,
    ConstraintFailed,
    FeatureDisabled,
    UnsupportedRequest,
)
from dray.allocator.requests import Alternative
from dray.allocator.selectors import constraint as compile_constraint
from dray.allocator.shapes import Attributes, View
from dray.api.claims import (
    ALLOCATION_MODE_ALL,
    ALLOCATION_MODE_EXACT_COUNT,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from dray.api.classes import DeviceClass
from dray.api.features import FeatureGates
from dray.api.meta import ObjectKey

if TYPE_CHECKING:
    from dray.allocator.tables import NodeShape, Table

Problem = Callable[[ObjectKey], AllocationError]
"""Makes the error for the claim at hand."""

FindClass = Callable[[str], DeviceClass | None]


class _Stop(Exception):
    """The claim can't be handled any further."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.problem = problem


class Request(NamedTuple):
    name: str
    alternatives: Sequence[Alternative]


class ClaimProgram:
    """A compiled claim spec. If `request_problem` is set, `requests` holds what comes before it."""

    def __init__(self, spec: ResourceClaimSpec, find_class: FindClass, gates: FeatureGates) -> None:
        self.spec: Final = spec
        self.classes: Final[dict[str, DeviceClass | None]] = {}
        """The classes that it was compiled with; None: there was none of that name."""
        self.request_problem: Problem | None = None
        self.constraint_problem: Problem | None = None
        self._find_class: Final = find_class
        self._gates: Final = gates
        self.requests: Final[list[Request]] = []
        self.constraints: Final[list[Constraint]] = []
        try:
            for request in spec.devices.requests:
                self._compile_request(request)
        except _Stop as stop:
            self.request_problem = stop.problem
        try:
            for index, constraint in enumerate(spec.devices.constraints):
                self.constraints.append(self._compile_constraint(index, constraint))
        except _Stop as stop:
            self.constraint_problem = stop.problem

    def is_current(self, find_class: FindClass) -> bool:
        """Whether the classes are still those that it was compiled with."""
        return all(find_class(name) is known for name, known in self.classes.items())

    @property
    def attributes(self) -> Attributes:
        """All attributes that decide anything."""
        found: frozenset[str] = frozenset()
        for read in (
            *(alternative.attributes for request in self.requests for alternative in request.alternatives),
            *(constraint.attributes for constraint in self.constraints),
        ):
            if read is None:
                return None
            found |= read
        return found

    def _compile_request(self, request: DeviceRequest) -> None:
        self._check_gates(request)
        if not request.first_available and request.exactly is None:
            raise _Stop(
                lambda claim: UnsupportedRequest(claim, request.name, "neither exactly nor firstAvailable is set")
            )
        made: list[Alternative] = []
        self.requests.append(Request(request.name, made))
        for sub in request.first_available:
            made.append(self._compile_alternative(request.name, sub.name, sub))
        if request.exactly is not None and not request.first_available:
            made.append(self._compile_alternative("", request.name, request.exactly))

    def _check_gates(self, request: DeviceRequest) -> None:
        gates = self._gates
        if request.first_available and "DRAPrioritizedList" not in gates:
            raise _Stop(lambda claim: FeatureDisabled(claim, request.name, "has subrequests", "DRAPrioritizedList"))
        if "DRAConsumableCapacity" not in gates:
            for name, spec in _specs(request):
                if spec.capacity is not None:
                    raise _disabled(name, "has capacity requests", "DRAConsumableCapacity")

    def _compile_alternative(self, parent: str, name: str, spec: ExactDeviceRequest | DeviceSubRequest) -> Alternative:
        if spec.derived_attributes and "DRADerivedAttributes" not in self._gates:
            raise _disabled(name, "has derived attributes", "DRADerivedAttributes")
        for index, selector in enumerate(spec.selectors):
            if selector.cel is None:
                raise _unsupported(name, f"selector #{index}: CEL expression empty (unsupported selector type?)")
        if (
            isinstance(spec, ExactDeviceRequest)
            and spec.admin_access is not None
            and "DRAAdminAccess" not in self._gates
        ):
            raise _disabled(name, "admin access is requested", "DRAAdminAccess")
        class_name = spec.device_class_name
        if not class_name:
            raise _unsupported(name, "missing device class name (unsupported request type?)")
        device_class = self.classes[class_name] = self._find_class(class_name)
        if device_class is None:
            raise _Stop(lambda claim: ClassMissing(claim, name, class_name))
        if spec.allocation_mode not in (ALLOCATION_MODE_EXACT_COUNT, ALLOCATION_MODE_ALL):
            raise _unsupported(name, f"unsupported count mode {spec.allocation_mode}")
        return Alternative(parent, name, spec, device_class, self._gates)

    def _compile_constraint(self, index: int, constraint: DeviceConstraint) -> Constraint:
        lists = "DRAListTypeAttributes" in self._gates
        if constraint.match_attribute is not None:
            return Constraint(index, "match", constraint.requests, attribute=constraint.match_attribute, lists=lists)
        if constraint.distinct_attribute is not None:
            attribute = constraint.distinct_attribute
            return Constraint(index, "distinct", constraint.requests, attribute=attribute, lists=lists)
        if constraint.cel is None:
            raise _unsupported("", f"constraint #{index}: empty constraint (unsupported constraint type?)")
        if "DRACELDeviceConstraint" not in self._gates:
            raise _disabled("", f"constraint #{index}: has a CEL expression", "DRACELDeviceConstraint")
        expression = compile_constraint(constraint.cel.expression, self._gates)
        if (error := expression.error) is not None:
            raise _Stop(lambda claim: ConstraintFailed(claim, index, (), error))
        return Constraint(index, "cel", constraint.requests, expression=expression)


class Program:
    """The claims of one pod, in the order in which they are allocated."""

    def __init__(self, claims: tuple[ClaimProgram, ...], gates: FeatureGates) -> None:
        self.claims: Final = claims
        self.counts_capacity: Final = "DRAConsumableCapacity" in gates
        self.view: View | None = None
        """Set by the compiler."""
        self.tables: Final[dict[NodeShape, Table]] = {}

    @property
    def attributes(self) -> Attributes:
        found: frozenset[str] = frozenset()
        for claim in self.claims:
            read = claim.attributes
            if read is None:
                return None
            found |= read
        return found


def _specs(request: DeviceRequest) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
    if request.exactly is not None:
        yield request.name, request.exactly
    for sub in request.first_available:
        yield sub.name, sub


def _disabled(request: str, use: str, gate: str) -> _Stop:
    return _Stop(lambda claim: FeatureDisabled(claim, request, use, gate))


def _unsupported(request: str, problem: str) -> _Stop:
    return _Stop(lambda claim: UnsupportedRequest(claim, request, problem))
