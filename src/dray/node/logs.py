"""Reads what containers wrote. The processes write their files themselves; nobody stands in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dray.node.shims import has_ended

LOOK_INTERVAL = 0.2
"""How often to look for more while following; the writer is another process that can't tell us."""
CHUNK = 64 * 1024


class LogMissing(Exception):
    """There is no such log on this node."""


@dataclass(frozen=True, slots=True)
class LogQuery:
    follow: bool = False
    previous: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None


async def read_log(container_directory: Path, query: LogQuery) -> AsyncIterator[bytes]:
    """The log of the last attempt, or of the one before. The first piece comes at once. Raises LogMissing."""
    attempt = _find_attempt(container_directory, previous=query.previous)
    left = query.limit_bytes
    with (container_directory / f"{attempt}.log").open("rb") as file:
        if query.tail_lines is not None:
            _skip_to_tail(file, query.tail_lines)
        yield b""
        while left is None or left > 0:
            is_over = not query.follow or query.previous or has_ended(container_directory, attempt)
            while data := file.read(CHUNK if left is None else min(CHUNK, left)):
                left = None if left is None else left - len(data)
                yield data
            if is_over:
                return
            await asyncio.sleep(LOOK_INTERVAL)


def _find_attempt(directory: Path, *, previous: bool) -> int:
    attempts = sorted(int(path.stem) for path in directory.glob("*.log") if path.stem.isdigit())
    if previous:
        attempts = attempts[:-1]
    if not attempts:
        raise LogMissing(f"no {'previous ' if previous else ''}log of container {directory.name} on this node")
    return attempts[-1]


def _skip_to_tail(file: BinaryIO, lines: int) -> None:
    """Go to where the last lines begin, reading from the end."""
    position = file.seek(0, 2)
    if lines == 0:
        return
    breaks = 0
    is_last = True
    while position > 0:
        size = min(CHUNK, position)
        position -= size
        file.seek(position)
        data = file.read(size)
        end = len(data)
        if is_last and data.endswith(b"\n"):
            end -= 1  # the end of the last line begins no other
        is_last = False
        while (found := data.rfind(b"\n", 0, end)) >= 0:
            breaks += 1
            if breaks == lines:
                file.seek(position + found + 1)
                return
            end = found
    file.seek(0)
