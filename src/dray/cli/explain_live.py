"""`dray explain` on a live cluster: the scheduler's question, asked again, with the full story."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final

from dray.allocator.explain import explain
from dray.allocator.reasons import Explanation
from dray.api.claims import ResourceClaim
from dray.api.errors import NotFound
from dray.api.features import FeatureGates
from dray.api.meta import Json, ObjectKey
from dray.api.nodes import view_node
from dray.api.pods import Pod, is_terminal, view_pod
from dray.api.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dray.cli.sessions import CommandFailed
from dray.placement.picture import Picture
from dray.placement.planning import Placement, Rejection, plan_placement
from dray.placement.pods import read_pod
from dray.runtime.client import Client
from dray.runtime.decoding import decode_claim, decode_class, decode_rule, decode_slice
from dray.scheduler.podclaims import Waiting, find_claims
from dray.scheduler.rejections import describe_rejection

PAGE: Final = 500


class LiveCluster:
    """What the scheduler sees, read once."""

    def __init__(self, gates: FeatureGates) -> None:
        self.picture = Picture(gates, make_id=lambda: str(uuid.uuid4()))
        self.pods: dict[ObjectKey, Pod] = {}
        self.claims: dict[ObjectKey, ResourceClaim] = {}

    @classmethod
    async def read(cls, client: Client, gates: FeatureGates) -> LiveCluster:
        cluster = cls(gates)
        picture = cluster.picture
        await _each(client, NODES, lambda obj: picture.apply_node(view_node(obj)))
        await _each(client, DEVICE_CLASSES, lambda obj: picture.apply_class(decode_class(obj)))
        await _each(client, DEVICE_TAINT_RULES, lambda obj: picture.apply_rule(decode_rule(obj)))
        await _each(client, RESOURCE_SLICES, lambda obj: picture.apply_slice(decode_slice(obj)))
        await _each(client, RESOURCE_CLAIMS, cluster._add_claim)
        await _each(client, PODS, cluster._add_pod)
        return cluster

    def _add_claim(self, obj: Json) -> None:
        claim = decode_claim(obj)
        self.claims[claim.metadata.key] = claim
        self.picture.apply_claim(claim)

    def _add_pod(self, obj: Json) -> None:
        pod = view_pod(obj)
        self.pods[pod.metadata.key] = pod
        if pod.spec.node_name and not is_terminal(pod):
            self.picture.apply_pod(read_pod(pod))


async def _each(client: Client, resource: Resource, take: Callable[[Json], Any]) -> None:
    try:
        async for obj in _iter_all(client, resource):
            take(obj)
    except NotFound:  # an API that this cluster doesn't have
        return


async def _iter_all(client: Client, resource: Resource) -> AsyncIterator[Json]:
    token = ""
    while True:
        page = await client.list(resource, limit=PAGE, continue_token=token)
        for obj in page.get("items") or ():
            yield obj
        if not (token := page["metadata"].get("continue", "")):
            return


def explain_pod(cluster: LiveCluster, key: ObjectKey) -> tuple[str, Explanation | None]:
    """What there is to say about the pod; an explanation if it fits nowhere because of devices."""
    pod = cluster.pods.get(key)
    if pod is None:
        raise CommandFailed(f'there is no pod "{key.name}" in namespace {key.namespace}')
    if pod.spec.node_name:
        return f"Pod {key} is on node {pod.spec.node_name}.", None
    if pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return f"Pod {key} waits for its scheduling gates to be removed: {gates}.", None
    claims = find_claims(pod, cluster.claims.get)
    if isinstance(claims, Waiting):
        return f"Pod {key} can't be tried yet: {claims.reason}.", None
    facts = read_pod(pod)
    match plan_placement(cluster.picture, facts, claims):
        case Placement() as placement:
            return f"Pod {key} fits: it would go to node {placement.node}.", None
        case Rejection() as rejection:
            pending = [claim for claim in claims if claim.status.allocation is None]
            explanation = _explain(cluster, pending, cluster.picture.eligible(facts).names) if pending else None
            return f"Pod {key} fits nowhere. {describe_rejection(rejection)[1]}", explanation


def explain_claim(cluster: LiveCluster, key: ObjectKey) -> tuple[str, Explanation | None]:
    """As for a pod that needs this claim only."""
    claim = cluster.claims.get(key)
    if claim is None:
        raise CommandFailed(f'there is no claim "{key.name}" in namespace {key.namespace}')
    if (allocation := claim.status.allocation) is not None:
        devices = ", ".join(str(result.device_id) for result in allocation.devices.results)
        return f"Claim {key} has its devices: {devices}.", None
    explanation = _explain(cluster, [claim], [state.name for state in cluster.picture.nodes()])
    return ("", explanation) if explanation is not None else (f"Claim {key} would get its devices.", None)


def _explain(cluster: LiveCluster, claims: list[ResourceClaim], nodes: Iterable[str]) -> Explanation | None:
    explanation = explain(cluster.picture.index, claims, set(nodes))
    return None if explanation.fits else explanation
