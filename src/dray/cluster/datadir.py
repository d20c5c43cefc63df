"""The directory of a local cluster, and the files in it that say whether the cluster runs."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from dray.api.meta import Time
from dray.node.shim import process_birth
from dray.runtime.files import write_atomically

DEFAULT = Path.home() / ".dray"
RECORD = "up.json"
LOCK = "up.lock"
LOG = "up.log"
LOOK_INTERVAL = 0.1

T = TypeVar("T")


class AlreadyUp(Exception):
    """A cluster runs in the directory."""


class UnusableDirectory(Exception):
    """Nothing can be kept there; the text names the directory and says why."""


class ProcessID(msgspec.Struct, frozen=True):
    """A process, and not a later one with the same number."""

    pid: int
    born: str

    @classmethod
    def of(cls, pid: int) -> ProcessID:
        return cls(pid, process_birth(pid))

    @property
    def is_alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return not self.born or process_birth(self.pid) == self.born

    def stop(self) -> None:
        """Ask it to end. Raises PermissionError."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def wait_ended(self, seconds: float) -> bool:
        """Whether it has ended within that time. It may be anybody's child."""
        if sys.platform == "linux":
            try:
                descriptor = os.pidfd_open(self.pid)
            except ProcessLookupError:
                return True
            try:
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                return not self.is_alive or bool(poll.poll(seconds * 1000))
            finally:
                os.close(descriptor)
        end = time.monotonic() + seconds
        while self.is_alive and time.monotonic() < end:
            time.sleep(LOOK_INTERVAL)  # elsewhere the end of a stranger's process wakes nobody
        return not self.is_alive


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
    parts: tuple[ProcessID, ...] = ()
    """Its other processes, nodes first: should the first one be killed, somebody has to end them."""

    @property
    def is_alive(self) -> bool:
        return ProcessID(self.pid, self.born).is_alive


def read_record(data_dir: Path) -> UpRecord | None:
    return _read(data_dir / RECORD, UpRecord)


def write_record(data_dir: Path, record: UpRecord) -> None:
    write_atomically(data_dir / RECORD, msgspec.json.encode(record))


def remove_record(data_dir: Path) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        (data_dir / RECORD).unlink()


def find_holder(data_dir: Path) -> ProcessID | None:
    """The process that runs a cluster here, or is about to."""
    holder = _read(data_dir / LOCK, ProcessID)
    return holder if holder is not None and holder.is_alive else None


def check_free(data_dir: Path) -> None:
    """Raises AlreadyUp."""
    if (holder := find_holder(data_dir)) is not None:
        raise AlreadyUp(f"a cluster runs in {data_dir} already (process {holder.pid}); `dray down` stops it")
    record = read_record(data_dir)
    if record is not None and any(part.is_alive for part in record.parts):
        raise AlreadyUp(f"processes of a cluster that was killed still run in {data_dir}; `dray down` ends them")


@contextmanager
def hold_directory(data_dir: Path) -> Iterator[None]:
    """Only one cluster per directory. Raises AlreadyUp, UnusableDirectory."""
    make_directory(data_dir)
    check_free(data_dir)
    descriptor = os.open(data_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyUp(f"a cluster runs in {data_dir} already; `dray down` stops it") from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, msgspec.json.encode(ProcessID.of(os.getpid())))
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def make_directory(data_dir: Path) -> None:
    """Raises UnusableDirectory."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(data_dir, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except FileExistsError:
        raise UnusableDirectory(f"{data_dir} is not a directory") from None
    except OSError as error:
        raise UnusableDirectory(f"{data_dir} can't be used: {error.strerror}") from None


def find_error(log: Path, offset: int = 0) -> str:
    """What a program that ended wrote last as its error into a log, from the offset on; else its last lines."""
    try:
        lines = log.read_bytes()[offset:].decode(errors="replace").splitlines()
    except OSError:
        return ""
    errors = [line for line in lines if line.startswith("error: ")]
    return errors[-1].removeprefix("error: ") if errors else "\n".join(lines[-5:])


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
        return None
