"""What informers make of JSON. One function per kind, shared by all components, so that they can share informers."""

from __future__ import annotations

from dray.api.claims import ResourceClaim, ResourceClaimTemplate
from dray.api.classes import DeviceClass
from dray.api.codec import decode_as
from dray.api.meta import Json
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule


def decode_claim(obj: Json) -> ResourceClaim:
    return decode_as(ResourceClaim, obj)


def decode_template(obj: Json) -> ResourceClaimTemplate:
    return decode_as(ResourceClaimTemplate, obj)


def decode_slice(obj: Json) -> ResourceSlice:
    return decode_as(ResourceSlice, obj)


def decode_class(obj: Json) -> DeviceClass:
    return decode_as(DeviceClass, obj)


def decode_rule(obj: Json) -> DeviceTaintRule:
    return decode_as(DeviceTaintRule, obj)
