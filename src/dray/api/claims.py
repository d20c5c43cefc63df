"""ResourceClaim and ResourceClaimTemplate: what a workload asks for, and what it was given."""

from __future__ import annotations

import msgspec

from dray.api.devices import DeviceID, SharedDeviceID
from dray.api.meta import NIL, NO_RAW, ApiStruct, Condition, Int64, ObjectMeta, Time, written
from dray.api.nodeselectors import NodeSelector
from dray.api.quantities import Quantity

ALLOCATION_MODE_EXACT_COUNT = "ExactCount"
ALLOCATION_MODE_ALL = "All"

MAX_ALLOCATION_RESULTS = 32
"""At most this many devices in one claim's allocation."""

MAX_RESERVED_FOR = 256

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
ADMIN_ACCESS_LABEL = "resource.kubernetes.io/admin-access"


class OpaqueDeviceConfiguration(ApiStruct, frozen=True):
    driver: str = written("")
    parameters: msgspec.Raw = written(NO_RAW)


class CELDeviceSelector(ApiStruct, frozen=True):
    expression: str = written("")


class DeviceSelector(ApiStruct, frozen=True):
    cel: CELDeviceSelector | None = None


class CapacityRequirements(ApiStruct, frozen=True):
    requests: dict[str, Quantity] = {}


class DeviceToleration(ApiStruct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class DeviceDerivedAttribute(ApiStruct, frozen=True):
    name: str = written("")
    expression: str = written("")


class ExactDeviceRequest(ApiStruct, frozen=True):
    device_class_name: str = written("")
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(ApiStruct, frozen=True):
    name: str = written("")
    device_class_name: str = written("")
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(ApiStruct, frozen=True):
    name: str = written("")
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class CELDeviceConstraint(ApiStruct, frozen=True):
    """KEP-5254: a boolean expression over the list `devices` of everything chosen for the named requests."""

    expression: str = written("")


class DeviceConstraint(ApiStruct, frozen=True):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None
    cel: CELDeviceConstraint | None = None


class DeviceClaimConfiguration(ApiStruct, frozen=True):
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(ApiStruct, frozen=True):
    requests: tuple[DeviceRequest, ...] = written(NIL)
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiStruct, frozen=True):
    devices: DeviceClaim = written(DeviceClaim())


class DeviceAllocationConfiguration(ApiStruct, frozen=True):
    source: str = written("")
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceRequestAllocationResult(ApiStruct, frozen=True):
    request: str = written("")
    driver: str = written("")
    pool: str = written("")
    device: str = written("")
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = {}
    skip_node_operations: tuple[str, ...] = ()

    @property
    def device_id(self) -> DeviceID:
        return DeviceID(self.driver, self.pool, self.device)

    @property
    def shared_device_id(self) -> SharedDeviceID:
        return SharedDeviceID(self.driver, self.pool, self.device, self.share_id or "")


class DeviceAllocationResult(ApiStruct, frozen=True):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(ApiStruct, frozen=True):
    devices: DeviceAllocationResult = written(DeviceAllocationResult())
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None


class ResourceClaimConsumerReference(ApiStruct, frozen=True):
    api_group: str = ""
    resource: str = written("")
    name: str = written("")
    uid: str = written("")


class NetworkDeviceData(ApiStruct, frozen=True):
    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(ApiStruct, frozen=True):
    driver: str = written("")
    pool: str = written("")
    device: str = written("")
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = written(NIL)
    data: msgspec.Raw = NO_RAW
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(ApiStruct, frozen=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = written(ObjectMeta())
    spec: ResourceClaimSpec = written(ResourceClaimSpec())
    status: ResourceClaimStatus = written(ResourceClaimStatus())


class ResourceClaimTemplateSpec(ApiStruct, frozen=True):
    metadata: ObjectMeta = written(ObjectMeta())
    spec: ResourceClaimSpec = written(ResourceClaimSpec())


class ResourceClaimTemplate(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = written(ObjectMeta())
    spec: ResourceClaimTemplateSpec = written(ResourceClaimTemplateSpec())
