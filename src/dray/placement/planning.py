"""Where could this pod go? The one question of the scheduler, of preemption, of queueing and of capacity planning.

Decided from the cheap and common to the dear and special: labels and taints (remembered per template), claims that
are allocated already (they name their nodes), devices (per group of equal nodes), room on single nodes. The score
is a sum over features, each from 0 to 100 times its weight; equal scores go to the node that comes first.

Not every node is weighed: of each group of nodes that are equal in their devices, enough for a good choice.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from dray.allocator.errors import AllocationError, DeadlineExceeded
from dray.allocator.index import Allocation
from dray.allocator.search import Limits
from dray.api.claims import ResourceClaim
from dray.api.node_matching import compile_node_selector
from dray.placement.nodes import NodeState, room_problem
from dray.placement.picture import Picture
from dray.placement.pods import PodFacts

MAX_SCORE = 100
WEIGHED_PER_GROUP = 8
WEIGHED_WITHOUT_DEVICES = 100
FIRST_AVAILABLE_MAX = 8
NO_LIMITS = Limits()

CANNOT_ALLOCATE = "cannot allocate all claims"
TIMED_OUT = "timed out trying to allocate devices"
ELSEWHERE = "resourceclaim not available on the node"


class Strategy(enum.StrEnum):
    """How devices, or other resources, are used up."""

    PACK = "pack"
    """Prefer what is used already: large free groups stay whole."""
    SPREAD = "spread"
    NONE = "none"


@dataclass(frozen=True)
class Preferences:
    devices: Strategy = Strategy.PACK
    resources: Strategy = Strategy.SPREAD
    affinity_weight: int = 2
    device_weight: int = 2
    rank_weight: int = 3
    resource_weight: int = 1


@dataclass(frozen=True)
class Placement:
    """The pod fits there, with these devices for the claims that had none."""

    node: str
    allocations: Allocation
    score: int


@dataclass(frozen=True)
class Rejection:
    """It fits nowhere: how many nodes for which reason; an error if asking itself failed."""

    nodes: int
    reasons: Counter[str]
    error: AllocationError | None = None
    blocked_by: tuple[ResourceClaim, ...] = ()
    """Allocated claims without which some node might do."""

    def __str__(self) -> str:
        parts = ", ".join(f"{count} {reason}" for reason, count in sorted(self.reasons.items()))
        return f"0/{self.nodes} nodes are available: {parts}." if parts else f"0/{self.nodes} nodes are available"


@dataclass
class _Survey:
    """What was found on the way."""

    reasons: Counter[str] = field(default_factory=Counter)
    error: AllocationError | None = None
    blocked_by: dict[str, ResourceClaim] = field(default_factory=dict)
    uncounted: list[Callable[[], Iterable[str]]] = field(default_factory=list)
    """Where reasons of more nodes can be had. Most pods find a node, and then nobody wants to know."""

    def rejection(self, nodes: int) -> Rejection:
        for reasons in self.uncounted:
            self.reasons.update(reasons())
        return Rejection(nodes, self.reasons, self.error, tuple(self.blocked_by.values()))


def plan_placement(
    picture: Picture,
    pod: PodFacts,
    claims: Sequence[ResourceClaim] = (),
    *,
    preferences: Preferences = Preferences(),  # noqa: B008 - a frozen value
    limits: Limits = NO_LIMITS,
) -> Placement | Rejection:
    """`claims` are all claims of the pod; those without an allocation get one.

    As in Kubernetes, an error on any node that the pod could go to (an expression that fails, say) ends the attempt,
    even if the pod would fit elsewhere: it would otherwise hide until that other node is full. Raises DeadlineExceeded.
    """
    survey = _Survey()
    best: tuple[int, str] | None = None
    unallocated = [claim for claim in claims if claim.status.allocation is None]
    try:
        most = MAX_SCORE * (preferences.affinity_weight + preferences.resource_weight)
        for names, bonus, enough in _candidate_groups(picture, pod, claims, unallocated, preferences, limits, survey):
            if best is not None and bonus + most <= best[0]:
                continue  # no node of the group can be better
            for state in _with_room(picture, pod, names, enough, survey):
                score = bonus + _node_score(pod, state, preferences)
                if best is None or score > best[0]:
                    best = (score, state.name)
    except DeadlineExceeded:
        raise
    except AllocationError as error:
        survey.error = error
    if best is None or survey.error is not None:
        return survey.rejection(picture.node_count)
    score, name = best
    allocations = picture.index.allocate(name, unallocated, limits) if unallocated else ()
    assert allocations is not None  # the same question was answered for this node's group
    return Placement(name, allocations, score)


def confirm_placement(
    picture: Picture, pod: PodFacts, claims: Sequence[ResourceClaim], node: str, *, limits: Limits = NO_LIMITS
) -> Placement | None:
    """The placement of the pod on this node, if that is possible by now. Raises AllocationError."""
    survey = _Survey()
    unallocated = [claim for claim in claims if claim.status.allocation is None]
    allocated = [claim for claim in claims if claim.status.allocation is not None]
    if node not in picture.eligible(pod).names or not _is_reachable(picture, node, allocated, survey):
        return None
    if not _with_room(picture, pod, (node,), 1, survey):
        return None
    allocations = picture.index.allocate(node, unallocated, limits) if unallocated else ()
    return None if allocations is None else Placement(node, allocations, 0)


def _candidate_groups(
    picture: Picture,
    pod: PodFacts,
    claims: Sequence[ResourceClaim],
    unallocated: list[ResourceClaim],
    preferences: Preferences,
    limits: Limits,
    survey: _Survey,
) -> Iterator[tuple[Iterable[str], int, int]]:
    """Groups of nodes where devices can be had: names, what the devices add to the score, how many to weigh."""
    eligible = picture.eligible(pod)
    survey.uncounted.append(eligible.problems.values)
    allocated = [claim for claim in claims if claim.status.allocation is not None]
    allowed: Collection[str] = eligible.names
    if allocated:
        allowed = {name: None for name in allowed if _is_reachable(picture, name, allocated, survey)}
    if not unallocated:
        yield allowed, 0, WEIGHED_WITHOUT_DEVICES
        return
    for group in picture.index.fitting(unallocated, limits).groups:
        if group.fits:
            members = (name for name in group.nodes if name in allowed)
            bonus = _device_score(picture, group.nodes.first, unallocated, preferences, limits)
            yield members, bonus, WEIGHED_PER_GROUP
            continue
        is_late = isinstance(group.error, DeadlineExceeded)
        survey.uncounted.append(partial(_reasons, group.nodes, allowed, TIMED_OUT if is_late else CANNOT_ALLOCATE))
        if group.error is None or is_late or group.error.on_node or survey.error is not None:
            continue
        if any(name in allowed for name in group.nodes):
            survey.error = group.error


def _reasons(nodes: Iterable[str], allowed: Collection[str], reason: str) -> Iterator[str]:
    return (reason for name in nodes if name in allowed)


def _with_room(picture: Picture, pod: PodFacts, names: Iterable[str], enough: int, survey: _Survey) -> list[NodeState]:
    found: list[NodeState] = []
    for name in names:
        state = picture.node(name)
        if state is None:
            continue
        problem = room_problem(pod, state)
        if problem is not None:
            survey.reasons[problem] += 1
            continue
        found.append(state)
        if len(found) >= enough:
            break
    return found


def _is_reachable(picture: Picture, name: str, allocated: list[ResourceClaim], survey: _Survey) -> bool:
    state = picture.node(name)
    if state is None:
        return False
    for claim in allocated:
        allocation = claim.status.allocation
        assert allocation is not None
        selector = allocation.node_selector
        if selector is not None and not compile_node_selector(selector).matches(state.node.metadata.labels, name):
            survey.reasons[ELSEWHERE] += 1
            survey.blocked_by[claim.metadata.uid] = claim
            return False
    return True


def _device_score(
    picture: Picture, name: str, unallocated: list[ResourceClaim], preferences: Preferences, limits: Limits
) -> int:
    score = 0
    if preferences.devices is not Strategy.NONE:
        free = picture.free_devices(name)
        fullness = MAX_SCORE - min(free, MAX_SCORE)
        value = fullness if preferences.devices is Strategy.PACK else MAX_SCORE - fullness
        score += preferences.device_weight * value
    if any(request.first_available for claim in unallocated for request in claim.spec.devices.requests):
        score += preferences.rank_weight * _rank_score(picture, name, unallocated, limits)
    return score


def _rank_score(picture: Picture, name: str, unallocated: list[ResourceClaim], limits: Limits) -> int:
    """The earlier the alternatives of prioritized lists that would be chosen here, the better."""
    allocations = picture.index.allocate(name, unallocated, limits) or ()
    points = most = 0
    for claim, allocation in zip(unallocated, allocations, strict=True):
        chosen = {result.request for result in allocation.devices.results}
        for request in claim.spec.devices.requests:
            for rank, sub in enumerate(request.first_available):
                if f"{request.name}/{sub.name}" in chosen:
                    points += FIRST_AVAILABLE_MAX - rank
                    most += FIRST_AVAILABLE_MAX
    return MAX_SCORE * points // most if most else 0


def _node_score(pod: PodFacts, state: NodeState, preferences: Preferences) -> int:
    labels = state.node.metadata.labels
    score = preferences.affinity_weight * min(pod.node_filter.score(labels, state.name), MAX_SCORE)
    if preferences.resources is not Strategy.NONE:
        used = _used_share(pod, state)
        value = used if preferences.resources is Strategy.PACK else MAX_SCORE - used
        score += preferences.resource_weight * value
    return score


def _used_share(pod: PodFacts, state: NodeState) -> int:
    """How full the node's CPU and memory would be, from 0 to 100."""
    shares = [
        MAX_SCORE * (state.used.get(name, 0) + pod.requests.get(name, 0)) // state.allocatable[name]
        for name in ("cpu", "memory")
        if state.allocatable.get(name)
    ]
    return min(sum(shares) // len(shares), MAX_SCORE) if shares else 0
