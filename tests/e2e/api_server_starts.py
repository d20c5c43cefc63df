"""Starts of `dray apiserver` that can be cut short: after some time, or at a chosen change of the data directory.

The processes are forked from one that has imported everything, so that a start takes its own time only.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dray.cli import apiserver

START_SECONDS = 120.0
WATCHED = ("open", "os.chmod", "os.mkdir", "os.remove", "os.rename", "sqlite3.connect", "tempfile.mkstemp")
"""What Python does to files; SQLite doesn't tell."""

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__])


class Start:
    """A server that starts in `folder`. With `last_change` it kills itself when it is about to do that one there."""

    def __init__(self, folder: Path, port: int, last_change: int = 0) -> None:
        self._log = folder.with_name(f"{folder.name}.log")
        self._log.write_bytes(b"")
        self._process = _processes.Process(target=_run, args=(folder, port, last_change, self._log), daemon=True)
        self._process.start()

    @property
    def is_up(self) -> bool:
        return b"Try: " in self._log.read_bytes()

    def wait_up(self) -> None:
        self._wait(lambda: self.is_up, START_SECONDS)
        assert self.is_up, f"the server didn't start ({self._process.exitcode}):\n{self._log.read_text()}"

    def wait_up_or_dead(self) -> None:
        self._wait(lambda: self.is_up, START_SECONDS)

    def kill_after(self, seconds: float) -> None:
        """As a power cut would."""
        self._process.join(seconds)
        self._process.kill()
        self._process.join()
        status = self._process.exitcode
        assert status == -signal.SIGKILL, f"it ended by itself with {status}:\n{self._log.read_text()}"

    def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while self._process.is_alive() and not condition() and time.monotonic() < end:
            self._process.join(0.01)


def _run(folder: Path, port: int, last_change: int, log: Path) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    if last_change:
        sys.addaudithook(_killer(folder, last_change))
    apiserver.run(data_dir=folder, port=port)


def _killer(folder: Path, last_change: int) -> Callable[[str, tuple[Any, ...]], None]:
    seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in WATCHED and str(arguments[0]).startswith(str(folder)):
            seen += 1
            if seen == last_change:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook
