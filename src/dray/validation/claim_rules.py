"""Declarative rules for claims and templates: the spec.

`old` is the stored counterpart, or None if there is none. What equals it is not looked at again.
"""

from __future__ import annotations

from dray.api.claims import (
    DeviceClaim,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
)
from dray.validation.claims import (
    ALLOCATION_MODES,
    MAX_CONFIGS,
    MAX_CONSTRAINTS,
    MAX_REQUESTS,
    MAX_SELECTORS,
    MAX_SUBREQUESTS,
)
from dray.validation.declarative import beta, first_with_key, limit, one_of, require, unique
from dray.validation.fields import Errors, FieldError, Path, too_long
from dray.validation.names import (
    fully_qualified_format,
    label_key_format,
    long_name_caseless_format,
    long_name_format,
)
from dray.validation.tolerations import TAINT_EFFECTS, TOLERATION_OPERATORS

MAX_DERIVED_ATTRIBUTES = 32
MAX_DRIVER_NAME = 63


def device_claim_rules(claim: DeviceClaim, old: DeviceClaim | None, path: Path, errors: Errors) -> None:
    if old is None or claim.requests != old.requests:
        place = path.child("requests")
        if found := limit(claim.requests, MAX_REQUESTS, place):
            errors += beta(found)
        else:
            errors += beta(unique(claim.requests, [request.name for request in claim.requests], place))
            for position, request in enumerate(claim.requests):
                stored = first_with_key(old.requests, request.name, _request_name) if old is not None else None
                if request != stored:
                    _request_rules(request, stored, place.index(position), errors)
    if old is None or claim.constraints != old.constraints:
        place = path.child("constraints")
        if found := limit(claim.constraints, MAX_CONSTRAINTS, place):
            errors += beta(found)
        else:
            for position, constraint in enumerate(claim.constraints):
                item = place.index(position)
                errors += beta(request_list_rules(constraint.requests, item.child("requests")))
                if constraint.match_attribute is not None:
                    errors += beta(fully_qualified_format(constraint.match_attribute, item.child("matchAttribute")))
                if constraint.distinct_attribute is not None:
                    name = constraint.distinct_attribute
                    errors += beta(fully_qualified_format(name, item.child("distinctAttribute")))
    if old is None or claim.config != old.config:
        place = path.child("config")
        if found := limit(claim.config, MAX_CONFIGS, place):
            errors += beta(found)
        else:
            for position, config in enumerate(claim.config):
                item = place.index(position)
                errors += beta(request_list_rules(config.requests, item.child("requests")))
                errors += beta(opaque_rules(config.opaque, item.child("opaque")))


def _request_name(request: DeviceRequest | DeviceSubRequest) -> str:
    return request.name


def request_list_rules(names: tuple[str, ...], path: Path) -> list[FieldError]:
    return limit(names, MAX_REQUESTS, path) or unique(names, names, path)


def opaque_rules(opaque: OpaqueDeviceConfiguration | None, path: Path) -> list[FieldError]:
    return driver_rules(opaque.driver, path.child("driver")) if opaque is not None else []


def driver_rules(name: str, path: Path) -> list[FieldError]:
    found = require(name, path, long_name_caseless_format)
    if len(name) > MAX_DRIVER_NAME:
        found.append(too_long(path, MAX_DRIVER_NAME, origin="maxLength", unit="characters"))
    return found


def toleration_rules(tolerations: tuple[DeviceToleration, ...], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for position, toleration in enumerate(tolerations):
        item = path.index(position)
        if toleration.key:
            found += label_key_format(toleration.key, item.child("key"))
        found += one_of(toleration.operator, TOLERATION_OPERATORS, item.child("operator"))
        found += one_of(toleration.effect, TAINT_EFFECTS, item.child("effect"))
    return found


def _request_rules(request: DeviceRequest, old: DeviceRequest | None, path: Path, errors: Errors) -> None:
    if request.exactly is not None and (old is None or request.exactly != old.exactly):
        stored = old.exactly if old is not None else None
        _detail_rules(request.exactly, stored, path.child("exactly"), errors)
    if old is not None and request.first_available == old.first_available:
        return
    place = path.child("firstAvailable")
    if found := limit(request.first_available, MAX_SUBREQUESTS, place):
        errors += beta(found)
        return
    names = [subrequest.name for subrequest in request.first_available]
    errors += beta(unique(request.first_available, names, place))
    for position, subrequest in enumerate(request.first_available):
        match_ = first_with_key(old.first_available, subrequest.name, _request_name) if old is not None else None
        if subrequest != match_:
            _subrequest_rules(subrequest, match_, place.index(position), errors)


def _subrequest_rules(subrequest: DeviceSubRequest, old: DeviceSubRequest | None, path: Path, errors: Errors) -> None:
    if old is None or subrequest.device_class_name != old.device_class_name:
        errors += beta(require(subrequest.device_class_name, path.child("deviceClassName"), long_name_format))
    _detail_rules(subrequest, old, path, errors)


def _detail_rules(
    request: ExactDeviceRequest | DeviceSubRequest,
    old: ExactDeviceRequest | DeviceSubRequest | None,
    path: Path,
    errors: Errors,
) -> None:
    if old is None or request.selectors != old.selectors:
        errors += beta(limit(request.selectors, MAX_SELECTORS, path.child("selectors")))
    if old is None or request.allocation_mode != old.allocation_mode:
        errors += beta(one_of(request.allocation_mode, ALLOCATION_MODES, path.child("allocationMode")))
    if old is None or request.tolerations != old.tolerations:
        errors += beta(toleration_rules(request.tolerations, path.child("tolerations")))
    if old is None or request.derived_attributes != old.derived_attributes:
        errors += _derived_rules(request.derived_attributes, path.child("derivedAttributes"))


def _derived_rules(attributes: tuple[DeviceDerivedAttribute, ...], path: Path) -> list[FieldError]:
    if found := limit(attributes, MAX_DERIVED_ATTRIBUTES, path):
        return found
    for position, attribute in enumerate(attributes):
        item = path.index(position)
        found += require(attribute.name, item.child("name"), fully_qualified_format)
        found += require(attribute.expression, item.child("expression"))
    return found
