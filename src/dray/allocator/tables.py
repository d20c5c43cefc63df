"""Tables: what a program makes of the devices of a node, as masks, whatever is in use at the moment.

All devices of a node stand in one row, pool after pool, in the order in which they are tried; a mask has one bit for
each. A table belongs to a program and to the shape of a node, so that equal nodes share it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple

from dray.allocator.capacity import CapacityProblem, Need
from dray.allocator.constraints import AttributeColumn, Constraint, ElementNumbers, iter_bits
from dray.allocator.counters import Bucket, Draw
from dray.allocator.packing import Yield
from dray.allocator.program import Problem, Program
from dray.allocator.requests import Alternative, Failure
from dray.allocator.shapes import Occupancy, PoolShape, View
from dray.allocator.statistics import Statistics
from dray.api.claims import MAX_ALLOCATION_RESULTS


class PoolPart(NamedTuple):
    """A pool of a node: its shape, and which of its devices the node can use."""

    shape: PoolShape
    mask: int
    broken: int


class NodeShape(NamedTuple):
    parts: tuple[PoolPart, ...]
    optional_operations: bool
    """Whether the node can leave out node operations."""


class Stop(NamedTuple):
    """Why allocation ends in an error: `problem` makes it, or the rest says what happened where."""

    claim: int
    problem: Problem | None = None
    alternative: Alternative | None = None
    position: int = -1
    failure: Failure | None = None
    pool: int = -1
    """A pool that keeps `All` from being determined."""
    wanted: int = 0
    """Devices wanted, if more than a claim can hold."""
    constraint: int = -1
    """The constraint at fault, if one is."""
    derived: bool = False
    """Whether it is a derived attribute of that constraint that failed."""
    devices: tuple[int, ...] = ()
    """The set that the constraint was evaluated on."""


class Option:
    """An alternative on this node."""

    __slots__ = (
        "admin", "alternative", "columns", "count", "failing", "match", "number", "positions", "profile", "slot",
        "takes_all", "usable",
    )  # fmt: skip

    def __init__(self, number: int, slot: int, alternative: Alternative, match: int, usable: int, failing: int) -> None:
        self.number: Final = number
        self.slot: Final = slot
        self.alternative: Final = alternative
        self.match: Final = match
        self.usable: Final = usable
        self.failing: Final = failing
        """Devices that end the allocation with an error when they are looked at."""
        self.admin: Final = alternative.admin
        self.takes_all: Final = alternative.takes_all
        self.positions: Final = tuple(iter_bits(match)) if alternative.takes_all else ()
        self.count: Final = len(self.positions) if alternative.takes_all else alternative.count
        self.columns: list[tuple[int, AttributeColumn]] = []
        """The attribute constraints that cover it: (position among the claim's constraints, column)."""
        self.profile = 0
        """Options with the same number request the same capacity."""


class Slot(NamedTuple):
    """A request of a claim."""

    number: int
    claim: int
    opens_claim: bool
    options: tuple[Option, ...]
    finishes: tuple[Constraint, ...]
    """CEL constraints whose set is complete when this slot is."""
    constraints: int
    """How many constraints the claim has."""


class Table:
    def __init__(self, program: Program, view: View, node: NodeShape, statistics: Statistics) -> None:
        self.program: Final = program
        self.view: Final = view
        self.node: Final = node
        self.offsets: Final = _offsets(node.parts)
        self.size: Final = self.offsets[-1]
        self.classes: Final = tuple(each for part in node.parts for each in part.shape.classes)
        self.answers: Final[dict[tuple[Occupancy, ...], Any]] = {}
        """What came out, by what was in use."""
        self.stop: Stop | None = None
        """Set if allocation ends here, before any search."""
        self.slots: Final[list[Slot]] = []
        self.options: Final[list[Option]] = []
        self.shareable = 0
        self.bucket_offsets: Final = _bucket_offsets(node.parts)
        self.draws: Final[dict[int, tuple[tuple[int, Draw], ...]]] = {}
        """By device: what it takes from which bucket."""
        self.drawing = 0
        self.profiles: Final[list[Option]] = []
        """For each capacity profile an option that has it."""
        self._needs: Final[dict[tuple[int, int], Need | None]] = {}
        self.has_sets: Final = any(each.kind == "cel" for claim in program.claims for each in claim.constraints)
        statistics.tables += 1
        self._statistics: Final = statistics
        self._fill_devices()
        self._fill_slots()
        self.counter_names: Final = [
            tuple(name for name, _ in counters) for part in node.parts for _, counters in part.shape.counters.sets
        ]
        """By bucket: the names of its counters."""
        self.drawers: Final = self._find_drawers()
        """By bucket: who takes what from it."""
        self.drawer_masks: Final = [sum(1 << position for position, _ in drawers) for drawers in self.drawers]
        self.single_drawing: Final = (
            self.drawing
            & ~self.shareable
            & ~sum(1 << position for position, draws in self.draws.items() if len(draws) > 1)
        )
        """Whole devices that draw from one counter set."""
        self.yields: Final[dict[Hashable, tuple[Yield, ...] | None]] = {}
        """What counter sets can give, for states seen so far (see `packing`)."""
        self.closed: Final[dict[tuple[int, Bucket], int]] = {}
        """The devices that a bucket doesn't admit, for states of buckets seen so far."""
        self.wanted: Final = _wanted_by(self.slots)
        self.later: Final = self._find_later()
        """By slot: the devices that later slots may want."""
        self.linked: Final = _linked_to(self.slots)
        self.drawn_sets: Final = [self._find_sets(wanted) for wanted in self.wanted]
        """By slot: the counter sets that its devices draw from."""
        self.can_fail: Final = any(
            option.failing or any(column.failed or option.takes_all for _, column in option.columns)
            for option in self.options
        )

    def set_classes(self, position: int) -> tuple[int, ...]:
        """What the CEL constraints see of a device."""
        return tuple(
            self.view.projected(self.classes[position], constraint.attributes)
            for claim in self.program.claims
            for constraint in claim.constraints
            if constraint.kind == "cel"
        )

    def locate(self, position: int) -> tuple[int, int]:
        """The pool of a device, and its position there."""
        pool = bisect_right(self.offsets, position) - 1
        return pool, position - self.offsets[pool]

    def need(self, profile: int, position: int) -> Need | None:
        """What a request of this capacity profile consumes of a device; None if it can't be had at all."""
        key = (profile, self.classes[position])
        if key not in self._needs:
            try:
                self._needs[key] = self.profiles[profile].alternative.need(self.view, key[1])
            except CapacityProblem:
                self._needs[key] = None
        return self._needs[key]

    def _fill_devices(self) -> None:
        counts_capacity = self.program.counts_capacity
        for part, offset, first_bucket in zip(self.node.parts, self.offsets, self.bucket_offsets, strict=False):
            for position, device_class in enumerate(part.shape.classes, start=offset):
                device = self.view.representatives[device_class].device
                if counts_capacity and device.allow_multiple_allocations:
                    self.shareable |= 1 << position
                draws = part.shape.draws.get(device_class)
                if draws:
                    self.draws[position] = tuple((first_bucket + draw.bucket, draw) for draw in draws)
                    self.drawing |= 1 << position

    def _fill_slots(self) -> None:
        """Checks what Kubernetes checks before it searches, in the same order, and stops at the first problem."""
        for number, claim in enumerate(self.program.claims):
            least = 0
            for request in claim.requests:
                options: list[Option] = []
                for alternative in request.alternatives:
                    option = self._option(alternative)
                    if alternative.takes_all and self._cannot_take_all(number, option):
                        return
                    options.append(option)
                least += min((option.count for option in options), default=0)
                self._append_slot(number, options)
            if claim.request_problem is not None:
                self.stop = Stop(number, problem=claim.request_problem)
                return
            if least > MAX_ALLOCATION_RESULTS:
                self.stop = Stop(number, wanted=least)
                return
            if claim.constraint_problem is not None:
                self.stop = Stop(number, problem=claim.constraint_problem)
                return
            self._fill_columns(number)

    def _option(self, alternative: Alternative) -> Option:
        match = usable = failing = 0
        for part, offset in zip(self.node.parts, self.offsets, strict=False):
            column = alternative.column(self.view, part.shape, self._statistics)
            selected = column.match | column.incalculable
            part_usable = column.usable & part.mask
            if not self.node.optional_operations:
                part_usable &= ~column.optional
            match |= (column.match & part.mask) << offset
            usable |= part_usable << offset
            failing |= (column.failed | column.incalculable & part.mask | selected & part.broken) << offset
        option = Option(len(self.options), len(self.slots), alternative, match, usable, failing)
        self.options.append(option)
        for number, profile in enumerate(self.profiles):
            if profile.alternative.capacity == alternative.capacity:
                option.profile = number
                return option
        option.profile = len(self.profiles)
        self.profiles.append(option)
        return option

    def _find_drawers(self) -> list[list[tuple[int, Draw]]]:
        drawers: list[list[tuple[int, Draw]]] = [[] for _ in range(self.bucket_offsets[-1])]
        for position, draws in self.draws.items():
            for bucket, draw in draws:
                drawers[bucket].append((position, draw))
        return drawers

    def _find_later(self) -> list[int]:
        later = [0] * len(self.slots)
        for number in range(len(self.slots) - 1, 0, -1):
            later[number - 1] = later[number] | self.wanted[number]
        return later

    def _find_sets(self, wanted: int) -> int:
        sets = 0
        for bucket, mask in enumerate(self.drawer_masks):
            if mask & wanted:
                sets |= 1 << bucket
        return sets

    @property
    def is_constrained(self) -> bool:
        """Whether picks depend on each other's attributes."""
        return any(option.columns for option in self.options)

    def _append_slot(self, claim: int, options: Sequence[Option]) -> None:
        number = len(self.slots)
        program = self.program.claims[claim]
        opens = number == 0 or self.slots[-1].claim != claim
        self.slots.append(Slot(number, claim, opens, tuple(options), (), len(program.constraints)))

    def _cannot_take_all(self, claim: int, option: Option) -> bool:
        """`All` is determined up front, from devices in use as well; what stands against it ends the allocation."""
        alternative = option.alternative
        for pool, (part, offset) in enumerate(zip(self.node.parts, self.offsets, strict=False)):
            if part.shape.status != "usable":
                self.stop = Stop(claim, alternative=alternative, pool=pool)
                return True
            here = option.failing >> offset & ((1 << part.shape.size) - 1)
            if here:
                self.stop = self.failure_at(claim, option, offset + (here & -here).bit_length() - 1)
                return True
        return False

    def failure_at(self, claim: int, option: Option, position: int) -> Stop:
        """Why this device, which is in `option.failing`, ends the allocation."""
        opinion = option.alternative.opinion(self.view, self.classes[position], self._statistics)
        return Stop(claim, alternative=option.alternative, position=position, failure=opinion.failure)

    def _fill_columns(self, claim: int) -> None:
        program = self.program.claims[claim]
        slots = [slot for slot in self.slots if slot.claim == claim]
        for index, constraint in enumerate(program.constraints):
            covered = [option for slot in slots for option in slot.options if constraint.covers(option.alternative)]
            if not covered:
                continue
            if constraint.kind == "cel":
                last = max(option.slot for option in covered)
                self.slots[last] = self.slots[last]._replace(finishes=(*self.slots[last].finishes, constraint))
                continue
            numbers = ElementNumbers()
            known: dict[object, AttributeColumn] = {}
            for option in covered:
                derived = option.alternative.derived.get(constraint.attribute)
                column = known.get(derived)
                if column is None:
                    column = known[derived] = AttributeColumn(constraint.kind)
                    for part in self.node.parts:
                        numbers.fill(column, constraint, option.alternative, self.view, part.shape)
                option.columns.append((index, column))


def _offsets(parts: Sequence[PoolPart]) -> tuple[int, ...]:
    offsets = [0]
    for part in parts:
        offsets.append(offsets[-1] + part.shape.size)
    return tuple(offsets)


def _bucket_offsets(parts: Sequence[PoolPart]) -> tuple[int, ...]:
    offsets = [0]
    for part in parts:
        offsets.append(offsets[-1] + len(part.shape.counters.sets))
    return tuple(offsets)


def _wanted_by(slots: Sequence[Slot]) -> list[int]:
    """By slot: all devices that it may have."""
    found: list[int] = []
    for slot in slots:
        wanted = 0
        for option in slot.options:
            wanted |= option.usable
        found.append(wanted)
    return found


def _linked_to(slots: Sequence[Slot]) -> list[int]:
    """By slot: the slots of the same claim that share a constraint with it, or the limit of a claim."""
    found: list[int] = []
    for slot in slots:
        same = [other for other in slots if other.claim == slot.claim]
        most = sum(max((option.count for option in other.options), default=0) for other in same)
        numbers = {number for option in slot.options for number, _ in option.columns}
        mask = 0
        for other in same:
            theirs = {number for option in other.options for number, _ in option.columns}
            if numbers & theirs or most > MAX_ALLOCATION_RESULTS:
                mask |= 1 << other.number
        found.append(mask)
    return found
