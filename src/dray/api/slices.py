"""ResourceSlice: the devices of one pool, or a part of them, as a driver publishes them."""

from __future__ import annotations

from dray.api.devices import CounterSet, Device, PoolID
from dray.api.meta import NIL, ApiStruct, Int64, ObjectMeta, written
from dray.api.nodeselectors import NodeSelector


class ResourcePool(ApiStruct, frozen=True):
    name: str = written("")
    generation: Int64 = written(0)
    resource_slice_count: Int64 = written(0)


class ResourceSliceSpec(ApiStruct, frozen=True):
    """`devices` and `shared_counters` tell absent from empty: only one of them may be there."""

    driver: str = written("")
    pool: ResourcePool = written(ResourcePool())
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = NIL
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = NIL
    skip_node_operations: tuple[str, ...] = ()
    partition_type_attribute: str | None = None

    @property
    def pool_id(self) -> PoolID:
        return PoolID(self.driver, self.pool.name)


class ResourceSlice(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = written(ObjectMeta())
    spec: ResourceSliceSpec = written(ResourceSliceSpec())
