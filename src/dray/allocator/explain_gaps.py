"""The best that could be had under a constraint, and how far it falls short of what the claim wants."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from dray.allocator.constraints import Constraint
from dray.allocator.explain_counts import Counted
from dray.allocator.explain_sets import find_closest
from dray.allocator.reasons import ConstraintGap, Filling, ValueCount
from dray.allocator.shapes import View
from dray.api.devices import DeviceID
from dray.api.features import FeatureGates
from dray.api.meta import ObjectKey
from dray.cel.reads import Reads
from dray.cel.suggestions import Suggestion, suggest_fields

Elements = list[dict[DeviceID, tuple[Hashable, ...]]]
"""Per request: the values of the constraint's attribute that each device has."""


def find_gap(claim: ObjectKey, constraint: Constraint, counted: Sequence[Counted], view: View) -> ConstraintGap:
    """`counted`: per request of the claim the alternative that would be taken, with the devices it could have."""
    covered = [each for each in counted if constraint.covers(each.alternative)]
    wanted = sum(each.wanted for each in covered)
    if constraint.expression is not None:
        text, program = constraint.expression.text, constraint.expression.program
        hints = _suggest(program.reads if program else None, covered, view)
        return ConstraintGap(claim, constraint.index, "cel", text, constraint.requests, wanted, 0, hints=hints)
    elements: Elements = [
        {seat.id: constraint.elements(each.alternative, view, seat.device_class).values for seat in each.seats}
        for each in covered
    ]
    found = {value: None for each in elements for values in each.values() for value in values}
    counts = [_count(value, elements, covered) for value in found]
    if constraint.kind == "match":
        counts.sort(key=_filled, reverse=True)
        best = _filled(counts[0]) if counts else 0
    else:
        best = min(wanted, len(found))
    return ConstraintGap(
        claim,
        constraint.index,
        constraint.kind,
        constraint.attribute,
        constraint.requests,
        wanted,
        best,
        tuple(counts),
        len({device for each in elements for device, values in each.items() if not values}),
        hints=() if found else _suggest(_read_of(constraint.attribute), covered, view),
    )


def with_closest(
    gap: ConstraintGap, constraint: Constraint, counted: Sequence[Counted], view: View, gates: FeatureGates
) -> ConstraintGap:
    """For a CEL constraint: sets of devices are tried, and the one that comes closest is kept."""
    covered = [each for each in counted if constraint.covers(each.alternative)]
    tried, closest = find_closest(gap.text, covered, view, gates)
    return replace(gap, best=tried, closest=closest)


def _count(value: Hashable, elements: Elements, covered: Sequence[Counted]) -> ValueCount:
    fillings = (
        Filling(each.numbers.request, sum(value in values for values in devices.values()), each.wanted)
        for devices, each in zip(elements, covered, strict=True)
    )
    return ValueCount(_format(value), tuple(fillings))


def _filled(count: ValueCount) -> int:
    """How many of the wanted devices can be had with this value."""
    return sum(min(filling.available, filling.wanted) for filling in count.fillings)


def _suggest(reads: Reads | None, covered: Sequence[Counted], view: View) -> tuple[Suggestion, ...]:
    return suggest_fields(reads, [view.value(seat.device_class) for each in covered for seat in each.seats])


def _read_of(attribute: str) -> Reads:
    return Reads(frozenset((attribute,)), frozenset(), driver=False, sharing=False)


def _format(element: Hashable) -> str:
    match element:
        case (_, bool(value)):
            return str(value).lower()
        case (_, value):
            return str(value)
        case _:
            return "a list"
