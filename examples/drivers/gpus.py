"""Whole GPUs: found, prepared, watched over. The example to start with.

A GPU that breaks is tainted, so that no new pod gets it and pods that use it are evicted, and reported as unhealthy,
so that their status says why.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from dray.driver import (
    AllocatedDevice,
    ClaimRef,
    ContainerEdits,
    Device,
    DeviceConfig,
    DeviceHealth,
    DeviceNode,
    DeviceTaint,
    Driver,
    Prepared,
    make_device,
    version,
)

BROKEN = DeviceTaint(key="gpu.example.com/broken", effect="NoExecute")


class Gpus(Driver):
    name = "gpu.example.com"

    def __init__(self, count: int = 8) -> None:
        self._count = count
        self._broken: dict[str, str] = {}
        self._changed = asyncio.Event()

    def devices(self) -> Iterator[Device]:
        for index in range(self._count):
            name = f"gpu-{index}"
            yield make_device(
                name,
                attributes={
                    "index": index,
                    "productName": "NVIDIA A100-SXM4-40GB",
                    "cudaComputeCapability": version("8.0.0"),
                    "resource.kubernetes.io/pcieRoot": f"pci0000:{16 * (index // 2 + 1):02x}",
                    "resource.kubernetes.io/numaNode": index // 4,
                },
                capacity={"memory": "40Gi"},
                taints=[BROKEN] if name in self._broken else [],
            )

    async def prepare(
        self, claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]
    ) -> Prepared:
        return {
            device: ContainerEdits(
                env=(f"GPU_{number}={device.name}",),
                device_nodes=(DeviceNode(path=f"/dev/{device.name}", host_path="/dev/null"),),
            )
            for number, device in enumerate(devices)
        }

    async def unprepare(self, claim: ClaimRef) -> None:
        """Real hardware would be reset here, so that the next user finds no trace of this one."""

    def report_broken(self, name: str, reason: str) -> None:
        """Called by whatever watches the hardware."""
        self._broken[name] = reason
        self.refresh()
        self._changed.set()  # wakes everyone who waits for this one; the next change has an event of its own
        self._changed = asyncio.Event()

    async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        while True:
            changed = self._changed
            yield [
                DeviceHealth(device.name, "Unhealthy", self._broken[device.name])
                if device.name in self._broken
                else DeviceHealth(device.name, "Healthy")
                for device in self.devices()
            ]
            await changed.wait()
