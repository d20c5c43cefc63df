"""Files with keys and tokens: readable by their owner only, and never half-written."""

from __future__ import annotations

import os
from pathlib import Path

from dray.runtime.files import write_atomically


def write_private(path: Path, content: bytes) -> None:
    """Replaces the file at once. A folder that is made on the way is for the owner only, too."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(path, content, mode=0o600)


def read_private(path: Path) -> bytes | None:
    """The content, None if there is no such file. A file that others could read is closed to them first."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
        return file.read()
