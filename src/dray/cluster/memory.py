"""An API in memory and nothing else: for tests of one component, and for checks of drivers."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from dray.allocator.capacity import find_need
from dray.api.devices import Device
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import RESOURCE_GROUP, Json
from dray.api.quantities import Quantity
from dray.api.resources import NODES, RESOURCE_CLAIMS
from dray.apiserver.dispatch import Api
from dray.apiserver.local import LocalClient
from dray.apiserver.registry import Registry
from dray.runtime.client import Client
from dray.runtime.clock import Clock, SystemClock
from dray.store.memory import MemoryStore


@asynccontextmanager
async def memory_api(clock: Clock | None = None, gates: FeatureGates = ALL_GATES) -> AsyncIterator[LocalClient]:
    """An administrator's client of an empty cluster."""
    store = MemoryStore()
    registry = Registry(store, clock=clock or SystemClock(), gates=gates)
    await Api(registry).bootstrap()
    try:
        yield LocalClient(registry)
    finally:
        await store.close()


async def add_node(client: Client, name: str) -> Json:
    return await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


Devices = Sequence[tuple[str, str]]
"""Devices of one driver, as (pool, device)."""


async def add_allocated_claim(
    client: Client,
    driver: str,
    devices: Devices | Mapping[str, Devices],
    *,
    name: str = "",
    namespace: str = "default",
    config: Sequence[Json] = (),
    shares: Mapping[tuple[str, str], Json] | None = None,
) -> Json:
    """A claim that has these devices, without anyone having decided so. With a mapping, devices by request.

    `config` are entries of `status.allocation.devices.config`, `shares` what `share_of` says about shared devices.
    """
    requests = devices if isinstance(devices, Mapping) else {"devices": devices}
    claim = await client.create(
        RESOURCE_CLAIMS,
        {
            "apiVersion": f"{RESOURCE_GROUP}/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name or f"claim-{uuid.uuid4().hex[:8]}"},
            "spec": {
                "devices": {
                    "requests": [
                        {"name": request, "exactly": {"deviceClassName": driver, "count": len(found)}}
                        for request, found in requests.items()
                    ]
                }
            },
        },
        namespace,
    )
    results = [
        {"request": request, "driver": driver, "pool": pool, "device": device, **(shares or {}).get((pool, device), {})}
        for request, found in requests.items()
        for pool, device in found
    ]
    allocation: Json = {"devices": {"results": results}}
    if config:
        allocation["devices"]["config"] = list(config)
    return await client.update(RESOURCE_CLAIMS, {**claim, "status": {"allocation": allocation}}, subresource="status")


def share_of(device: Device, requested: Mapping[str, str] | None = None) -> Json:
    """What a result says about a device that claims share: which part, and how much it consumes. Else nothing.

    Raises ValueError if the device doesn't have so much.
    """
    if not device.allow_multiple_allocations:
        return {}
    amounts = {name: Quantity.parse(text) for name, text in (requested or {}).items()}
    need = find_need(amounts, device.capacity, fractional=True)
    if need is None or not need.fits:
        raise ValueError(f"device {device.name} has no {requested} to give")
    return {
        "shareID": str(uuid.uuid4()),
        "consumedCapacity": {name: str(amount) for name, amount in need.consumed.items()},
    }
