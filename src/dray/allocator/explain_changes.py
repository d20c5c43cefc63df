"""Single changes after which claims would fit: each is tried, on the nodes that are closest to a fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dray.allocator.errors import AllocationError
from dray.allocator.explain_counts import Counted, Counting, format_taint
from dray.allocator.explain_edits import (
    Edit,
    edit_request,
    with_attribute,
    with_capacity,
    with_class,
    with_count,
    with_selector,
    with_toleration,
    without_constraint,
    without_selector,
)
from dray.allocator.index import Index
from dray.allocator.reasons import Change, ChangeKind, GroupReason, Obstacle, Stage
from dray.allocator.search import Limits
from dray.api.claims import MAX_ALLOCATION_RESULTS, ResourceClaim
from dray.api.devices import DeviceTaint
from dray.api.meta import ObjectKey
from dray.api.quantities import Quantity
from dray.api.taints import find_untolerated
from dray.cel.suggestions import Suggestion, correct, suggest_name

MOST_GROUPS: Final = 24
"""Changes are tried on the first nodes of so many groups, those that are closest to a fit."""

MOST_HOLDERS: Final = 24
"""So many claims of a node are considered to wait for."""

_ORDER: Final = list(ChangeKind)


Place = tuple[ObjectKey, str]
"""The request that a change is about: its claim and its name; the name is empty if it is about the whole claim."""


class Asking(NamedTuple):
    """Nodes that look the same to the claims, and what was counted on the first few, per claim."""

    names: tuple[str, ...]
    counted: tuple[tuple[tuple[Counted, ...], ...], ...]
    reason: GroupReason

    def can_gain(self, place: Place) -> bool:
        """Whether a change there could be enough: not if another request has too few devices anyway."""
        return self.reason.obstacle != Obstacle.REQUEST or {each.place for each in self.reason.blocked} <= {place}

    @property
    def can_wait(self) -> bool:
        """Whether it could be enough that claims end: not if a request has too few devices even on an unused node."""
        hopeful = {each.place for each in self.reason.blocked if each.bottleneck.stage >= Stage.FREE}
        return all(each.place in hopeful for each in self.reason.blocked)


class _Idea(NamedTuple):
    kind: ChangeKind
    text: str
    claims: Sequence[ResourceClaim]
    place: Place


def find_changes(
    counting: Counting, claims: Sequence[ResourceClaim], groups: Sequence[Asking], limits: Limits
) -> tuple[Change, ...]:
    """All that help, the smallest first."""
    trial = _Trial(counting.index, groups, limits)
    groups = groups[:MOST_GROUPS]
    changes: list[Change] = []
    for ideas in _iter_ideas(counting, claims, groups):
        # Ideas of one kind for one place come in order: the first that helps is the smallest.
        for idea in ideas:
            change = trial.of(idea)
            if change is not None:
                changes.append(change)
                break
    changes += _iter_waits(counting, claims, groups, limits)
    unique = {change.text: change for change in changes}
    return tuple(sorted(unique.values(), key=lambda change: (_ORDER.index(change.kind), -change.nodes)))


class _Trial:
    def __init__(self, index: Index, groups: Sequence[Asking], limits: Limits) -> None:
        self._index = index
        self._groups = groups[:MOST_GROUPS]
        self._may_be_more = len(groups) > MOST_GROUPS
        self._limits = limits

    def of(self, idea: _Idea) -> Change | None:
        nodes = 0
        example = ""
        for group in self._groups:
            if group.can_gain(idea.place) and fits(self._index, group.names[0], idea.claims, self._limits):
                nodes += len(group.names)
                example = example or group.names[0]
        return Change(idea.kind, idea.text, nodes, example, self._may_be_more) if nodes else None


def fits(index: Index, node: str, claims: Sequence[ResourceClaim], limits: Limits) -> bool:
    try:
        return index.allocate(node, claims, limits) is not None
    except AllocationError:
        return False


# Changes to the claim


def _iter_ideas(
    counting: Counting, claims: Sequence[ResourceClaim], groups: Sequence[Asking]
) -> Iterator[Iterator[_Idea]]:
    for number, claim in enumerate(claims):
        key = claim.metadata.key
        of_claim = f" of claim {claim.metadata.name}" if len(claims) > 1 else ""

        def changed(edited: ResourceClaim, number: int = number) -> list[ResourceClaim]:
            return [*claims[:number], edited, *claims[number + 1 :]]

        by_name: dict[str, list[Counted]] = {}
        for group in groups:
            for counted in group.counted[0][number]:
                by_name.setdefault(counted.numbers.request, []).append(counted)
        for name, found in by_name.items():
            place = (key, name.partition("/")[0])
            where = f"in request {name}{of_claim}"
            for ideas in _request_ideas(counting, found):
                yield (
                    _Idea(kind, f"{text} {where}", changed(edit_request(claim, name, edit)), place)
                    for kind, text, edit in ideas
                )
        for name, class_name in _missing_classes(counting.index, claim):
            meant = suggest_name(class_name, counting.index.class_names())
            if meant is not None:
                text = f"with class {meant} in place of {class_name} in request {name}{of_claim}"
                edited = edit_request(claim, name, with_class(meant))
                yield iter([_Idea(ChangeKind.RENAME, text, changed(edited), (key, ""))])
        for position, constraint in enumerate(claim.spec.devices.constraints):
            about = constraint.match_attribute or constraint.distinct_attribute or "the CEL expression"
            for hint in _gap_hints(groups, key, position):
                if hint.meant is not None and hint.meant.kind == "attributes":
                    text = f"with {hint.meant} in place of {hint.written.name} in constraint #{position}{of_claim}"
                    edited = with_attribute(claim, position, hint.meant.name)
                    yield iter([_Idea(ChangeKind.RENAME, text, changed(edited), (key, ""))])
            text = f"without constraint #{position} ({about}){of_claim}"
            yield iter([_Idea(ChangeKind.CONSTRAINT, text, changed(without_constraint(claim, position)), (key, ""))])


def _gap_hints(groups: Sequence[Asking], claim: ObjectKey, constraint: int) -> list[Suggestion]:
    gaps = (group.reason.gap for group in groups)
    return sorted(
        {
            hint
            for gap in gaps
            if gap is not None and gap.kind != "cel" and (gap.claim, gap.constraint) == (claim, constraint)
            for hint in gap.hints
        }
    )


def _missing_classes(index: Index, claim: ResourceClaim) -> Iterator[tuple[str, str]]:
    for request in claim.spec.devices.requests:
        specs = {f"{request.name}/{sub.name}": sub.device_class_name for sub in request.first_available}
        if request.exactly is not None:
            specs[request.name] = request.exactly.device_class_name
        yield from ((name, class_name) for name, class_name in specs.items() if index.find_class(class_name) is None)


_Step = tuple[ChangeKind, str, Edit]


def _request_ideas(counting: Counting, found: list[Counted]) -> Iterator[Iterator[_Step]]:
    alternative = found[0].alternative
    for number, expression in enumerate(alternative.selectors):
        hints = {
            hint for each in found for stage in each.numbers.stages if stage.selector == number for hint in stage.hints
        }
        for hint in sorted(hints):
            if hint.meant is not None:
                corrected = with_selector(number, correct(expression.text, hint))
                yield iter([(ChangeKind.RENAME, f"with {hint.meant} in place of {_written(hint)}", corrected)])
        yield iter([(ChangeKind.SELECTOR, f"without selector #{number}", without_selector(number))])
    if not alternative.takes_all:
        yield (
            (ChangeKind.COUNT, f"with count {count} instead of {alternative.count}", with_count(count))
            for count in range(min(alternative.count - 1, MAX_ALLOCATION_RESULTS), 0, -1)
        )
    for taint in _find_taints(counting, found):
        yield iter(
            [(ChangeKind.TOLERATE, f"if the taint {format_taint(taint)} were tolerated", with_toleration(taint))]
        )
    for capacity, wanted in alternative.capacity.items():
        yield (
            (ChangeKind.CAPACITY, f"with {capacity} {value} instead of {wanted}", with_capacity(capacity, value))
            for value in _smaller_amounts(counting, found, capacity, wanted)
        )


def _written(hint: Suggestion) -> str:
    """Without its kind if that is right."""
    return hint.written.name if hint.meant is not None and hint.meant.kind == hint.written.kind else str(hint.written)


def _find_taints(counting: Counting, found: list[Counted]) -> list[DeviceTaint]:
    taints: dict[tuple[str, str, str], DeviceTaint] = {}
    for each in found:
        for seat, fall in each.fallen:
            if fall.stage == Stage.UNTAINTED:
                device = counting.view.representatives[seat.device_class].device
                taint = find_untolerated(device.taints, each.alternative.tolerations)
                if taint is not None:
                    taints.setdefault((taint.key, taint.value, taint.effect), taint)
    return list(taints.values())


def _smaller_amounts(counting: Counting, found: list[Counted], name: str, wanted: Quantity) -> list[Quantity]:
    """What devices have left of a capacity, if that is less than wanted; the most first."""
    amounts: dict[int, Quantity] = {}
    for each in found:
        for seat, fall in each.fallen:
            capacity = seat.pool.devices[seat.position].capacity.get(name)
            if capacity is None or fall.stage not in (Stage.CAPACITY, Stage.ROOM):
                continue
            used = counting.index.usage.of(seat.pool).capacity.get(seat.name, {}).get(name, 0)
            left = capacity.value.nano - used
            if 0 < left < wanted.nano:
                amounts[left] = Quantity.of(left, capacity.value.format, scale=-9)
    return [amounts[left] for left in sorted(amounts, reverse=True)]


# Claims to wait for


def _iter_waits(
    counting: Counting, claims: Sequence[ResourceClaim], groups: Sequence[Asking], limits: Limits
) -> Iterator[Change]:
    """On one node, the fewest claims whose end makes room; of equally many, those that hold the fewest devices."""
    waits: list[tuple[int, int, tuple[ObjectKey, ...], str]] = []
    for group in groups:
        for name, counted in zip(group.names, group.counted, strict=False) if group.can_wait else ():
            held = _find_holders(counting, counted)
            waited = _find_smallest(counting.index, name, claims, list(held), limits)
            if waited:
                waits.append((len(waited), sum(held[key] for key in waited), waited, name))
    if waits:
        _, _, waited, node = min(waits, key=lambda wait: wait[:2])
        listed = ", ".join(map(str, waited[:4])) + (f" and {len(waited) - 4} more" if len(waited) > 4 else "")
        what = f"claim {listed} ends" if len(waited) == 1 else f"claims {listed} end"
        yield Change(ChangeKind.WAIT, f"after {what}", 1, node, claims=waited)


def _find_holders(counting: Counting, counted: tuple[tuple[Counted, ...], ...]) -> dict[ObjectKey, int]:
    """Claims that keep something from the requests, those with the most devices of use first, and how many."""
    counts: dict[ObjectKey, int] = {}
    for claim in counted:
        for each in claim:
            tight = {seat.pool.id: seat.pool for seat, fall in each.fallen if fall.stage == Stage.ROOM}
            tight |= {seat.pool.id: seat.pool for seat in each.seats if seat.pool.counter_sets}
            useful = [seat.id for seat, fall in each.fallen if fall.stage in (Stage.FREE, Stage.ROOM)]
            useful += [pool.device_id(at) for pool in tight.values() for at in range(len(pool.devices))]
            for device in dict.fromkeys(useful):
                for holder in counting.holders.get(device, ()):
                    counts[holder] = counts.get(holder, 0) + 1
    most = sorted(counts, key=lambda key: (-counts[key], key))[:MOST_HOLDERS]
    return {key: counts[key] for key in most}


def _find_smallest(
    index: Index, node: str, claims: Sequence[ResourceClaim], holders: list[ObjectKey], limits: Limits
) -> tuple[ObjectKey, ...]:
    def helps(ended: Sequence[ObjectKey]) -> bool:
        fork = index.fork()
        for key in ended:
            fork.remove_claim(key)
        return fits(fork, node, claims, limits)

    # Of those that help alone, the one that holds least is the least to wait for.
    for key in reversed(holders):
        if helps([key]):
            return (key,)
    needed = list(holders)
    if not holders or not helps(needed):
        return ()
    for key in reversed(holders):
        rest = [each for each in needed if each != key]
        if helps(rest):
            needed = rest
    return tuple(sorted(needed))
