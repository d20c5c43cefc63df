"""What must be true of a cluster, whatever went wrong on the way. Works on any cluster, through a client."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import NamedTuple

from dray.allocator.nodes import NodeFacts
from dray.allocator.verify import verify_cluster
from dray.api.claims import CLAIM_FINALIZER, ResourceClaim
from dray.api.meta import Json, ObjectKey
from dray.api.node_matching import compile_node_selector
from dray.api.nodes import view_node
from dray.api.pods import Pod, is_terminal, view_pod
from dray.api.resources import DEVICE_CLASSES, DEVICE_TAINT_RULES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.placement.picture import Picture
from dray.placement.planning import Placement, plan_placement
from dray.placement.pods import read_pod
from dray.placement.taintrules import apply_rules
from dray.runtime.client import Client
from dray.runtime.decoding import decode_claim, decode_class, decode_rule, decode_slice
from dray.scheduler.podclaims import Waiting, claim_keys, find_claims, is_reserved_for


class Snapshot(NamedTuple):
    nodes: list[Json]
    slices: list[Json]
    classes: list[Json]
    rules: list[Json]
    claims: list[Json]
    pods: list[Json]


async def take_snapshot(client: Client) -> Snapshot:
    resources = (NODES, RESOURCE_SLICES, DEVICE_CLASSES, DEVICE_TAINT_RULES, RESOURCE_CLAIMS, PODS)
    return Snapshot(*[(await client.list(resource)).get("items") or [] for resource in resources])


def find_violations(snapshot: Snapshot, *, devices_changed: bool = False) -> list[str]:
    """Of a cluster that has settled. With `devices_changed`, only what no driver can be blamed for counts."""
    claims = {claim.metadata.key: claim for claim in map(decode_claim, snapshot.claims)}
    pods = {pod.metadata.key: pod for pod in map(view_pod, snapshot.pods)}
    rules = {rule.metadata.name: rule for rule in map(decode_rule, snapshot.rules)}
    violations = verify_cluster(
        [apply_rules(item, rules) for item in map(decode_slice, snapshot.slices)],
        [decode_class(obj) for obj in snapshot.classes],
        [NodeFacts.of_json(obj) for obj in snapshot.nodes],
        claims.values(),
    )
    return [
        *(str(violation) for violation in violations if violation.rule.is_lasting or not devices_changed),
        *_check_reservations(claims, pods),
        *_check_bound_pods(snapshot, claims, pods),
        *_check_waiting_pods(snapshot, claims, pods),
    ]


def find_double_use(snapshot: Snapshot) -> list[str]:
    """At any moment: no device is in the hands of two pods that have a node, through different claims."""
    pods = {pod.metadata.uid: pod for pod in map(view_pod, snapshot.pods)}
    holders: dict[str, ObjectKey] = {}
    found = []
    for claim in map(decode_claim, snapshot.claims):
        allocation = claim.status.allocation
        users = (pods.get(user.uid) for user in claim.status.reserved_for)
        if allocation is None or not any(user is not None and user.spec.node_name for user in users):
            continue
        for result in allocation.devices.results:
            other = holders.setdefault(str(result.device_id), claim.metadata.key)
            if other != claim.metadata.key and not result.share_id and not result.admin_access:
                found.append(f"{result.device_id} is used through {other} and {claim.metadata.key}")
    return found


def _check_reservations(claims: dict[ObjectKey, ResourceClaim], pods: dict[ObjectKey, Pod]) -> Iterator[str]:
    for key, claim in claims.items():
        for user in claim.status.reserved_for:
            pod = pods.get(ObjectKey(key.namespace, user.name))
            if pod is None or pod.metadata.uid != user.uid:
                yield f"claim {key} is reserved for pod {user.name}, which is gone"
            elif is_terminal(pod):
                yield f"claim {key} is reserved for pod {user.name}, which is done"
        if claim.status.allocation is not None and CLAIM_FINALIZER not in claim.metadata.finalizers:
            yield f"claim {key} is allocated without the finalizer"


def _check_bound_pods(
    snapshot: Snapshot, claims: dict[ObjectKey, ResourceClaim], pods: dict[ObjectKey, Pod]
) -> Iterator[str]:
    nodes = {node.metadata.name: node for node in map(view_node, snapshot.nodes)}
    for key, pod in pods.items():
        if not pod.spec.node_name or is_terminal(pod):
            continue
        keys = claim_keys(pod)
        if len(keys) < len(pod.spec.resource_claims):
            yield f"pod {key} is bound, and not all of its claims are made"
        for claim_key in keys:
            claim = claims.get(claim_key)
            if claim is None or claim.status.allocation is None:
                yield f"pod {key} is bound, and its claim {claim_key} is not allocated"
                continue
            if not is_reserved_for(claim, pod.metadata.uid):
                yield f"pod {key} is bound, and its claim {claim_key} is not reserved for it"
            selector, node = claim.status.allocation.node_selector, nodes.get(pod.spec.node_name)
            if selector is None or node is None:
                continue
            if not compile_node_selector(selector).matches(node.metadata.labels, node.metadata.name):
                yield f"pod {key} is on {pod.spec.node_name}, where the devices of {claim_key} are not"


def _check_waiting_pods(
    snapshot: Snapshot, claims: dict[ObjectKey, ResourceClaim], pods: dict[ObjectKey, Pod]
) -> Iterator[str]:
    """Nobody waits who could be placed: that would be a pod that was forgotten."""
    picture = Picture(make_id=lambda: str(uuid.uuid4()))
    for node in snapshot.nodes:
        picture.apply_node(view_node(node))
    for obj in snapshot.classes:
        picture.apply_class(decode_class(obj))
    for obj in snapshot.rules:
        picture.apply_rule(decode_rule(obj))
    for obj in snapshot.slices:
        picture.apply_slice(decode_slice(obj))
    for claim in claims.values():
        picture.apply_claim(claim)
    for pod in pods.values():
        if pod.spec.node_name and not is_terminal(pod):
            picture.apply_pod(read_pod(pod))
    for key, pod in pods.items():
        if pod.spec.node_name or is_terminal(pod) or pod.spec.scheduling_gates or pod.metadata.deletion_timestamp:
            continue
        found = find_claims(pod, claims.get)
        if isinstance(found, Waiting):
            yield f"pod {key} waits: {found.reason}"
        elif isinstance(plan := plan_placement(picture, read_pod(pod), found), Placement):
            yield f"pod {key} waits, and could go to {plan.node}"
