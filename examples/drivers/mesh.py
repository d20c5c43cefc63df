"""Accelerators that are wired to each other, for the stories of KEP-5254.

What is next to what isn't for the scheduler to know: devices say where they are, and claims hold a constraint in CEL
that says what a good set looks like. In a ring, neighbours have consecutive ids; in a grid they share a row or column.
"""

from collections.abc import Iterator, Sequence

from dray.driver import AllocatedDevice, ClaimRef, ContainerEdits, Device, DeviceConfig, Driver, Prepared, make_device

COLUMNS = 4


class Accelerators(Driver):
    name = "mla.example.com"

    def __init__(self, count: int = 16) -> None:
        self._count = count

    def devices(self) -> Iterator[Device]:
        for index in range(self._count):
            place = {"deviceid": index, "row": index // COLUMNS, "col": index % COLUMNS}
            yield make_device(f"mla-{index}", attributes=place)

    async def prepare(
        self, claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]
    ) -> Prepared:
        """Every container of the claim learns of all accelerators, to talk to its neighbours."""
        ring = ",".join(device.name for device in devices)
        return {device: ContainerEdits(env=(f"MLA_DEVICES={ring}",)) for device in devices}

    async def unprepare(self, claim: ClaimRef) -> None:
        """Links need no taking down."""
