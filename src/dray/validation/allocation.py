"""The status of a ResourceClaim: allocation, reservations, device status. Handwritten rules."""

from __future__ import annotations

from typing import Final

from dray.api.addresses import interface_address_problems
from dray.api.claims import (
    MAX_ALLOCATION_RESULTS,
    MAX_RESERVED_FOR,
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from dray.api.devices import SharedDeviceID
from dray.api.meta import NO_RAW
from dray.validation.claims import (
    MAX_CONFIGS,
    RequestNames,
    check_request_reference,
    check_request_references,
)
from dray.validation.configuration import check_configuration, check_raw
from dray.validation.devices import check_binding_conditions, check_skipped_operations
from dray.validation.fields import (
    Errors,
    Path,
    byte_length,
    forbidden,
    invalid,
    mark_covered,
    not_supported,
    required,
    too_long,
    too_many,
)
from dray.validation.lists import check_unique, is_too_many
from dray.validation.metadata import IMMUTABLE, check_conditions
from dray.validation.names import check_driver, check_label, check_pool, check_uid
from dray.validation.rendering import internal_form
from dray.validation.selectors import check_node_selector
from dray.validation.tolerations import check_tolerations

MAX_CONDITIONS: Final = 8
MAX_IPS: Final = 16
MAX_INTERFACE_NAME: Final = 256
MAX_HARDWARE_ADDRESS: Final = 128
CONFIG_SOURCES: Final = ("FromClaim", "FromClass")


def check_claim_status(
    new: ResourceClaimStatus,
    old: ResourceClaimStatus,
    path: Path,
    errors: Errors,
    *,
    names: RequestNames,
    being_deleted: bool,
) -> None:
    place = path.child("reservedFor")
    if not is_too_many(new.reserved_for, MAX_RESERVED_FOR, place, errors, covered=True):
        for position, consumer in enumerate(new.reserved_for):
            _check_consumer(consumer, place.index(position), errors)
        check_unique((consumer.uid for consumer in new.reserved_for), place, errors, covered=True)
    if new.devices:
        _check_device_statuses(new, path.child("devices"), errors)
    if new.reserved_for:
        if new.allocation is None:
            errors.append(forbidden(place, "may not be specified when `allocated` is not set"))
        elif being_deleted and not set(old.reserved_for).issuperset(new.reserved_for):
            detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            errors.append(forbidden(place, detail))
    if new.allocation is None:
        return
    if old.allocation is None:
        _check_allocation(new.allocation, path.child("allocation"), errors, names)
    elif new.allocation != old.allocation:
        # The stored allocation is not looked at again: rules for new ones may be stricter than they were.
        error = invalid(path.child("allocation"), internal_form(new.allocation), IMMUTABLE, origin="update")
        errors += mark_covered([error])


def _check_consumer(consumer: ResourceClaimConsumerReference, path: Path, errors: Errors) -> None:
    for name, value in (("resource", consumer.resource), ("name", consumer.name), ("uid", consumer.uid)):
        if not value:
            errors.append(required(path.child(name)))


def _check_allocation(allocation: AllocationResult, path: Path, errors: Errors, names: RequestNames) -> None:
    place = path.child("devices", "results")
    if not is_too_many(allocation.devices.results, MAX_ALLOCATION_RESULTS, place, errors, covered=True):
        for position, result in enumerate(allocation.devices.results):
            _check_result(result, place.index(position), errors, names)
    place = path.child("devices", "config")
    # Those of the class and those of the claim.
    if not is_too_many(allocation.devices.config, 2 * MAX_CONFIGS, place, errors, covered=True):
        for position, config in enumerate(allocation.devices.config):
            _check_result_configuration(config, place.index(position), errors, names)
    if allocation.node_selector is not None:
        check_node_selector(allocation.node_selector, path.child("nodeSelector"), errors)


def _check_result(result: DeviceRequestAllocationResult, path: Path, errors: Errors, names: RequestNames) -> None:
    check_request_reference(result.request, path.child("request"), errors, names)
    check_driver(result.driver, path.child("driver"), errors, covered=True)
    check_pool(result.pool, path.child("pool"), errors, covered=True)
    check_label(result.device, path.child("device"), errors)
    check_binding_conditions(result.binding_conditions, result.binding_failure_conditions, path, errors)
    check_tolerations(result.tolerations, path.child("tolerations"), errors)
    if result.share_id is not None:
        check_uid(result.share_id, path.child("shareID"), errors)
    check_skipped_operations(result.skip_node_operations, path.child("skipNodeOperations"), errors)


def _check_result_configuration(
    config: DeviceAllocationConfiguration, path: Path, errors: Errors, names: RequestNames
) -> None:
    if not config.source:
        errors += mark_covered([required(path.child("source"))])
    elif config.source not in CONFIG_SOURCES:
        errors += mark_covered([not_supported(path.child("source"), config.source, CONFIG_SOURCES)])
    check_request_references(config.requests, path.child("requests"), errors, names)
    check_configuration(config.opaque, path, errors)


def _check_device_statuses(status: ResourceClaimStatus, path: Path, errors: Errors) -> None:
    results = status.allocation.devices.results if status.allocation is not None else ()
    allocated = {result.shared_device_id for result in results}
    identities = [
        SharedDeviceID(device.driver, device.pool, device.device, device.share_id or "") for device in status.devices
    ]
    for position, (device, identity) in enumerate(zip(status.devices, identities, strict=True)):
        _check_device_status(device, identity, path.index(position), errors, allocated)
    check_unique(identities, path, errors, covered=True)


def _check_device_status(
    device: AllocatedDeviceStatus,
    identity: SharedDeviceID,
    path: Path,
    errors: Errors,
    allocated: set[SharedDeviceID],
) -> None:
    check_driver(device.driver, path.child("driver"), errors)
    check_pool(device.pool, path.child("pool"), errors)
    check_label(device.device, path.child("device"), errors)
    if device.share_id is not None:
        check_uid(device.share_id, path.child("shareID"), errors)
    if identity not in allocated:
        errors.append(invalid(path, internal_form(identity), "must be an allocated device in the claim"))
    place = path.child("conditions")
    if len(device.conditions) > MAX_CONDITIONS:
        errors.append(too_many(place, len(device.conditions), MAX_CONDITIONS))
    check_conditions(device.conditions, place, errors)
    if device.data is not None and device.data != NO_RAW:
        check_raw(device.data, path.child("data"), errors)
    if device.network_data is not None:
        _check_network_data(device.network_data, path.child("networkData"), errors)


def _check_network_data(data: NetworkDeviceData, path: Path, errors: Errors) -> None:
    if byte_length(data.interface_name) > MAX_INTERFACE_NAME:
        errors += mark_covered([too_long(path.child("interfaceName"), MAX_INTERFACE_NAME, origin="maxBytes")])
    if byte_length(data.hardware_address) > MAX_HARDWARE_ADDRESS:
        errors += mark_covered([too_long(path.child("hardwareAddress"), MAX_HARDWARE_ADDRESS, origin="maxBytes")])
    place = path.child("ips")
    if is_too_many(data.ips, MAX_IPS, place, errors, covered=True):
        return
    for position, address in enumerate(data.ips):
        for problem in interface_address_problems(address):
            errors.append(invalid(place.index(position), problem.value, problem.detail))
    check_unique(data.ips, place, errors, covered=True)
