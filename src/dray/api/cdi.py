"""The Container Device Interface: what a device changes in a container, as drivers write it and runtimes read it."""

from __future__ import annotations

from dray.api.meta import ApiStruct

CDI_VERSION = "0.6.0"


class DeviceNode(ApiStruct, frozen=True):
    path: str
    host_path: str = ""
    type: str = ""
    major: int | None = None
    minor: int | None = None
    permissions: str = ""
    uid: int | None = None
    gid: int | None = None


class Mount(ApiStruct, frozen=True):
    host_path: str
    container_path: str
    type: str = ""
    options: tuple[str, ...] = ()


class Hook(ApiStruct, frozen=True):
    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class ContainerEdits(ApiStruct, frozen=True):
    """What is changed in a container that uses the device. `env` entries are `NAME=value`."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.env or self.device_nodes or self.mounts or self.hooks)


class CdiDevice(ApiStruct, frozen=True):
    name: str
    container_edits: ContainerEdits


class CdiSpec(ApiStruct, frozen=True):
    cdi_version: str
    kind: str
    devices: tuple[CdiDevice, ...]
    container_edits: ContainerEdits = ContainerEdits()
    """Made for every device of the spec."""
