"""GPUs that several claims share: each takes as much memory as it asks for, in steps of a gibibyte.

The scheduler keeps the sum within what the GPU has. The driver gets each claim's part and limits its containers to it.
"""

from collections.abc import Iterator, Sequence

from dray.driver import (
    AllocatedDevice,
    ClaimRef,
    ContainerEdits,
    Device,
    DeviceConfig,
    Driver,
    Prepared,
    make_device,
    shared_capacity,
)


class SharedGpus(Driver):
    name = "shared-gpu.example.com"

    def devices(self) -> Iterator[Device]:
        for index in range(2):
            yield make_device(
                f"gpu-{index}",
                attributes={"index": index},
                capacity={"memory": shared_capacity("80Gi", default="10Gi", step="1Gi")},
                allow_multiple_allocations=True,
            )

    async def prepare(
        self, claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]
    ) -> Prepared:
        return {
            device: ContainerEdits(
                env=(f"GPU={device.name}", f"GPU_MEMORY_LIMIT={dict(device.consumed_capacity)['memory']}")
            )
            for device in devices
        }

    async def unprepare(self, claim: ClaimRef) -> None:
        """The part is free again once the claim is deallocated; there is nothing to do on the node."""
