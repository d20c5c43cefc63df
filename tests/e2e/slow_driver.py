"""A driver in a process of its own that takes as long to prepare as the test wants, and keeps a diary.

Options are those of any driver. The directory $DIARY holds

    diary       a line for everything that begins and ends
    hold        while it exists, prepare doesn't end
    prepared/   a file for every claim that is prepared
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from dray.driver import (
    AllocatedDevice,
    ClaimRef,
    ContainerEdits,
    Device,
    DeviceConfig,
    Driver,
    Prepared,
    make_device,
    serve,
)

NAME = "slow.example.com"


class SlowDriver(Driver):
    name = NAME

    def __init__(self) -> None:
        self._folder = Path(os.environ["DIARY"])
        (self._folder / "prepared").mkdir(parents=True, exist_ok=True)

    def devices(self) -> Iterator[Device]:
        for index in range(4):
            yield make_device(f"device-{index}")

    async def prepare(
        self, claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]
    ) -> Prepared:
        self._note(f"prepare {claim.name}")
        self._mark(claim).touch()
        while (self._folder / "hold").exists():  # noqa: ASYNC110 - a file is all that the test can give
            await asyncio.sleep(0.01)
        self._note(f"prepared {claim.name}")
        return {device: ContainerEdits(env=(f"DEVICE={device.name}",)) for device in devices}

    async def unprepare(self, claim: ClaimRef) -> None:
        self._note(f"unprepare {claim.name}")
        self._mark(claim).unlink(missing_ok=True)

    def _mark(self, claim: ClaimRef) -> Path:
        return self._folder / "prepared" / claim.uid

    def _note(self, text: str) -> None:
        with (self._folder / "diary").open("a") as file:
            file.write(f"{text}\n")


if __name__ == "__main__":
    serve(SlowDriver())
