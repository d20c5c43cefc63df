"""Why claims don't fit, and the smallest change after which they would.

The masks of the search answer *whether* a claim fits. Here the same questions are asked one after the other: are there
enough devices for each request by itself, and if so, for all requests without their constraints, and if so, under each
constraint? What fails first is the obstacle. Nodes that look the same to the claims are looked at once, and nodes with
the same story are told about once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from dray.allocator.constraints import Constraint
from dray.allocator.errors import AllocationError, ClassMissing, ConstraintRejectsAll, RequestError, SelectorFailed
from dray.allocator.explain_changes import Asking, find_changes
from dray.allocator.explain_counts import Counted, Counting, find_pool_problems, left_of_counters
from dray.allocator.explain_edits import with_constraints
from dray.allocator.explain_gaps import find_gap, with_closest
from dray.allocator.index import NO_LIMITS, Index
from dray.allocator.reasons import ConstraintGap, Explanation, GroupReason, Obstacle, RequestCount
from dray.allocator.search import Limits
from dray.api.claims import ResourceClaim
from dray.cel.suggestions import suggest_name

__all__ = ["explain"]

MOST_TRIED: Final = 4
"""For so many stories, sets of devices are tried to find the one that comes closest to a CEL constraint."""

MOST_HOLDING_NODES: Final = 4
"""On so many nodes of a group it is looked up who holds the devices."""


class Group(NamedTuple):
    """Nodes that look the same to the claims, and what was found out about them."""

    names: tuple[str, ...]
    counted: tuple[tuple[tuple[Counted, ...], ...], ...]
    """On the first few nodes: per claim, for all requests and alternatives."""
    reason: GroupReason


def explain(
    index: Index,
    claims: Sequence[ResourceClaim],
    nodes: Collection[str] | None = None,
    limits: Limits = NO_LIMITS,
    *,
    try_changes: bool = True,
) -> Explanation:
    """Why the claims of one pod don't fit together on any node, or on any of these.

    Finding out what would help takes most of the time; without `try_changes` that is left out.
    """
    keys = tuple(claim.metadata.key for claim in claims)
    explainer = _Explainer(index, claims, limits)
    try:
        found = index.fitting(claims, limits).groups
    except AllocationError as error:
        # Something that concerns all nodes, such as a slice whose node selector can't be read.
        names = tuple(sorted(index.inventory.node_names() if nodes is None else nodes, key=_natural))
        return Explanation(keys, len(names), 0, (GroupReason(names, Obstacle.ERROR, error=error),), ())
    total = fitting = 0
    groups: list[Group] = []
    for group in found:
        names = tuple(sorted((name for name in group.nodes if nodes is None or name in nodes), key=_natural))
        total += len(names)
        if group.fits:
            fitting += len(names)
        elif names:
            groups.append(explainer.look_at(names, group.error))
    groups.sort(key=lambda group: _natural(group.names[0]))
    groups.sort(key=lambda group: _closeness(group.reason), reverse=True)
    asked = [Asking(group.names, group.counted, group.reason) for group in groups]
    changes = find_changes(explainer.counting, claims, asked, limits) if try_changes and not fitting else ()
    by_node = {group.names[0]: group for group in groups}
    reasons = list(_merge(group.reason for group in groups))
    for number, reason in enumerate(reasons[:MOST_TRIED]):
        reasons[number] = explainer.look_closer(reason, next(by_node[name] for name in reason.nodes if name in by_node))
    return Explanation(keys, total, fitting, tuple(reasons), changes)


class _Explainer:
    def __init__(self, index: Index, claims: Sequence[ResourceClaim], limits: Limits) -> None:
        self._index: Final = index
        self._claims: Final = claims
        self._limits: Final = limits
        self._program, view = index.compile(claims)
        self.counting: Final = Counting(index, view)

    def look_at(self, names: tuple[str, ...], error: AllocationError | None) -> Group:
        """Nodes of a group differ in one thing: who holds what. So a few of them are asked for that."""
        seen = [self._count(name) for name in names[:MOST_HOLDING_NODES]]
        reason = self._find_reason(names, seen[0], error)
        others = [[each.numbers for claim in counted for each in claim] for counted in seen[1:]]
        if others and len(reason.requests) == len(others[0]):
            reason = replace(
                reason,
                requests=tuple(_joined(same) for same in zip(reason.requests, *others, strict=True)),
            )
        return Group(names, tuple(seen), reason)

    def _count(self, name: str) -> tuple[tuple[Counted, ...], ...]:
        reach = self._index.inventory.reach(name)
        return tuple(
            tuple(
                self.counting.count(claim.metadata.key, alternative, reach)
                for request in program.requests
                for alternative in request.alternatives
            )
            for claim, program in zip(self._claims, self._program.claims, strict=True)
        )

    def _find_reason(
        self, names: tuple[str, ...], counted: tuple[tuple[Counted, ...], ...], error: AllocationError | None
    ) -> GroupReason:
        node = names[0]
        pools = find_pool_problems(self._index, self._index.inventory.reach(node))
        requests = tuple(each.numbers for claim in counted for each in claim)
        if error is not None and not error.on_node:
            mine = tuple(each for each in requests if _is_about(error, each))
            gap = self._find_refusal(error, counted)
            return GroupReason(names, Obstacle.ERROR, mine, gap, error, pools, self._hint(error))
        short = GroupReason(names, Obstacle.REQUEST, requests, pools=pools)
        if short.blocked:
            return short
        bare = [with_constraints(claim, ()) for claim in self._claims]
        if not self._fits(node, bare):
            detail = self._find_rivalry(counted)
            return GroupReason(names, Obstacle.TOGETHER, requests, pools=pools, detail=detail)
        gap = self._find_gap(*self._find_culprit(node), counted)
        return GroupReason(names, Obstacle.CONSTRAINT, requests, gap, pools=pools)

    def look_closer(self, reason: GroupReason, group: Group) -> GroupReason:
        """With the set of devices that comes closest to a CEL constraint."""
        gap = reason.gap
        if gap is None or gap.kind != "cel":
            return reason
        number = next(number for number, claim in enumerate(self._claims) if claim.metadata.key == gap.claim)
        constraint = self._program.claims[number].constraints[gap.constraint]
        chosen = _feasible(group.counted[0][number])
        return replace(reason, gap=with_closest(gap, constraint, chosen, self.counting.view, self._index.gates))

    def _find_gap(self, claim: int, constraint: Constraint, counted: tuple[tuple[Counted, ...], ...]) -> ConstraintGap:
        key = self._claims[claim].metadata.key
        chosen = _feasible(counted[claim])
        return find_gap(key, constraint, chosen, self.counting.view)

    def _find_refusal(self, error: AllocationError, counted: tuple[tuple[Counted, ...], ...]) -> ConstraintGap | None:
        """For a constraint that keeps `All` from being satisfied: what it sees."""
        if not isinstance(error, ConstraintRejectsAll):
            return None
        claim = next(number for number, each in enumerate(self._claims) if each.metadata.key == error.claim)
        return self._find_gap(claim, self._program.claims[claim].constraints[error.constraint], counted)

    def _find_rivalry(self, counted: tuple[tuple[Counted, ...], ...]) -> str:
        """What requests that could each be satisfied take from each other."""
        wanting = [each for claim in counted for each in _feasible(claim)]
        devices = {seat.id for each in wanting for seat in each.seats}
        wanted = sum(each.wanted for each in wanting)
        if len(wanting) > 1 and wanted > len(devices):
            there = "there is 1" if len(devices) == 1 else f"there are {len(devices)}"
            return f"together they want {wanted} devices, and {there}"
        pools = {seat.pool.id: seat.pool for each in wanting for seat in each.seats}
        left = [
            f"{name}: {left} of {total} left"
            for pool in pools.values()
            for name, left, total in left_of_counters(self._index, pool)
        ]
        if left:
            return f"together they draw more than is left of the counters ({'; '.join(left[:4])})"
        return "they can't all be had at the same time"

    def _find_culprit(self, node: str) -> tuple[int, Constraint]:
        """The constraint without which it would fit; if there is none, one that can't be satisfied even by itself."""
        all_constraints = [
            (number, constraint)
            for number, program in enumerate(self._program.claims)
            for constraint in program.constraints
        ]
        for keep_others in (True, False):
            for number, constraint in all_constraints:
                edited: list[ResourceClaim] = []
                for position, claim in enumerate(self._claims):
                    given = claim.spec.devices.constraints
                    is_it = [position == number and each == constraint.index for each in range(len(given))]
                    kept = [each for each, it in zip(given, is_it, strict=True) if it != keep_others]
                    edited.append(with_constraints(claim, kept))
                if self._fits(node, edited) == keep_others:
                    return number, constraint
        return all_constraints[0]

    def _fits(self, node: str, claims: Sequence[ResourceClaim]) -> bool:
        try:
            return self._index.allocate(node, claims, self._limits) is not None
        except AllocationError:
            return False

    def _hint(self, error: AllocationError) -> str:
        if isinstance(error, ClassMissing):
            meant = suggest_name(error.class_name, self._index.class_names())
            return f"did you mean {meant}?" if meant else ""
        return ""


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts node-2 before node-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def _feasible(counted: Sequence[Counted]) -> list[Counted]:
    """Of each request's alternatives, the first that has enough devices: the one to go on with."""
    found: dict[str, Counted] = {}
    for each in counted:
        if not each.numbers.is_short:
            found.setdefault(each.alternative.parent or each.alternative.name, each)
    return list(found.values())


