"""Feature gates: every optional capability has one, named as its KEP names it. In dray all are on unless turned off."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

KNOWN_GATES: Final[dict[str, str]] = {
    "DynamicResourceAllocation": "the resource.k8s.io API itself",
    "DRAAdminAccess": "requests with adminAccess",
    "DRACELDeviceConstraint": "CEL constraints over sets of devices (KEP-5254)",
    "DRAConsumableCapacity": "sharing a device by capacity; distinctAttribute",
    "DRADerivedAttributes": "attributes that a request computes with CEL",
    "DRADeviceBindingConditions": "devices that must become ready before a pod is bound",
    "DRADeviceCompatibilityGroups": "groups of partitions that may be used together",
    "DRADeviceTaintRules": "DeviceTaintRule objects",
    "DRADeviceTaints": "taints on devices and tolerations in requests",
    "DRAExtendedResource": "extended resources backed by a device class",
    "DRAFractionalCapacityRange": "capacity ranges in milli units",
    "DRAListTypeAttributes": "attributes that hold lists (KEP-5491)",
    "DRANodeAllocatableResources": "devices that consume node allocatable resources",
    "DRAOptionalNodeOperations": "devices that need no prepare or unprepare",
    "DRAPartitionableDevices": "shared counters and per-device node selection",
    "DRAPartitionableDevicesType": "the partition type attribute of slices",
    "DRAPrioritizedList": "requests with firstAvailable",
    "DRAResourceClaimDeviceStatus": "status.devices of claims",
    "DRAResourceClaimGranularStatusAuthorization": "separate permissions for parts of a claim's status",
    "DRAResourcePoolStatus": "ResourcePoolStatusRequest objects",
    "DRASchedulerFilterTimeout": "time limit of the search per node",
    "DRAWorkloadResourceClaims": "claims of workloads",
    "KueueDynamicResourceAllocation": "device quotas in cluster queues",
}


class UnknownFeatureGate(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(f"unknown feature gate {name!r}; known gates: {', '.join(sorted(KNOWN_GATES))}")
        self.name = name


class FeatureGates:
    """An immutable set of gates that are on."""

    __slots__ = ("_enabled",)

    def __init__(self, enabled: Iterable[str]) -> None:
        self._enabled = frozenset(enabled)
        for name in self._enabled:
            if name not in KNOWN_GATES:
                raise UnknownFeatureGate(name)

    def __contains__(self, name: str) -> bool:
        if name not in KNOWN_GATES:
            raise UnknownFeatureGate(name)
        return name in self._enabled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureGates) and other._enabled == self._enabled

    def __hash__(self) -> int:
        return hash(self._enabled)

    def __repr__(self) -> str:
        off = sorted(KNOWN_GATES.keys() - self._enabled)
        return f"FeatureGates(all on{' but ' + ', '.join(off) if off else ''})"

    @property
    def enabled(self) -> frozenset[str]:
        return self._enabled

    def with_changes(self, changes: dict[str, bool]) -> FeatureGates:
        on = {name for name, value in changes.items() if value}
        return FeatureGates((self._enabled - changes.keys()) | on)


ALL_GATES: Final = FeatureGates(KNOWN_GATES)


def parse_feature_gates(text: str, base: FeatureGates = ALL_GATES) -> FeatureGates:
    """Read `A=true,B=false` on top of `base`."""
    changes: dict[str, bool] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, separator, value = part.partition("=")
        if name not in KNOWN_GATES:
            raise UnknownFeatureGate(name)
        if not separator or value.lower() not in ("true", "false"):
            raise ValueError(f"feature gate {name}: want {name}=true or {name}=false, got {part!r}")
        changes[name] = value.lower() == "true"
    return base.with_changes(changes)
