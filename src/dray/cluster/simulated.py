"""Drivers for devices that exist only in a model. Everything else about them is real: slices, gRPC, CDI files.

A container that gets a device sees it in its environment: for the first device of request `gpu`

    DRA_GPU_0=gpu.example.com/node-1/gpu-3      driver, pool and device
    DRA_GPU_0_MEMORY=40Gi                       its capacity, or what the claim takes of it if it is shared
    DRA_GPU_0_CONFIG={...}                      parameters for it, class first

and finds a description of it in `$DRAY_ROOT/dev/dray/<device>`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from dray.api.cdi import ContainerEdits, Mount
from dray.api.codec import to_json
from dray.api.devices import Device, DeviceTaint
from dray.cluster.models import DriverModel, Model
from dray.driver.base import AllocatedDevice, ClaimRef, DeviceConfig, DeviceHealth, Driver, Prepared
from dray.driver.controller import PoolController
from dray.driver.pools import Pool
from dray.runtime.client import Client
from dray.runtime.clock import Clock

UNHEALTHY = "dray.dev/unhealthy"


class SimulatedDriver(Driver):
    """`state` is where it puts its files; `cluster_pools` are network-attached devices that it can prepare, too."""

    def __init__(self, model: DriverModel, node_name: str, state: Path, cluster_pools: Iterable[Pool] = ()) -> None:
        self.name = model.name  # type: ignore[misc]  # of the class elsewhere, of the instance here
        self._state = state
        self._pool = model.pool(node_name)
        self._cluster_pools = tuple(cluster_pools)
        self._broken: dict[str, str] = {}
        self._changed = asyncio.Event()

    def pools(self, node_name: str) -> Iterable[Pool]:
        if not self._pool.devices:
            return ()
        devices = tuple(self._tainted(device) for device in self._pool.devices)
        return (Pool(name=node_name, devices=devices, shared_counters=self._pool.shared_counters),)

    def cluster_pools(self) -> Iterable[Pool]:
        return self._cluster_pools

    def _tainted(self, device: Device) -> Device:
        reason = self._broken.get(device.name)
        if reason is None:
            return device
        return replace(device, taints=(*device.taints, DeviceTaint(key=UNHEALTHY, value=reason, effect="NoExecute")))

    # Health

    def break_device(self, name: str, reason: str = "broken") -> None:
        """From now on the device is unhealthy and tainted: pods that use it are evicted."""
        self._broken[name] = reason
        self._announce()

    def mend_device(self, name: str) -> None:
        self._broken.pop(name, None)
        self._announce()

    def _announce(self) -> None:
        self.refresh()
        self._changed.set()
        self._changed = asyncio.Event()

    async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        while True:
            changed = self._changed
            yield [
                DeviceHealth(
                    device.name,
                    "Unhealthy" if device.name in self._broken else "Healthy",
                    self._broken.get(device.name, ""),
                )
                for device in self._pool.devices
            ]
            await changed.wait()

    # Claims

    async def prepare(
        self, claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]
    ) -> Prepared:
        seen: dict[str, int] = {}
        prepared: dict[AllocatedDevice, ContainerEdits] = {}
        for device in devices:
            number = seen.get(device.request, 0)
            seen[device.request] = number + 1
            prepared[device] = self._edits(device, f"{_variable(device.request)}_{number}", config)
        return prepared

    def _edits(self, device: AllocatedDevice, variable: str, config: Sequence[DeviceConfig]) -> ContainerEdits:
        model = self._find(device.pool, device.name)
        amounts = {name: str(capacity.value) for name, capacity in model.capacity.items()}
        amounts |= {name: str(amount) for name, amount in device.consumed_capacity}
        env = [f"{variable}={self.name}/{device.pool}/{device.name}"]
        env += [f"{variable}_{_plain(name)}={amount}" for name, amount in amounts.items()]
        parameters = [entry.parameters for entry in config if entry.applies_to(device.request)]
        if parameters:
            env.append(f"{variable}_CONFIG={msgspec.json.encode(parameters).decode()}")
        file = self._describe(device.pool, model)
        mount = Mount(host_path=str(file), container_path=f"/dev/dray/{device.name}", options=("ro", "bind"))
        return ContainerEdits(env=tuple(env), mounts=(mount,))

    def _describe(self, pool: str, device: Device) -> Path:
        """A file that stands for the device itself: made once, there for good."""
        file = (self._state / pool / f"{device.name}.json").absolute()
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(msgspec.json.format(msgspec.json.encode(to_json(device))))
        return file

    def _find(self, pool: str, name: str) -> Device:
        pools = (self._pool, *self._cluster_pools)
        return next(device for item in pools if item.name == pool for device in item.devices if device.name == name)

    async def unprepare(self, claim: ClaimRef) -> None:
        """Nothing about a device changes when it is prepared."""


def simulated_drivers(
    model: Model, index: int, nodes: int, node_name: str, root: Path
) -> dict[str, Callable[[], Driver]]:
    """How to make the drivers of the model's node with this index, one of so many nodes."""
    pools = model.make_cluster_pools(nodes)

    def make(driver: DriverModel) -> Callable[[], Driver]:
        state = root / "devices" / driver.name
        return lambda: SimulatedDriver(driver, node_name, state, pools.get(driver.name, ()))

    return {driver.name: make(driver) for driver in model.make_node(index).drivers}


def simulated_controller(driver: str, pools: Iterable[Pool], client: Client, clock: Clock) -> PoolController:
    """Publishes the model's network-attached devices of one driver."""
    return PoolController(SimulatedDriver(DriverModel(driver), "", Path(), pools), client, clock=clock)


def _variable(request: str) -> str:
    return f"DRA_{_plain(request.partition('/')[0])}"


def _plain(name: str) -> str:
    """As part of a variable's name: without the domain, in capitals."""
    return re.sub(r"[^A-Z0-9]", "_", name.rpartition("/")[2].upper())