def _is_about(error: AllocationError, count: RequestCount) -> bool:
    """Errors name a subrequest without its request; so what else they say is compared, too."""
    request: str | None = getattr(error, "request", None)
    if not request or getattr(error, "claim", None) != count.claim or count.request.rpartition("/")[2] != request:
        return False
    if isinstance(error, SelectorFailed) and not error.class_name:
        return any(stage.selector == error.index and any(loss.cause for loss in stage.losses) for stage in count.stages)
    return True


def _closeness(reason: GroupReason) -> tuple[float, ...]:
    """Larger means closer to a fit."""
    if reason.gap is not None:
        return (reason.obstacle, reason.gap.best / max(reason.gap.wanted, 1) if reason.gap.kind != "cel" else 0)
    if not reason.blocked:
        return (reason.obstacle,)
    return (reason.obstacle, *min(map(_served, reason.blocked)))


def _served(count: RequestCount) -> tuple[float, int]:
    """How much of a request could be had, and how far the way to it leads."""
    return count.available / max(count.wanted or count.matching, 1), count.bottleneck.stage


def _merge(reasons: Iterable[GroupReason]) -> Iterator[GroupReason]:
    """One of all nodes that have the same story; who holds the devices there may differ."""
    by_story: dict[Hashable, list[GroupReason]] = {}
    for reason in reasons:
        by_story.setdefault(_story(reason), []).append(reason)
    for same in by_story.values():
        requests = tuple(_joined(counts) for counts in zip(*(each.requests for each in same), strict=True))
        names = sorted((name for each in same for name in each.nodes), key=_natural)
        yield replace(same[0], nodes=tuple(names), requests=requests)


def _joined(counts: Sequence[RequestCount]) -> RequestCount:
    stages = tuple(
        replace(same[0], losses=tuple(dict.fromkeys(loss for stage in same for loss in stage.losses)))
        for same in zip(*(count.stages for count in counts), strict=True)
    )
    return replace(counts[0], stages=stages)


def _story(reason: GroupReason) -> Hashable:
    error = reason.error
    return (
        reason.obstacle,
        tuple(
            (each.request, tuple((stage.left, stage.expression) for stage in each.stages)) for each in reason.requests
        ),
        reason.gap and (reason.gap.constraint, reason.gap.best, reason.gap.values),
        error and (str(error) if isinstance(error, RequestError) else type(error)),
        tuple(problem.reason for problem in reason.pools),
        reason.detail,
    )
