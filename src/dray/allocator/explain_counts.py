"""Counts, stage by stage, how many devices of a node a request could have.

What a request thinks of a device is found once per class of devices that it can't tell apart (see `shapes`), so that
counting on another node is a matter of adding up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dray.allocator.capacity import CapacityProblem
from dray.allocator.counters import Bucket, CounterLayout, shares_groups
from dray.allocator.index import Index
from dray.allocator.inventory import Reach
from dray.allocator.nodes import OPTIONAL_NODE_OPERATIONS
from dray.allocator.pools import Pool, is_readable
from dray.allocator.reasons import Loss, PoolProblem, RequestCount, Stage, StageCount
from dray.allocator.requests import Alternative
from dray.allocator.selectors import CelError, Expression
from dray.allocator.shapes import View
from dray.api.devices import DeviceID, DeviceTaint
from dray.api.meta import ObjectKey
from dray.api.quantities import Quantity
from dray.api.taints import find_untolerated
from dray.cel.suggestions import Suggestion, suggest_fields

Holders = Mapping[DeviceID, Sequence[ObjectKey]]


class Seat(NamedTuple):
    """A device of a node."""

    pool: Pool
    position: int
    device_class: int

    @property
    def name(self) -> str:
        return self.pool.devices[self.position].name

    @property
    def id(self) -> DeviceID:
        return self.pool.device_id(self.position)


class Fall(NamedTuple):
    """Where a device is left behind, and why."""

    stage: Stage
    cause: str = ""
    selector: int = -1
    claims: tuple[ObjectKey, ...] = ()


class Opinion(NamedTuple):
    """What a request thinks of a class of devices, whatever is in use."""

    fall: Fall | None
    rejecting: tuple[int, ...] = ()
    """The selectors of the request that don't accept it, each asked by itself."""


class Counted(NamedTuple):
    """The numbers for one alternative, the devices that are left, and those that are left behind."""

    alternative: Alternative
    numbers: RequestCount
    seats: tuple[Seat, ...]
    fallen: tuple[tuple[Seat, Fall], ...]

    @property
    def wanted(self) -> int:
        return len(self.seats) if self.alternative.takes_all else self.alternative.count


def iter_seats(reach: Reach, view: View) -> Iterator[Seat]:
    """The devices that a node can reach, in the order in which they are tried."""
    for pool, mask, _ in reach.pools:
        if pool.status == "usable":
            for position, device_class in enumerate(view.shape(pool).classes):
                if mask >> position & 1:
                    yield Seat(pool, position, device_class)


def find_pool_problems(index: Index, reach: Reach) -> tuple[PoolProblem, ...]:
    """The pools whose devices are left out altogether."""
    problems: list[PoolProblem] = []
    for pool, _, _ in reach.pools:
        if pool.status == "invalid":
            problems.append(PoolProblem(pool.id, f"is invalid: {pool.reason}"))
        elif pool.status == "incomplete":
            problems.append(PoolProblem(pool.id, f"is incomplete: {_what_is_missing(index, pool)}"))
    return tuple(problems)


def _what_is_missing(index: Index, pool: Pool) -> str:
    slices = [each for each in index.inventory.pool_slices(pool.id) if is_readable(each, index.gates)]
    newest = max(each.spec.pool.generation for each in slices)
    there = [each for each in slices if each.spec.pool.generation == newest]
    wanted = {each.spec.pool.resource_slice_count for each in there}
    if len(wanted) > 1:
        return f"its slices of generation {newest} don't agree on how many there are"
    return f"{len(there)} of {min(wanted)} slices of generation {newest} are there"


def find_holders(index: Index) -> Holders:
    """Who has which device. Admin access holds nothing."""
    holders: dict[DeviceID, list[ObjectKey]] = {}
    for key, allocation in index.usage.allocations():
        for result in allocation.devices.results:
            if not result.admin_access:
                holders.setdefault(result.device_id, []).append(key)
    return holders


def format_taint(taint: DeviceTaint) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


