"""What runs a container. The agent hands over a complete description and gets a handle; it knows no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dray.api.cdi import ContainerEdits, Mount
from dray.api.meta import Time
from dray.node.probes import Probe


@dataclass(frozen=True)
class ContainerSpec:
    """One run of a container, everything resolved: variables, CDI edits, where its files go."""

    pod_name: str
    pod_namespace: str
    pod_uid: str
    name: str
    directory: Path
    """Private to this container; kept between restarts."""
    image: str = ""
    attempt: int = 0
    """Counts the restarts. An attempt runs at most once, whatever happens to the agent."""
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = ""
    edits: ContainerEdits = field(default_factory=ContainerEdits)
    mounts: tuple[Mount, ...] = ()
    """Volumes of the pod."""
    address: str = "127.0.0.1"
    """Where the container can be reached."""
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def log_path(self) -> Path:
        return log_path(self.directory, self.attempt)


def log_path(directory: Path, attempt: int) -> Path:
    """Every attempt has a log of its own, so that the one before a crash can be read."""
    return directory / f"{attempt}.log"


class CreateFailed(Exception):
    """There is nothing that could be run, as yet; the text is for the container's status."""


class StartFailed(Exception):
    """The container's program could not be run: that attempt is over. The text is for its status."""


class Running(Protocol):
    """An attempt that was started; it may have ended already."""

    @property
    def id(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def started_at(self) -> Time: ...

    async def wait(self) -> int:
        """The exit code, once it has ended."""
        ...

    async def stop(self, grace_seconds: float) -> None:
        """Ask it to end, and end it after the grace period."""
        ...


class Runtime(Protocol):
    name: str

    async def start(self, spec: ContainerSpec) -> Running:
        """Raises CreateFailed, StartFailed."""
        ...

    def find(self, spec: ContainerSpec) -> Running | None:
        """The last attempt of this container that an earlier agent started, if there is one."""
        ...

    async def ask(self, spec: ContainerSpec, probe: Probe) -> str:
        """Why a probe of a running container fails; empty if it passes."""
        ...
