"""Connects the scheduler's state to the cluster."""

from __future__ import annotations

from dray.api.nodes import view_node
from dray.api.pods import view_pod
from dray.api.resources import DEVICE_CLASSES, DEVICE_TAINT_RULES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.runtime.decoding import decode_claim, decode_class, decode_rule, decode_slice
from dray.runtime.informers import Informers
from dray.scheduler.state import SchedulerState


def follow_cluster(informers: Informers, state: SchedulerState) -> None:
    informers.typed(NODES, view_node).add_handler(state.node_changed)
    informers.typed(DEVICE_CLASSES, decode_class).add_handler(state.class_changed)
    informers.typed(DEVICE_TAINT_RULES, decode_rule).add_handler(state.rule_changed)
    informers.typed(RESOURCE_SLICES, decode_slice).add_handler(state.slice_changed)
    informers.typed(RESOURCE_CLAIMS, decode_claim).add_handler(state.claim_changed)
    informers.typed(PODS, view_pod).add_handler(state.pod_changed)
