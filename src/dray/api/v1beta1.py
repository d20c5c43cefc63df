"""What resource.k8s.io/v1beta1 spells differently: requests are flat, and a device's content sits under `basic`.

The early v1alpha3 (up to Kubernetes 1.31) is read in the same shape.
"""

from __future__ import annotations

from dray.api.claims import (
    CapacityRequirements,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ResourceClaimStatus,
)
from dray.api.devices import (
    CounterSet,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    NodeAllocatableResource,
)
from dray.api.meta import NIL, ApiStruct, Int64, ObjectMeta, written
from dray.api.nodeselectors import NodeSelector
from dray.api.slices import ResourcePool


class DeviceRequest(ApiStruct, frozen=True):
    """`selectors` and `tolerations` tell absent from empty, because any field that is set makes an exact request."""

    name: str = written("")
    device_class_name: str = written("")
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] | None = None


class DeviceClaim(ApiStruct, frozen=True):
    requests: tuple[DeviceRequest, ...] = written(NIL)
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiStruct, frozen=True):
    devices: DeviceClaim = written(DeviceClaim())


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


class BasicDevice(ApiStruct, frozen=True):
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] = {}


class Device(ApiStruct, frozen=True):
    name: str = written("")
    basic: BasicDevice | None = None


class ResourceSliceSpec(ApiStruct, frozen=True):
    """Here an empty `nodeName` and a false `allNodes` are the same as absent ones."""

    driver: str = written("")
    pool: ResourcePool = written(ResourcePool())
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] = NIL
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = NIL
    skip_node_operations: tuple[str, ...] = ()
    partition_type_attribute: str | None = None


class ResourceSlice(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = written(ObjectMeta())
    spec: ResourceSliceSpec = written(ResourceSliceSpec())
