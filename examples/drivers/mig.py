"""GPUs that are cut into partitions when a claim needs them, like NVIDIA's MIG.

Every partition that a GPU could be cut into is a device. Partitions of one GPU draw on its counters (memory slices,
multiprocessors and so on), so the scheduler only gives out partitions that can exist side by side.
"""

from collections.abc import Iterable, Sequence

from dray.cluster.gpus import mig_counters, mig_devices
from dray.driver import AllocatedDevice, ClaimRef, ContainerEdits, DeviceConfig, Driver, Pool, Prepared


class MigGpus(Driver):
    name = "gpu.nvidia.com"

    def __init__(self, gpus: int = 2) -> None:
        self._gpus = range(gpus)
        self.partitions: dict[str, set[str]] = {}
        """By claim; a real driver would ask the hardware."""

    def pools(self, node_name: str) -> Iterable[Pool]:
        yield Pool(
            name=node_name,
            devices=tuple(device for gpu in self._gpus for device in mig_devices(gpu)),
            shared_counters=tuple(map(mig_counters, self._gpus)),
        )

    async def prepare(
        self, claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]
    ) -> Prepared:
        self.partitions[claim.uid] = {device.name for device in devices}  # `nvidia-smi mig -cgi ...`
        return {device: ContainerEdits(env=(f"NVIDIA_VISIBLE_DEVICES=MIG-{device.name}",)) for device in devices}

    async def unprepare(self, claim: ClaimRef) -> None:
        self.partitions.pop(claim.uid, None)  # `nvidia-smi mig -dgi ...`
