"""What informers make of JSON. One function per kind, shared by all components, so that they can share informers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dray.api.claims import ResourceClaim, ResourceClaimTemplate
from dray.api.classes import DeviceClass
from dray.api.codec import decode_served
from dray.api.meta import Json
from dray.api.nodes import view_node
from dray.api.pods import view_pod
from dray.api.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
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


DECODERS: Final[dict[Resource, Callable[[Json], Any]]] = {
    RESOURCE_CLAIMS: decode_claim,
    RESOURCE_CLAIM_TEMPLATES: decode_template,
    RESOURCE_SLICES: decode_slice,
    DEVICE_CLASSES: decode_class,
    DEVICE_TAINT_RULES: decode_rule,
    PODS: view_pod,
    NODES: view_node,
}
"""For those who look at metadata only: with these they share the copies of others. For the rest, `view_meta` does."""
