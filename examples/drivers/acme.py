"""GPUs of vendor ACME, from the stories of KEP-4381: cards that the administrator cut into parts of several sizes.

A DeviceClass may hold a command that is run each time a device is prepared. It runs with the driver's privileges, so
the driver takes it from classes alone, which only administrators write, and refuses it in claims.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from dray.cluster.gpus import acme_devices
from dray.driver import (
    AllocatedDevice,
    ClaimRef,
    ContainerEdits,
    Device,
    DeviceConfig,
    Driver,
    Prepared,
    PrepareError,
)

INIT_KIND = "GPUInit"


class AcmeGpus(Driver):
    name = "gpu.acme.example.com"

    def __init__(self) -> None:
        self._host_root = os.environ.get("HOST_ROOT", "/")
        """Where the driver's container sees the node's files."""

    def devices(self) -> Iterable[Device]:
        return acme_devices()

    async def prepare(
        self, claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]
    ) -> Prepared:
        for entry in config:
            if entry.parameters.get("kind") != INIT_KIND:
                raise PrepareError(f"parameters of kind {entry.parameters.get('kind')!r} are unknown")
            if entry.source != "FromClass":
                raise PrepareError("initCommand is taken from a DeviceClass only, not from a claim")
        edits: dict[AllocatedDevice, ContainerEdits] = {}
        for device in devices:
            said = [
                await self._initialize(device, entry.parameters["initCommand"])
                for entry in config
                if entry.applies_to(device.request)
            ]
            edits[device] = ContainerEdits(env=(f"ACME_GPU={device.name}", f"ACME_GPU_INIT={'; '.join(said)}"))
        return edits

    async def _initialize(self, device: AllocatedDevice, command: Sequence[str]) -> str:
        """Run the command for a device; what it says."""
        program = Path(self._host_root, command[0].lstrip("/"))
        try:
            process = await asyncio.create_subprocess_exec(
                program, *command[1:], "--device", device.name, stdout=asyncio.subprocess.PIPE
            )
        except OSError as error:
            raise PrepareError(f"initCommand {command[0]}: {error.strerror}") from error
        output, _ = await process.communicate()
        if process.returncode:
            raise PrepareError(f"initCommand {command[0]} ended with {process.returncode}")
        return output.decode().strip()

    async def unprepare(self, claim: ClaimRef) -> None:
        """The next prepare initializes the device anew."""
