"""DeviceTaintRule: an admin taints devices that match, without the driver's help."""

from __future__ import annotations

from dray.api.devices import DeviceTaint
from dray.api.meta import ApiStruct, Condition, ObjectMeta, written


class DeviceTaintSelector(ApiStruct, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiStruct, frozen=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = written(DeviceTaint())


class DeviceTaintRuleStatus(ApiStruct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = written(ObjectMeta())
    spec: DeviceTaintRuleSpec = written(DeviceTaintRuleSpec())
    status: DeviceTaintRuleStatus = written(DeviceTaintRuleStatus())
