"""DeviceClass: a name for a kind of device, with selectors and configuration chosen by an admin."""

from __future__ import annotations

from dray.api.claims import DeviceSelector, OpaqueDeviceConfiguration
from dray.api.meta import ApiStruct, ObjectMeta, written


class DeviceClassConfiguration(ApiStruct, frozen=True):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(ApiStruct, frozen=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = written(ObjectMeta())
    spec: DeviceClassSpec = written(DeviceClassSpec())
