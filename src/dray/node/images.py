"""Images for the process runtime: folders of programs that stand for a container's file system.

An image `registry.example.com/team/app:1.2` is the folder `registry.example.com/team/app` below one of the image
directories. A command with an absolute path is looked for in that folder first and on this machine second; a
container without a command runs the folder's program `entrypoint`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dray.node.runtimes import CreateFailed

ENTRYPOINT = "entrypoint"


class ImageFolders:
    """Later directories win over earlier ones."""

    def __init__(self, *directories: Path) -> None:
        self._directories = directories

    def find(self, image: str) -> Path | None:
        name = _repository(image)
        if not name or ".." in Path(name).parts or Path(name).is_absolute():
            return None
        return next((place / name for place in reversed(self._directories) if (place / name).is_dir()), None)

    def resolve(self, image: str, command: Sequence[str], arguments: Sequence[str]) -> tuple[str, ...]:
        """The command line to run. Raises CreateFailed."""
        folder = self.find(image)
        if not command:
            if folder is None or not (folder / ENTRYPOINT).is_file():
                raise CreateFailed(
                    f"image {image!r} has no folder with a program {ENTRYPOINT!r}, so the container needs a command: "
                    "the process runtime pulls no images"
                )
            return (*_runnable(folder / ENTRYPOINT), *arguments)
        program = Path(command[0])
        if folder is not None and program.is_absolute():
            inside = folder / program.relative_to("/")
            if inside.is_file():
                return (*_runnable(inside), *command[1:], *arguments)
        return (*command, *arguments)


def _runnable(program: Path) -> tuple[str, ...]:
    """Some installers lose the executable bit; what isn't executable is taken for a shell script."""
    return (str(program),) if os.access(program, os.X_OK) else ("/bin/sh", str(program))


def _repository(image: str) -> str:
    """The name without tag and digest."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"
