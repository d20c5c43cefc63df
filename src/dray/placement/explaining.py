"""Why a pod fits nowhere, as far as its claims are the reason: in two lines, for conditions and events."""

from __future__ import annotations

from collections.abc import Sequence

from dray.allocator.errors import AllocationError
from dray.allocator.explain import explain
from dray.allocator.explain_text import summary_parts
from dray.allocator.search import Limits
from dray.api.claims import ResourceClaim
from dray.api.node_matching import compile_node_selector
from dray.placement.picture import Picture
from dray.placement.planning import CANNOT_ALLOCATE, Rejection
from dray.placement.pods import PodFacts


def explain_rejection(
    picture: Picture, pod: PodFacts, claims: Sequence[ResourceClaim], rejection: Rejection, limits: Limits
) -> list[str]:
    """Sentences: what is missing and, if something would, what would help. None if devices aren't the reason.

    `limits` bound the time; if they aren't enough, nothing is said.
    """
    unallocated = [claim for claim in claims if claim.status.allocation is None]
    if not unallocated or (rejection.error is None and CANNOT_ALLOCATE not in rejection.reasons):
        return []
    nodes = {name for name in picture.eligible(pod).names if _is_reachable(picture, name, claims)}
    try:
        explanation = explain(picture.index, unallocated, nodes, limits)
    except AllocationError:
        return []
    if explanation.fits or not explanation.groups:
        return []
    return [f"{part[:1].upper()}{part[1:]}." for part in summary_parts(explanation)]


def _is_reachable(picture: Picture, name: str, claims: Sequence[ResourceClaim]) -> bool:
    state = picture.node(name)
    return state is not None and all(
        compile_node_selector(allocation.node_selector).matches(state.node.metadata.labels, name)
        for claim in claims
        if (allocation := claim.status.allocation) is not None and allocation.node_selector is not None
    )
