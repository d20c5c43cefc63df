"""Declarative rules for the status of claims."""

from __future__ import annotations

from typing import Final

from dray.api.claims import (
    MAX_ALLOCATION_RESULTS,
    MAX_RESERVED_FOR,
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaimStatus,
)
from dray.validation.allocation import CONFIG_SOURCES, MAX_HARDWARE_ADDRESS, MAX_INTERFACE_NAME, MAX_IPS
from dray.validation.claim_rules import driver_rules, opaque_rules, request_list_rules, toleration_rules
from dray.validation.claims import MAX_CONFIGS
from dray.validation.declarative import beta, first_with_key, limit, one_of, require, unique
from dray.validation.devices import MAX_BINDING_CONDITIONS
from dray.validation.fields import Errors, FieldError, Path, byte_length, invalid, not_supported, too_long
from dray.validation.names import pool_format, uuid_format

SKIPPED_OPERATIONS: Final = ("*", "NodePrepareResources", "NodeUnprepareResources")


def claim_status_rules(status: ResourceClaimStatus, old: ResourceClaimStatus, path: Path, errors: Errors) -> None:
    if status.allocation is not None and status.allocation != old.allocation:
        place = path.child("allocation")
        if old.allocation is not None:
            errors += beta([invalid(place, None, "field cannot be modified once set", origin="update")])
        else:
            _allocation_rules(status.allocation, place.child("devices"), errors)
    if status.reserved_for != old.reserved_for:
        place = path.child("reservedFor")
        uids = [consumer.uid for consumer in status.reserved_for]
        found = limit(status.reserved_for, MAX_RESERVED_FOR, place) or unique(status.reserved_for, uids, place)
        errors += beta(found)
    if status.devices != old.devices:
        place = path.child("devices")
        errors += beta(unique(status.devices, [_device_key(device) for device in status.devices], place))
        for position, device in enumerate(status.devices):
            stored = first_with_key(old.devices, _device_key(device), _device_key)
            if device != stored:
                errors += beta(_device_status_rules(device, stored, place.index(position)))


def _device_key(device: AllocatedDeviceStatus) -> tuple[str, str, str, str | None]:
    return device.driver, device.device, device.pool, device.share_id


def _allocation_rules(allocation: AllocationResult, path: Path, errors: Errors) -> None:
    place = path.child("results")
    if found := limit(allocation.devices.results, MAX_ALLOCATION_RESULTS, place):
        errors += beta(found)
    else:
        for position, result in enumerate(allocation.devices.results):
            errors += beta(_result_rules(result, place.index(position)))
            errors += skipped_operation_rules(
                result.skip_node_operations, place.index(position).child("skipNodeOperations")
            )
    place = path.child("config")
    if found := limit(allocation.devices.config, 2 * MAX_CONFIGS, place):
        errors += beta(found)
    else:
        for position, config in enumerate(allocation.devices.config):
            errors += beta(_result_configuration_rules(config, place.index(position)))


def _result_rules(result: DeviceRequestAllocationResult, path: Path) -> list[FieldError]:
    found = driver_rules(result.driver, path.child("driver"))
    found += require(result.pool, path.child("pool"), pool_format)
    found += toleration_rules(result.tolerations, path.child("tolerations"))
    found += limit(result.binding_conditions, MAX_BINDING_CONDITIONS, path.child("bindingConditions"))
    failures = result.binding_failure_conditions
    found += limit(failures, MAX_BINDING_CONDITIONS, path.child("bindingFailureConditions"))
    if result.share_id is not None:
        found += uuid_format(result.share_id, path.child("shareID"))
    return found


def skipped_operation_rules(operations: tuple[str, ...], path: Path) -> list[FieldError]:
    """A set of known operations. The rule is standard: there is no handwritten one."""
    found = unique(operations, operations, path)
    for position, operation in enumerate(operations):
        if operation not in SKIPPED_OPERATIONS:
            found.append(not_supported(path.index(position), operation, SKIPPED_OPERATIONS))
    return found


def _result_configuration_rules(config: DeviceAllocationConfiguration, path: Path) -> list[FieldError]:
    found = require(config.source, path.child("source"))
    found += one_of(config.source, CONFIG_SOURCES, path.child("source"))
    found += request_list_rules(config.requests, path.child("requests"))
    found += opaque_rules(config.opaque, path.child("opaque"))
    return found


def _device_status_rules(
    device: AllocatedDeviceStatus, old: AllocatedDeviceStatus | None, path: Path
) -> list[FieldError]:
    found: list[FieldError] = []
    if device.share_id is not None and old is None:
        # With a stored counterpart it is the same: it is a part of the key.
        found += uuid_format(device.share_id, path.child("shareID"))
    data = device.network_data
    stored = old.network_data if old is not None else None
    if data is not None and data != stored:
        found += _network_rules(data, stored, path.child("networkData"))
    return found


def _network_rules(data: NetworkDeviceData, old: NetworkDeviceData | None, path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    if (old is None or data.interface_name != old.interface_name) and byte_length(
        data.interface_name
    ) > MAX_INTERFACE_NAME:
        found.append(too_long(path.child("interfaceName"), MAX_INTERFACE_NAME, origin="maxBytes"))
    if old is None or data.ips != old.ips:
        found += limit(data.ips, MAX_IPS, path.child("ips")) or unique(data.ips, data.ips, path.child("ips"))
    if (old is None or data.hardware_address != old.hardware_address) and byte_length(
        data.hardware_address
    ) > MAX_HARDWARE_ADDRESS:
        found.append(too_long(path.child("hardwareAddress"), MAX_HARDWARE_ADDRESS, origin="maxBytes"))
    return found
