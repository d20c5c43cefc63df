"""The spec of a ResourceClaim: requests, constraints, configuration. Handwritten rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dray.api.claims import (
    ALLOCATION_MODE_ALL,
    ALLOCATION_MODE_EXACT_COUNT,
    DeviceClaim,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from dray.api.features import FeatureGates
from dray.validation.configuration import check_configuration
from dray.validation.expressions import (
    MAX_DERIVED_COST,
    check_constraint,
    check_derived_attribute,
    check_selector,
)
from dray.validation.fields import Errors, Path, forbidden, invalid, mark_covered, not_supported, required
from dray.validation.lists import check_unique, is_too_many
from dray.validation.names import check_fully_qualified, check_label, check_subdomain
from dray.validation.tolerations import check_tolerations

MAX_REQUESTS: Final = 32
MAX_SUBREQUESTS: Final = 8
MAX_SELECTORS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_CONFIGS: Final = 32
ABSURDLY_MANY: Final = 1000
ALLOCATION_MODES: Final = (ALLOCATION_MODE_ALL, ALLOCATION_MODE_EXACT_COUNT)

RequestNames = Mapping[str, frozenset[str]]
"""The names of subrequests by the name of their request."""

NOT_A_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_MAX_UINT64: Final = 2**64 - 1
_ONE_OF_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_OF_CONSTRAINT: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required'
_UNUSED_ATTRIBUTE: Final = (
    "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request"
)


def request_names(claim: DeviceClaim) -> RequestNames:
    return {
        request.name: frozenset(subrequest.name for subrequest in request.first_available) for request in claim.requests
    }


def check_device_claim(claim: DeviceClaim, path: Path, errors: Errors, gates: FeatureGates) -> None:
    _ClaimCheck(claim, errors, gates).run(path)


def check_request_reference(name: str, path: Path, errors: Errors, names: RequestNames) -> None:
    """`request` or `request/subrequest`, which must exist."""
    request, *rest = name.split("/")
    if len(rest) > 1:
        errors.append(invalid(path, name, NOT_A_REQUEST))
        return
    for part in (request, *rest):
        check_label(part, path, errors)
    if request not in names or (rest and rest[0] not in names[request]):
        errors.append(invalid(path, name, NOT_A_REQUEST))


def check_request_references(references: tuple[str, ...], path: Path, errors: Errors, names: RequestNames) -> None:
    if is_too_many(references, MAX_REQUESTS, path, errors, covered=True):
        return
    for position, name in enumerate(references):
        check_request_reference(name, path.index(position), errors, names)
    check_unique(references, path, errors, covered=True)


def check_selectors(
    selectors: tuple[DeviceSelector, ...], path: Path, errors: Errors, gates: FeatureGates, *, stored: bool = False
) -> None:
    if is_too_many(selectors, MAX_SELECTORS, path, errors, covered=True):
        return
    for position, selector in enumerate(selectors):
        if selector.cel is None:
            errors.append(required(path.index(position).child("cel")))
        elif not stored:
            check_selector(selector.cel.expression, path.index(position).child("cel", "expression"), errors, gates)


class _ClaimCheck:
    """One pass over a claim. What requests and constraints need to know of each other is gathered first."""

    def __init__(self, claim: DeviceClaim, errors: Errors, gates: FeatureGates) -> None:
        self._claim = claim
        self._errors = errors
        self._gates = gates
        self._names = request_names(claim)
        self._constrained = _constrained_attributes(claim.constraints)
        self._derived_cost = 0

    def run(self, path: Path) -> None:
        claim, errors = self._claim, self._errors
        place = path.child("requests")
        if not is_too_many(claim.requests, MAX_REQUESTS, place, errors, covered=True):
            for position, request in enumerate(claim.requests):
                self._check_request(request, place.index(position))
            check_unique((request.name for request in claim.requests), place, errors, covered=True)
        place = path.child("constraints")
        if not is_too_many(claim.constraints, MAX_CONSTRAINTS, place, errors, covered=True):
            for position, constraint in enumerate(claim.constraints):
                self._check_constraint(constraint, place.index(position))
        place = path.child("config")
        if not is_too_many(claim.config, MAX_CONFIGS, place, errors, covered=True):
            for position, config in enumerate(claim.config):
                check_request_references(config.requests, place.index(position).child("requests"), errors, self._names)
                check_configuration(config.opaque, place.index(position), errors)
        if self._derived_cost > MAX_DERIVED_COST:
            detail = "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"
            errors.append(forbidden(path, detail))

    def _check_request(self, request: DeviceRequest, path: Path) -> None:
        errors = self._errors
        check_label(request.name, path.child("name"), errors)
        if request.exactly is None and not request.first_available:
            errors.append(required(path, _ONE_OF_REQUEST))
        elif request.exactly is not None and request.first_available:
            errors.append(invalid(path, None, f"{_ONE_OF_REQUEST}, but multiple fields are set"))
        elif request.exactly is not None:
            place = path.child("exactly")
            _check_class_name(request.exactly.device_class_name, place.child("deviceClassName"), errors, covered=False)
            self._check_details(request.exactly, place, request.name)
        else:
            place = path.child("firstAvailable")
            if is_too_many(request.first_available, MAX_SUBREQUESTS, place, errors, covered=True):
                return
            for position, subrequest in enumerate(request.first_available):
                self._check_subrequest(subrequest, place.index(position), request.name)
            check_unique((subrequest.name for subrequest in request.first_available), place, errors, covered=True)

    def _check_subrequest(self, subrequest: DeviceSubRequest, path: Path, parent: str) -> None:
        check_label(subrequest.name, path.child("name"), self._errors)
        _check_class_name(subrequest.device_class_name, path.child("deviceClassName"), self._errors, covered=True)
        self._check_details(subrequest, path, f"{parent}/{subrequest.name}")

    def _check_details(self, request: ExactDeviceRequest | DeviceSubRequest, path: Path, name: str) -> None:
        """What requests and subrequests have in common."""
        errors = self._errors
        check_selectors(request.selectors, path.child("selectors"), errors, self._gates)
        if request.derived_attributes:
            self._check_derived(request.derived_attributes, path.child("derivedAttributes"), name)
        match request.allocation_mode:
            case "All":
                if request.count != 0:
                    detail = "must not be specified when allocationMode is 'All'"
                    errors.append(invalid(path.child("count"), request.count, detail))
            case "ExactCount":
                if request.count <= 0:
                    errors.append(invalid(path.child("count"), request.count, "must be greater than zero"))
            case mode:
                errors += mark_covered([not_supported(path.child("allocationMode"), mode, ALLOCATION_MODES)])
        check_tolerations(request.tolerations, path.child("tolerations"), errors)

    def _check_derived(self, attributes: tuple[DeviceDerivedAttribute, ...], path: Path, request: str) -> None:
        if len(attributes) > ABSURDLY_MANY:
            return  # The declarative rule refuses more than 32; compiling all of these would only take time.
        for position, attribute in enumerate(attributes):
            place = path.index(position)
            if attribute.name and not self._is_constrained(attribute.name, request):
                self._errors.append(invalid(place.child("name"), attribute.name, _UNUSED_ATTRIBUTE))
            if attribute.expression:
                cost = check_derived_attribute(
                    attribute.expression, place.child("expression"), self._errors, self._gates
                )
                # Kubernetes adds them up in 64 bits without looking for an overflow.
                self._derived_cost = (self._derived_cost + cost) & _MAX_UINT64
        check_unique((attribute.name for attribute in attributes), path, self._errors)

    def _is_constrained(self, attribute: str, request: str) -> bool:
        parent = request.partition("/")[0]
        return any(attribute in self._constrained.get(target, ()) for target in ("", request, parent))

    def _check_constraint(self, constraint: DeviceConstraint, path: Path) -> None:
        errors = self._errors
        check_request_references(constraint.requests, path.child("requests"), errors, self._names)
        if constraint.cel is not None:
            if constraint.match_attribute is not None or constraint.distinct_attribute is not None:
                detail = 'exactly one of "matchAttribute", "distinctAttribute" or "cel" is required'
                errors.append(invalid(path, None, f"{detail}, but multiple fields are set"))
            check_constraint(constraint.cel.expression, path.child("cel", "expression"), errors, self._gates)
        elif constraint.match_attribute is not None:
            check_fully_qualified(constraint.match_attribute, path.child("matchAttribute"), errors)
        elif constraint.distinct_attribute is not None:
            check_fully_qualified(constraint.distinct_attribute, path.child("distinctAttribute"), errors)
        elif "DRAConsumableCapacity" in self._gates:
            # The text is Kubernetes', although no field is set here.
            errors.append(required(path, f"{_ONE_OF_CONSTRAINT}, but multiple fields are set"))
        else:
            errors.append(required(path.child("matchAttribute")))


def _constrained_attributes(constraints: tuple[DeviceConstraint, ...]) -> dict[str, set[str]]:
    """Attributes of match and distinct constraints by request; those for all requests are at the empty name."""
    found: dict[str, set[str]] = {}
    for constraint in constraints:
        attribute = constraint.match_attribute
        if attribute is None:
            attribute = constraint.distinct_attribute
        if attribute is not None:
            for request in constraint.requests or ("",):
                found.setdefault(request, set()).add(attribute)
    return found


def _check_class_name(name: str, path: Path, errors: Errors, *, covered: bool) -> None:
    if name:
        check_subdomain(name, path, errors, covered=covered)
    else:
        error = required(path)
        errors += mark_covered([error]) if covered else [error]
