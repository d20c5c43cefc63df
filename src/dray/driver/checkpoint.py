"""Which claims are prepared, on disk, so that a driver that was killed knows what it did.

One file per claim. A record says `preparing` before the driver touches hardware and `prepared` after, so that after
a crash nothing that may be half done is taken for done.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from dray.driver.base import ClaimRef
from dray.runtime.files import remove_durably, write_atomically


class PreparedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """What the node agent is told about one device."""

    requests: tuple[str, ...]
    pool: str
    device: str
    cdi_device_ids: tuple[str, ...] = ()
    share_id: str | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    claim: ClaimRef
    state: Literal["preparing", "prepared"]
    devices: tuple[PreparedDevice, ...] = ()
    version: int = 1


class DamagedCheckpoint(Exception):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"checkpoint {path} can't be read ({reason}); remove it after unpreparing its claim by hand")
        self.path = path


class Checkpoint:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._records: dict[str, Record] = {}
        for path in sorted(directory.glob("*.json")):
            try:
                record = msgspec.json.decode(path.read_bytes(), type=Record)
            except msgspec.MsgspecError as error:
                raise DamagedCheckpoint(path, str(error)) from error
            self._records[record.claim.uid] = record

    def __len__(self) -> int:
        return len(self._records)

    def get(self, uid: str) -> Record | None:
        return self._records.get(uid)

    @property
    def claims(self) -> list[ClaimRef]:
        return [record.claim for record in self._records.values()]

    def put(self, record: Record) -> None:
        write_atomically(self._path(record.claim.uid), msgspec.json.encode(record))
        self._records[record.claim.uid] = record

    def remove(self, uid: str) -> None:
        remove_durably(self._path(uid))
        self._records.pop(uid, None)

    def _path(self, uid: str) -> Path:
        return self._directory / f"{uid}.json"
