"""CDI: what a device changes in a container, written as files that container runtimes read.

One file per claim, `<vendor>-<class>-<claim uid>.json`, with one CDI device per device of the claim. Files are
written to a temporary name and renamed, so that a runtime never sees half a file, and removed with the claim.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from dray.runtime.files import remove_durably, write_atomically

CDI_VERSION = "0.6.0"


class DeviceNode(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    path: str
    host_path: str = ""
    type: str = ""
    major: int | None = None
    minor: int | None = None
    permissions: str = ""
    uid: int | None = None
    gid: int | None = None


class Mount(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    host_path: str
    container_path: str
    type: str = ""
    options: tuple[str, ...] = ()


class Hook(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class ContainerEdits(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is changed in a container that uses the device. `env` entries are `NAME=value`."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.env or self.device_nodes or self.mounts or self.hooks)


class CdiDevice(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: str
    container_edits: ContainerEdits


class CdiSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    kind: str
    devices: tuple[CdiDevice, ...]
    cdi_version: str = CDI_VERSION


class CdiFiles:
    """The CDI files of one driver in one directory."""

    def __init__(self, directory: Path, *, vendor: str, device_class: str = "device") -> None:
        self._directory = directory
        self._vendor = vendor
        self._class = device_class

    @property
    def kind(self) -> str:
        return f"{self._vendor}/{self._class}"

    def path(self, claim_uid: str) -> Path:
        return self._directory / f"{self._vendor}-{self._class}-{claim_uid}.json"

    def qualified_name(self, device: str) -> str:
        return f"{self.kind}={device}"

    def write(self, claim_uid: str, devices: dict[str, ContainerEdits]) -> dict[str, str]:
        """Write the claim's file; returns the qualified CDI name of each device."""
        spec = CdiSpec(
            kind=self.kind,
            devices=tuple(CdiDevice(name=name, container_edits=edits) for name, edits in sorted(devices.items())),
        )
        self._directory.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path(claim_uid), msgspec.json.format(msgspec.json.encode(spec)))
        return {name: self.qualified_name(name) for name in devices}

    def remove(self, claim_uid: str) -> None:
        if self.path(claim_uid).exists():
            remove_durably(self.path(claim_uid))

    def claim_uids(self) -> set[str]:
        """The claims that have a file, for removing those that nobody knows any more."""
        prefix = f"{self._vendor}-{self._class}-"
        return {path.stem.removeprefix(prefix) for path in self._directory.glob(f"{prefix}*.json")}
