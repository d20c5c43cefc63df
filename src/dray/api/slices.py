"""ResourceSlice: the devices of one pool, or a part of them, as a driver publishes them."""

from __future__ import annotations

from dray.api.devices import CounterSet, Device, PoolID
from dray.api.meta import ApiStruct, ObjectMeta
from dray.api.nodeselectors import NodeSelector


class ResourcePool(ApiStruct, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(ApiStruct, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()
    partition_type_attribute: str | None = None

    @property
    def pool_id(self) -> PoolID:
        return PoolID(self.driver, self.pool.name)


class ResourceSlice(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()
