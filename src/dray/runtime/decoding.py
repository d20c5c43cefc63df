"""What informers make of JSON. One function per kind, shared by all components, so that they can share informers."""

from __future__ import annotations

from dray.api.claims import ResourceClaim, ResourceClaimTemplate
from dray.api.classes import DeviceClass
from dray.api.codec import decode_served
from dray.api.meta import Json
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule


def decode_claim(obj: Json) -> ResourceClaim:
    return decode_served(ResourceClaim, obj)


def decode_template(obj: Json) -> ResourceClaimTemplate:
    return decode_served(ResourceClaimTemplate, obj)


def decode_slice(obj: Json) -> ResourceSlice:
    return decode_served(ResourceSlice, obj)


def decode_class(obj: Json) -> DeviceClass:
    return decode_served(DeviceClass, obj)


def decode_rule(obj: Json) -> DeviceTaintRule:
    return decode_served(DeviceTaintRule, obj)
