"""The directory of a local cluster, and the file in it that says whether the cluster runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from dray.api.meta import Time
from dray.node.shim import process_birth
from dray.runtime.files import write_atomically

DEFAULT = Path.home() / ".dray"
RECORD = "up.json"
LOCK = "up.lock"
LOG = "up.log"


class AlreadyUp(Exception):
    """A cluster runs in the directory."""


class UpRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who runs a cluster here, since when, and what it is."""

    pid: int
    born: str
    address: str
    kubeconfig: str
    model: str
    nodes: int
    runtime: str
    started_at: Time

    @property
    def is_alive(self) -> bool:
        """Whether the process is still there, and not another one with its number."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return not self.born or process_birth(self.pid) == self.born


def read_record(data_dir: Path) -> UpRecord | None:
    try:
        return msgspec.json.decode((data_dir / RECORD).read_bytes(), type=UpRecord)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def write_record(data_dir: Path, record: UpRecord) -> None:
    write_atomically(data_dir / RECORD, msgspec.json.encode(record))


def remove_record(data_dir: Path) -> None:
    (data_dir / RECORD).unlink(missing_ok=True)


@contextmanager
def hold_directory(data_dir: Path) -> Iterator[None]:
    """Only one cluster per directory. Raises AlreadyUp."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(data_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyUp(f"a cluster runs in {data_dir} already; `dray down` stops it") from None
        yield
    finally:
        os.close(descriptor)
