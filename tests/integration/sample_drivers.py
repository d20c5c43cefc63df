"""Drivers for tests: small, and able to misbehave on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from dray.driver import (
    AllocatedDevice,
    ClaimRef,
    ContainerEdits,
    Device,
    DeviceConfig,
    DeviceHealth,
    DeviceTaint,
    Driver,
    Prepared,
    PrepareError,
    make_device,
)

NAME = "gpu.example.com"


class Gpus(Driver):
    """Four GPUs. `calls` tells what was asked of it, in order."""

    name = NAME

    def __init__(self, count: int = 4) -> None:
        self.count = count
        self.calls: list[tuple[str, str]] = []
        self.configs: list[Sequence[DeviceConfig]] = []
        self.failures = 0
        """So many calls of prepare fail from now on."""
        self.unprepare_failures = 0
        self.gate: asyncio.Event | None = None
        """If set, prepare waits for it."""
        self.under_way = 0
        self.most_at_once = 0
        self.prepared: set[str] = set()
        self.tainted: set[str] = set()
        self._health_changed = asyncio.Event()

    def devices(self) -> Iterator[Device]:
        for index in range(self.count):
            name = f"gpu-{index}"
            taints = [DeviceTaint(key="example.com/broken", effect="NoExecute")] if name in self.tainted else []
            yield make_device(name, attributes={"index": index}, capacity={"memory": "40Gi"}, taints=taints)

    async def prepare(
        self, claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]
    ) -> Prepared:
        self.calls.append(("prepare", claim.name))
        self.configs.append(config)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.failures:
                self.failures -= 1
                raise PrepareError("the GPU is in a bad mood")
            self.prepared.add(claim.uid)
            return {
                device: ContainerEdits(env=(f"GPU_{device.request.upper()}_{n}={device.name}",))
                for n, device in enumerate(devices)
            }
        finally:
            self.under_way -= 1

    async def unprepare(self, claim: ClaimRef) -> None:
        self.calls.append(("unprepare", claim.name))
        if self.unprepare_failures:
            self.unprepare_failures -= 1
            raise PrepareError("the GPU doesn't let go")
        self.prepared.discard(claim.uid)


class WatchedGpus(Gpus):
    """Reports health: a device that is tainted is unhealthy."""

    def break_device(self, name: str) -> None:
        self.tainted.add(name)
        self.refresh()
        self._health_changed.set()
        self._health_changed = asyncio.Event()

    async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        while True:
            changed = self._health_changed
            yield [
                DeviceHealth(
                    device.name,
                    "Unhealthy" if device.taints else "Healthy",
                    "it smokes" if device.taints else "",
                )
                for device in self.devices()
            ]
            await changed.wait()
