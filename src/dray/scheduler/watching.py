"""Connects the scheduler's state to the cluster."""

from __future__ import annotations

from dray.api.claims import ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.codec import decode_as
from dray.api.meta import Json
from dray.api.nodes import view_node
from dray.api.pods import view_pod
from dray.api.resources import DEVICE_CLASSES, DEVICE_TAINT_RULES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.informers import Informers
from dray.scheduler.state import SchedulerState


def follow_cluster(client: Client, clock: Clock, state: SchedulerState) -> Informers:
    informers = Informers(client, clock)
    informers.typed(NODES, view_node).add_handler(state.node_changed)
    informers.typed(DEVICE_CLASSES, _decode_class).add_handler(state.class_changed)
    informers.typed(DEVICE_TAINT_RULES, _decode_rule).add_handler(state.rule_changed)
    informers.typed(RESOURCE_SLICES, _decode_slice).add_handler(state.slice_changed)
    informers.typed(RESOURCE_CLAIMS, _decode_claim).add_handler(state.claim_changed)
    informers.typed(PODS, view_pod).add_handler(state.pod_changed)
    return informers


def _decode_class(obj: Json) -> DeviceClass:
    return decode_as(DeviceClass, obj)


def _decode_rule(obj: Json) -> DeviceTaintRule:
    return decode_as(DeviceTaintRule, obj)


def _decode_slice(obj: Json) -> ResourceSlice:
    return decode_as(ResourceSlice, obj)


def _decode_claim(obj: Json) -> ResourceClaim:
    return decode_as(ResourceClaim, obj)
