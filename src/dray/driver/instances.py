"""Which of several running instances of a driver is the newest: that one publishes the devices.

During an upgrade the old and the new instance run side by side. Every instance holds the lock of a file of its own,
named by when it started; the kernel frees the lock when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class Instance:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path: Path | None = None
        self._descriptor = -1

    def enter(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._path = self._directory / f"{time.time_ns():020}.lock"
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def leave(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._path = None

    @property
    def is_newest(self) -> bool:
        """Whether no instance that started later still runs."""
        if self._path is None:
            return False
        for name in sorted(os.listdir(self._directory), reverse=True):
            if name == self._path.name:
                return True
            if _is_held(self._directory / name):
                return False
            (self._directory / name).unlink(missing_ok=True)  # of an instance that was killed
        return False


def _is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
