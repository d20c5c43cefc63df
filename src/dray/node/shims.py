"""The agent's side of `shim.py`: starts attempts, finds what an earlier agent started, and learns how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dray.api.meta import Time
from dray.node import shim

LOOK_INTERVAL = 0.2
"""How often to look whether a process of an earlier agent has ended: it is no child of ours that we could wait for."""
LOST_EXIT_CODE = 137
"""Its keeper was killed, so nobody knows how it ended; what is left of it is killed."""


class Launched(msgspec.Struct, frozen=True, rename="camel"):
    """An attempt that was started."""

    id: str
    attempt: int
    pid: int
    started_at: Time
    born: str = ""
    exit_code: int | None = None
    finished_at: Time | None = None


class LaunchFailed(Exception):
    """The program could not be run."""


class AlreadyLaunched(Exception):
    """This attempt runs, or has run, already."""


class Keeper(asyncio.Protocol):
    """The pipe to a keeper: it says what became of the start, and closes when the container has ended."""

    def __init__(self) -> None:
        self._received = b""
        self._has_answered = asyncio.Event()
        self._has_ended = asyncio.Event()
        self._transport: asyncio.BaseTransport | None = None

    @classmethod
    async def open(cls, descriptor: int) -> Keeper:
        pipe = os.fdopen(descriptor, "rb", buffering=0)
        _, keeper = await asyncio.get_running_loop().connect_read_pipe(cls, pipe)
        return keeper

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if b"\n" in self._received:
            self._has_answered.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_answered.set()
        self._has_ended.set()

    async def answer(self) -> dict[str, Any]:
        """Empty if the keeper ended without one."""
        await self._has_answered.wait()
        answer: dict[str, Any] = msgspec.json.decode(self._received or b"{}")
        return answer

    async def wait(self) -> None:
        await self._has_ended.wait()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def launch(
    directory: Path,
    *,
    container_id: str,
    attempt: int,
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    working_directory: str,
) -> tuple[Launched, Keeper]:
    """Start an attempt. Raises LaunchFailed, AlreadyLaunched, OSError."""
    request = {
        "id": container_id,
        "attempt": attempt,
        "command": list(command),
        "env": dict(env),
        "log": str(log),
        "directory": working_directory,
    }
    reader, writer = os.pipe()
    keeper = await Keeper.open(reader)
    starting = asyncio.ensure_future(_start(directory, json.dumps(request).encode(), writer, keeper))
    try:
        answer = await asyncio.shield(starting)
        if answer.get("busy"):
            raise AlreadyLaunched
        if "pid" not in answer:
            raise LaunchFailed(answer.get("error", "the keeper of the process ended at once"))
        return msgspec.convert(answer, Launched), keeper
    except BaseException:
        # What is under way can't be called back, and whoever ends all containers must find what comes of it.
        await asyncio.wait((starting,))
        keeper.close()
        raise


async def _start(directory: Path, request: bytes, answers: int, keeper: Keeper) -> dict[str, Any]:
    """What the keeper answers; by then the process is on record."""
    try:
        await asyncio.to_thread(_spawn, directory, request, answers)
    finally:
        os.close(answers)
    return await keeper.answer()


def _spawn(directory: Path, request: bytes, answers: int) -> None:
    arguments = (sys.executable, "-I", "-S", shim.__file__, str(directory))
    subprocess.run(arguments, input=request, stdout=answers, start_new_session=True, check=True)


def recover_last(directory: Path) -> Launched | None:
    """The last attempt, running or ended. One whose keeper is gone is ended here and now."""
    running = _read(directory / shim.RUNNING)
    ended = _read(directory / shim.ENDED)
    if running is None or (ended is not None and ended.attempt >= running.attempt):
        return ended
    if is_locked(directory):
        return running
    ended = _read(directory / shim.ENDED)  # it may have ended while we looked
    if ended is not None and ended.attempt >= running.attempt:
        return ended
    send_signal(running, signal.SIGKILL)
    return msgspec.structs.replace(running, exit_code=LOST_EXIT_CODE)


async def wait_ended(directory: Path, launched: Launched) -> Launched:
    """How an attempt ended, once it has."""
    while True:
        last = recover_last(directory)
        if last is None or last.attempt != launched.attempt:
            return msgspec.structs.replace(launched, exit_code=LOST_EXIT_CODE)
        if last.exit_code is not None:
            return last
        await asyncio.sleep(LOOK_INTERVAL)


def has_ended(directory: Path, attempt: int) -> bool:
    """Whether an attempt has ended; one that never ran has, too."""
    ended = _read(directory / shim.ENDED)
    if ended is not None and ended.attempt >= attempt:
        return True
    return not is_locked(directory)


def is_locked(directory: Path) -> bool:
    """Whether a keeper lives."""
    try:
        descriptor = os.open(directory / shim.LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def send_signal(launched: Launched, number: signal.Signals) -> None:
    """To the whole session, so that children of a shell get it too; never to a stranger with the same number."""
    if launched.born and shim.process_birth(launched.pid) != launched.born:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(launched.pid, number)


def _read(path: Path) -> Launched | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Launched)
    except FileNotFoundError:
        return None
