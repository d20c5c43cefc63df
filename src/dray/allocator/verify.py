"""An independent judge of allocations: re-checks results from the definitions, knowing nothing of how they were found.

It shares no code with the search, the inventory or the tables. So what both agree on is right, or wrong for two
reasons. It says whether a result is allowed, not whether it is the first in Kubernetes' order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from dray.allocator.nodes import NodeFacts
from dray.allocator.state import AllocatedState
from dray.allocator.verify_claims import ClaimCheck, Use, World
from dray.allocator.verify_pools import Catalog, PoolView, selects
from dray.allocator.verify_rules import Rule, Violation
from dray.allocator.verify_sharing import check_sharing
from dray.api.claims import AllocationResult, ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.devices import PoolID
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.node_matching import single_node_name
from dray.api.nodeselectors import NodeSelector
from dray.api.slices import ResourceSlice

__all__ = ["Rule", "Violation", "verify", "verify_cluster"]


def verify(
    slices: Iterable[ResourceSlice],
    classes: Iterable[DeviceClass],
    node: NodeFacts,
    state: AllocatedState,
    claims: Sequence[ResourceClaim],
    results: Sequence[AllocationResult],
    gates: FeatureGates = ALL_GATES,
) -> list[Violation]:
    """What is wrong with results (one per claim, in order) for claims that were allocated together on a node.

    `state` is what was in use before.
    """
    if len(claims) != len(results):
        raise ValueError(f"{len(results)} results for {len(claims)} claims")
    world = _make_world(slices, classes, gates)
    uses: list[Use] = []
    violations: list[Violation] = []
    for claim, result in zip(claims, results, strict=True):
        check = ClaimCheck(world, node, claim, result)
        violations += check.violations()
        uses += check.uses()
    views = {id: world.catalog.view(node, id) for id in _pools(uses)}
    return [*violations, *check_sharing(uses, state, views, gates)]


def verify_cluster(
    slices: Iterable[ResourceSlice],
    classes: Iterable[DeviceClass],
    nodes: Iterable[NodeFacts],
    claims: Iterable[ResourceClaim],
    gates: FeatureGates = ALL_GATES,
) -> list[Violation]:
    """What is wrong with the allocations that a cluster's claims have, one by one and together.

    Slices, classes and taints may have changed since the claims were allocated. Violations of rules that can't excuse
    themselves with that have `rule.is_lasting`.
    """
    world = _make_world(slices, classes, gates)
    cluster = _Cluster({node.name: node for node in nodes})
    uses: list[Use] = []
    views: dict[PoolID, PoolView] = {}
    violations: list[Violation] = []
    for claim in claims:
        allocation = claim.status.allocation
        if allocation is None:
            continue
        candidates = cluster.nodes_for(allocation.node_selector)
        check = ClaimCheck(world, candidates[0] if candidates else None, claim, allocation)
        if not candidates:
            violations.append(Violation(Rule.NODE, claim.metadata.key, "no node matches its node selector"))
        violations += check.violations()
        mine = [use for use in check.uses() if not use.result.admin_access]
        violations += _check_reach(cluster, candidates, mine)
        uses += mine
        for id in _pools(mine):
            if candidates and views.get(id, _ABSENT).status != "usable":
                views[id] = world.catalog.view(candidates[0], id)
            views.setdefault(id, _ABSENT)
    return [*violations, *check_sharing(uses, AllocatedState(), views, gates)]


_ABSENT = PoolView("absent")


def _make_world(slices: Iterable[ResourceSlice], classes: Iterable[DeviceClass], gates: FeatureGates) -> World:
    return World(Catalog(slices, gates), {each.metadata.name: each for each in classes}, gates)


def _pools(uses: Iterable[Use]) -> set[PoolID]:
    return {PoolID(use.result.driver, use.result.pool) for use in uses}


class _Cluster:
    def __init__(self, nodes: Mapping[str, NodeFacts]) -> None:
        self._nodes = nodes
        self._selected = cache(self._find_selected)

    def nodes_for(self, selector: NodeSelector | None) -> Sequence[NodeFacts]:
        """Where an allocation with this node selector can be used."""
        if selector is None:
            return self._selected(None)
        name = single_node_name(selector)
        if name is not None:
            return (self._nodes[name],) if name in self._nodes else ()
        return self._selected(selector)

    def _find_selected(self, selector: NodeSelector | None) -> tuple[NodeFacts, ...]:
        return tuple(node for node in self._nodes.values() if selector is None or selects(selector, node))

    def names_reached(self, selection: tuple[str | None, bool | None, NodeSelector | None]) -> set[str]:
        node_name, all_nodes, selector = selection
        if node_name:
            return {node_name}
        if all_nodes:
            return set(self._nodes)
        return set() if selector is None else {node.name for node in self._selected(selector)}


def _check_reach(cluster: _Cluster, candidates: Sequence[NodeFacts], uses: Iterable[Use]) -> Iterable[Violation]:
    """Wherever the node selector lets the pod go, it must find its devices. (The first node is checked anyway.)"""
    if len(candidates) < 2:
        return
    names = {node.name for node in candidates}
    for use in uses:
        if use.published is None:
            continue
        out_of_reach = names - cluster.names_reached(use.published.selection)
        if out_of_reach:
            detail = f"can't be reached from {min(out_of_reach)}, which the node selector admits"
            yield Violation(Rule.REACH, use.claim, detail, use.result.request, use.result.device_id)
