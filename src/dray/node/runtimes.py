"""What runs a container. The agent hands over a complete description and gets a handle; it knows no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dray.api.cdi import ContainerEdits


@dataclass(frozen=True)
class ContainerSpec:
    """One run of a container, everything resolved: variables, CDI edits, where its files go."""

    pod_name: str
    pod_namespace: str
    pod_uid: str
    name: str
    directory: Path
    """Private to this container; kept between restarts."""
    log_path: Path
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = ""
    edits: ContainerEdits = field(default_factory=ContainerEdits)
    annotations: Mapping[str, str] = field(default_factory=dict)


class StartFailed(Exception):
    """The container could not be started; the text is for its status."""


class Running(Protocol):
    """A started container."""

    @property
    def id(self) -> str: ...

    async def wait(self) -> int:
        """The exit code, once it has ended."""
        ...

    async def stop(self, grace_seconds: float) -> None:
        """Ask it to end, and end it after the grace period."""
        ...


class Runtime(Protocol):
    name: str

    async def start(self, spec: ContainerSpec) -> Running: ...