class Counting:
    """Counts for the requests of one set of claims, on any node of an index."""

    def __init__(self, index: Index, view: View) -> None:
        self.index: Final = index
        self.view: Final = view
        self.holders: Final = find_holders(index)
        self._opinions: Final[dict[tuple[Alternative, int], Opinion]] = {}
        self._hints: Final[dict[tuple[Expression, frozenset[int]], tuple[Suggestion, ...]]] = {}

    def count(self, claim: ObjectKey, alternative: Alternative, reach: Reach) -> Counted:
        standing: list[Seat] = []
        fallen: list[tuple[Seat, Fall]] = []
        rejecting: Counter[int] = Counter()
        for seat in iter_seats(reach, self.view):
            opinion = self._opinion(alternative, seat.device_class)
            rejecting.update(opinion.rejecting)
            fall = self._find_fall(opinion.fall, alternative, seat, reach)
            if fall is None:
                standing.append(seat)
            else:
                fallen.append((seat, fall))
        stages = tuple(self._stages(alternative, standing, fallen, rejecting))
        count = RequestCount(
            claim,
            alternative.full_name,
            alternative.device_class.metadata.name,
            None if alternative.takes_all else alternative.count,
            stages,
        )
        return Counted(alternative, count, tuple(standing), tuple(fallen))

    def _stages(
        self, alternative: Alternative, standing: list[Seat], fallen: list[tuple[Seat, Fall]], rejecting: Counter[int]
    ) -> Iterator[StageCount]:
        left = len(standing) + len(fallen)
        by_stage: dict[tuple[Stage, int], list[Fall]] = {}
        for _, fall in fallen:
            by_stage.setdefault((fall.stage, fall.selector), []).append(fall)
        # Only what devices of the class are called tells what a selector of the request may have meant.
        of_class = frozenset(
            seat.device_class for seat in (*standing, *(seat for seat, fall in fallen if fall.stage > Stage.CLASS))
        )
        yield StageCount(Stage.SEEN, left)
        for stage in list(Stage)[1:]:
            for number in range(len(alternative.selectors)) if stage == Stage.SELECTORS else (-1,):
                falls = by_stage.get((stage, number), [])
                left -= len(falls)
                if number < 0:
                    yield StageCount(stage, left, tuple(_losses(falls)))
                    continue
                expression = alternative.selectors[number]
                hints = self._suggest(expression, of_class) if falls else ()
                yield StageCount(stage, left, tuple(_losses(falls)), expression.text, number, rejecting[number], hints)

    def _suggest(self, expression: Expression, classes: frozenset[int]) -> tuple[Suggestion, ...]:
        key = (expression, classes)
        if key not in self._hints:
            reads = expression.program.reads if expression.program is not None else None
            self._hints[key] = suggest_fields(reads, [self.view.value(each) for each in sorted(classes)])
        return self._hints[key]

    # Whatever is in use

    def _opinion(self, alternative: Alternative, device_class: int) -> Opinion:
        key = (alternative, device_class)
        found = self._opinions.get(key)
        if found is None:
            found = self._opinions[key] = self._judge(alternative, device_class)
        return found

    def _judge(self, alternative: Alternative, device_class: int) -> Opinion:
        for expression in alternative.class_selectors:
            refusal = self._refusal(expression, device_class)
            if refusal is not None:
                return Opinion(Fall(Stage.CLASS, refusal))
        refusals = {
            number: refusal
            for number, expression in enumerate(alternative.selectors)
            if (refusal := self._refusal(expression, device_class)) is not None
        }
        if refusals:
            first, refusal = next(iter(refusals.items()))
            return Opinion(Fall(Stage.SELECTORS, refusal, first), tuple(refusals))
        return Opinion(self._find_defect(alternative, device_class))

    def _refusal(self, expression: Expression, device_class: int) -> str | None:
        """None if the device passes; else the error, empty if the expression is just false."""
        try:
            return None if expression.matches(self.view.value(device_class), self.index.statistics) else ""
        except CelError as error:
            return str(error)

    def _find_defect(self, alternative: Alternative, device_class: int) -> Fall | None:
        """What keeps a device from being used that passes all selectors."""
        gates = self.index.gates
        _, device, skips = self.view.representatives[device_class]
        binds = "DRADeviceBindingConditions" in gates and "DRAResourceClaimDeviceStatus" in gates
        for needed, gate in (
            (device.binding_conditions and not binds, "DRADeviceBindingConditions"),
            (skips and OPTIONAL_NODE_OPERATIONS not in gates, OPTIONAL_NODE_OPERATIONS),
            (device.consumes_counters and "DRAPartitionableDevices" not in gates, "DRAPartitionableDevices"),
        ):
            if needed:
                return Fall(Stage.ENABLED, f"feature {gate} is turned off")
        if "DRAConsumableCapacity" in gates:
            problem = self._capacity_problem(alternative, device_class)
            if problem:
                return Fall(Stage.CAPACITY, problem)
        taint = find_untolerated(device.taints, alternative.tolerations) if "DRADeviceTaints" in gates else None
        return None if taint is None else Fall(Stage.UNTAINTED, f"tainted {format_taint(taint)}")

    def _capacity_problem(self, alternative: Alternative, device_class: int) -> str:
        capacity = self.view.representatives[device_class].device.capacity
        try:
            need = alternative.need(self.view, device_class)
        except CapacityProblem as problem:
            return f"{problem.capacity}: {problem.problem}"
        if need is None:
            missing = min(alternative.capacity.keys() - capacity.keys())
            return f"no capacity {missing}"
        if need.fits:
            return ""
        for name, amount, limit in need.amounts:
            if amount > limit:
                return f"{name} is {capacity[name].value}, {_amount(amount, capacity[name].value)} requested"
        return "not allowed by the device's policy"

    # By what is in use

    def _find_fall(self, fall: Fall | None, alternative: Alternative, seat: Seat, reach: Reach) -> Fall | None:
        skips = self.view.representatives[seat.device_class].skips_node_operations
        unable = skips and OPTIONAL_NODE_OPERATIONS not in reach.node.declared_features
        if unable and (fall is None or fall.stage > Stage.ENABLED):
            return Fall(Stage.ENABLED, "the node can't leave out node operations")
        if fall is not None:
            return fall
        use = self.index.usage.of(seat.pool)
        claims = tuple(self.holders.get(seat.id, ()))
        if not alternative.admin and seat.name in use.devices:
            return Fall(Stage.FREE, "" if claims else "in use", claims=claims)
        device = seat.pool.devices[seat.position]
        shared = bool(device.allow_multiple_allocations) and "DRAConsumableCapacity" in self.index.gates
        if shared and seat.name in use.capacity:
            need = alternative.need(self.view, seat.device_class)
            if need is not None and not need.fits_beside(use.capacity[seat.name]):
                used = use.capacity[seat.name]
                for name, amount, limit in need.amounts:
                    if amount + used.get(name, 0) > limit:
                        total = device.capacity[name].value
                        have = f"{name}: {_amount(limit - used.get(name, 0), total)} of {total} left"
                        return Fall(Stage.ROOM, f"{have}, {_amount(amount, total)} needed", claims=claims)
        if device.consumes_counters and not (shared and use.is_allocated(seat.name)):
            shortage = self._counter_shortage(seat)
            if shortage:
                return Fall(Stage.ROOM, shortage)
        return None

    def _counter_shortage(self, seat: Seat) -> str:
        pool = seat.pool
        layout = CounterLayout.of(pool.counter_sets)
        buckets = layout.buckets(pool, self.index.usage.of(pool))
        for draw in layout.draws(pool.devices[seat.position].consumes_counters):
            counters, bucket = pool.counter_sets[draw.bucket], buckets[draw.bucket]
            names = layout.sets[draw.bucket][1]
            for counter, amount in draw.amounts:
                name, left = names[counter][0], bucket.left[counter]
                if amount > left:
                    total = counters.counters[name].value
                    have = f"counter {counters.name}/{name}: {_amount(left, total)} of {total} left"
                    return f"{have}, {_amount(amount, total)} needed"
            if not shares_groups(bucket.groups, draw.groups):
                return f"not compatible with what is in use of {counters.name}"
        if any(left < 0 for bucket in buckets for left in bucket.left):
            return "the counters of the pool are overdrawn"
        return ""


def left_of_counters(index: Index, pool: Pool) -> Iterable[tuple[str, str, str]]:
    """What is left of each counter: (name, left, total)."""
    layout = CounterLayout.of(pool.counter_sets)
    buckets: Sequence[Bucket] = layout.buckets(pool, index.usage.of(pool))
    for counters, (_, names), bucket in zip(pool.counter_sets, layout.sets, buckets, strict=True):
        for (name, _), left in zip(names, bucket.left, strict=True):
            total = counters.counters[name].value
            yield f"{counters.name}/{name}", _amount(left, total), str(total)


def _amount(nano: int, like: Quantity) -> str:
    return str(Quantity.of(nano, like.format, scale=-9))


def _losses(falls: list[Fall]) -> Iterator[Loss]:
    counts: Counter[tuple[str, ObjectKey | None]] = Counter()
    for fall in falls:
        for claim in fall.claims if fall.claims and not fall.cause else (None,):
            counts[fall.cause, claim] += 1
    for (cause, claim), count in counts.most_common():
        yield Loss(cause, count, claim)
