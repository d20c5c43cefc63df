"""ResourcePoolStatusRequest: asks once for the state of a driver's pools. It exists in v1alpha3 only."""

from __future__ import annotations

from dray.api.meta import ApiStruct, Condition, Int32, Int64, ObjectMeta, written
from dray.api.quantities import Quantity


class ResourcePoolStatusRequestSpec(ApiStruct, frozen=True):
    driver: str = written("")
    pool_name: str | None = None
    limit: Int32 | None = None
    default_partition_type_attribute: str | None = None


class PartitionTypeStatus(ApiStruct, frozen=True):
    attribute: str = ""
    type: str = ""
    total: Int32 | None = None
    allocatable: Int32 | None = None


class ShareableCapacityStatus(ApiStruct, frozen=True):
    name: str = ""
    total: Quantity | None = None
    consumed: Quantity | None = None
    available: Quantity | None = None


class ShareableSummaryStatus(ApiStruct, frozen=True):
    fully_available_devices: Int32 | None = None
    partially_available_devices: Int32 | None = None
    capacity: tuple[ShareableCapacityStatus, ...] = ()


class PoolStatus(ApiStruct, frozen=True):
    driver: str = ""
    pool_name: str = ""
    generation: Int64 = written(0)
    resource_slice_count: Int32 | None = None
    total_devices: Int32 | None = None
    allocated_devices: Int32 | None = None
    available_devices: Int32 | None = None
    unavailable_devices: Int32 | None = None
    node_name: str | None = None
    partition_summary: tuple[PartitionTypeStatus, ...] = ()
    shareable_summary: ShareableSummaryStatus | None = None
    validation_error: str | None = None


class ResourcePoolStatusRequestStatus(ApiStruct, frozen=True):
    pool_count: Int32 | None = None
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class ResourcePoolStatusRequest(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = written(ObjectMeta())
    spec: ResourcePoolStatusRequestSpec = written(ResourcePoolStatusRequestSpec())
    status: ResourcePoolStatusRequestStatus | None = None
