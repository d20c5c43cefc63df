"""Files that are whole or not there: checkpoints, CDI specs, credentials."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644, durable: bool = True) -> None:
    """After a crash at any point the file has the old content or the new, never a part.

    Without `durable` that holds for crashes of the process only, not of the machine, and is much quicker.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def remove_leftovers(folder: Path, name: str = "*") -> None:
    """Removes what writes of files of that name left because the process was killed.

    For whoever is alone in the folder: the file of a write under way would go as well.
    """
    for path in folder.glob(f".{name}.????????"):
        path.unlink(missing_ok=True)


def remove_durably(path: Path) -> None:
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make a rename or a removal in the directory survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
