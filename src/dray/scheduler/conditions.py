"""Binding conditions: devices that must become ready (a fabric attaches them) before the pod may be bound.

A driver's controller reports in `claim.status.devices[].conditions`. All binding conditions True: go on. A failure
condition True, or no answer within the time limit: the devices are given up and the pod is tried again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dray.api.claims import DeviceRequestAllocationResult, ResourceClaim

Readiness = Literal["ready", "waiting", "failed"]

DEFAULT_TIMEOUT = 600.0


def needs_waiting(claims: Iterable[ResourceClaim]) -> bool:
    return any(result.binding_conditions for claim in claims for result in _results(claim))


def readiness(claims: Iterable[ResourceClaim]) -> tuple[Readiness, str]:
    """Over all devices with binding conditions, and the reason in words."""
    waiting = ""
    for claim in claims:
        conditions = {
            (status.driver, status.pool, status.device, status.share_id): {c.type: c.status for c in status.conditions}
            for status in claim.status.devices
        }
        for result in _results(claim):
            if not result.binding_conditions:
                continue
            reported = conditions.get((result.driver, result.pool, result.device, result.share_id), {})
            for name in result.binding_failure_conditions:
                if reported.get(name) == "True":
                    return "failed", f"device {result.device_id} of claim {claim.metadata.key} reports {name}"
            missing = [name for name in result.binding_conditions if reported.get(name) != "True"]
            if missing and not waiting:
                waiting = f"device {result.device_id} of claim {claim.metadata.key} waits for {', '.join(missing)}"
    return ("waiting", waiting) if waiting else ("ready", "")


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation
    return allocation.devices.results if allocation is not None else ()
