"""Which claims are prepared, on disk, so that a driver that was killed knows what it did.

One file per claim. A record says `preparing` before the driver touches hardware and `prepared` after, so that after
a crash nothing that may be half done is taken for done. Nothing is kept in memory: during an upgrade two instances
of a driver share the directory. A claim is worked on only under its lock, which the kernel frees with the process.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import msgspec

from dray.driver.base import ClaimRef
from dray.runtime.files import remove_durably, write_atomically

LOCK_INTERVAL = 0.02
"""How often to try a lock that another process holds; it can't wake us."""


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
    """`durable`: kept through a crash of the machine, too; simulated nodes can do without."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self._directory = directory
        self._durable = durable
        directory.mkdir(parents=True, exist_ok=True)
        len(self.claims)  # a damaged file is better found now than when a pod waits for it

    def __len__(self) -> int:
        return sum(1 for _ in self._directory.glob("*.json"))

    def get(self, uid: str) -> Record | None:
        """Raises DamagedCheckpoint."""
        path = self._path(uid)
        try:
            return msgspec.json.decode(path.read_bytes(), type=Record)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise DamagedCheckpoint(path, str(error)) from error

    @property
    def claims(self) -> list[ClaimRef]:
        records = [self.get(path.stem) for path in sorted(self._directory.glob("*.json"))]
        return [record.claim for record in records if record is not None]

    def put(self, record: Record) -> None:
        write_atomically(self._path(record.claim.uid), msgspec.json.encode(record), durable=self._durable)

    def remove(self, uid: str) -> None:
        if self._durable:
            remove_durably(self._path(uid))
        else:
            self._path(uid).unlink(missing_ok=True)

    @asynccontextmanager
    async def lock(self, uid: str) -> AsyncIterator[None]:
        """Keeps other processes away from the claim. Within a process the caller sees to that."""
        path = self._directory / f"{uid}.lock"
        descriptor = await _acquire(path)
        try:
            yield
        finally:
            if not self._path(uid).exists():
                path.unlink(missing_ok=True)  # while it is held, so that nobody can be waiting for another file
            os.close(descriptor)

    def _path(self, uid: str) -> Path:
        return self._directory / f"{uid}.json"


async def _acquire(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, descriptor):
                return descriptor
            os.close(descriptor)  # its last holder removed it: this is a lock that nobody else can find
        except BlockingIOError:
            os.close(descriptor)
            await asyncio.sleep(LOCK_INTERVAL)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
