"""A static upper bound of what an evaluation can cost, and of how much work it can be.

Kubernetes' own estimate is no such bound: it leaves out some selections, and takes an `includes` or `sort` on a
dynamic value for something else than it becomes. This one is never below the real cost. While it is within the limit,
generated code may run without counting anything.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from dray.cel.devices import MAX_TEXT, MAX_WORK
from dray.cel.meter import WORK_LIMIT
from dray.cel.plan import (
    Attribute,
    Call,
    Constant,
    Equality,
    Fold,
    Has,
    IsOneOf,
    Logic,
    NewList,
    NewMap,
    NewMessage,
    Node,
    NotStrictlyFalse,
    OptionalOr,
    Plan,
    Resolved,
    Ternary,
    Variable,
)
from dray.cel.run_time_costs import EQUALITY, SMALLER_SIZE, UNBOUNDED, Sizes
from dray.cel.shapes import (
    MAX_DEVICES,
    SCALAR,
    UNKNOWN,
    Shape,
    device_field,
    join,
    shape_of_result,
    shape_of_type,
    shape_of_value,
)

_ALL_PAIRS: Final = frozenset(
    ("distinct", "sort", "@sortByAssociatedKeys", "sets.contains", "sets.equivalent", "sets.intersects")
)
_DEVICE: Final = "kubernetes.DRADevice"
MAX_VISITS: Final = 10_000
_SET_SIZES: Final = (MAX_DEVICES, MAX_DEVICES // 2, MAX_DEVICES // 4, MAX_DEVICES // 8)


class Bound(NamedTuple):
    """At most what an evaluation costs; `limited` if that holds only for devices of valid size, and so many of them."""

    cost: int
    work: int
    limited: bool
    devices: int = MAX_DEVICES

    @property
    def is_small_work(self) -> bool:
        return self.work <= WORK_LIMIT


class _TooLarge(Exception):
    """Branches of ternaries share their qualifiers, so a small plan can be a very large tree."""


class _Step(NamedTuple):
    cost: int
    work: int
    shape: Shape


def find_bound(plan: Plan, cost_limit: int) -> Bound:
    """The bound for any device, or the one for valid devices if the former is above the limit.

    Loops in loops over `devices` compare every device with every other: for those the bound may hold only for less
    devices than there can be.
    """
    best: Bound | None = None
    for limited, devices in ((False, MAX_DEVICES), *((True, count) for count in _SET_SIZES)):
        try:
            cost, work, _ = _Bounder(plan, limited, devices).visit(plan.root)
        except _TooLarge:
            return Bound(UNBOUNDED, UNBOUNDED, True)
        bound = Bound(cost, work, limited, devices)
        if bound.cost <= cost_limit and bound.is_small_work:
            return bound
        if best is not None and best.limited and bound[:2] == best[:2]:
            return best
        best = bound
    assert best is not None
    return best


class _Bounder:
    def __init__(self, plan: Plan, limited: bool, devices: int) -> None:
        self._types = plan.types
        self._limited = limited
        self._devices = devices
        self._slots: dict[int, Shape] = {}
        self._accumulators: set[int] = set()
        self._visits = 0

    def visit(self, node: Node) -> _Step:
        self._visits += 1
        if self._visits > MAX_VISITS:
            raise _TooLarge
        match node:
            case Constant(value=value):
                return _Step(0, 0, shape_of_value(value))
            case Attribute() | Ternary():
                cost, work, shape = self._resolve(node)
                return _Step(cost + 1, work + 1, shape)
            case Has(attribute=attribute):
                cost, work, _ = self._resolve(attribute)
                # Below a ternary it takes 1 back, and may fall below 0: nothing is known then.
                return _Step(cost if isinstance(attribute, Attribute) else UNBOUNDED, work + 1, SCALAR)
            case Logic(left=left, right=right) | OptionalOr(left=left, right=right):
                return _both(self.visit(left), self.visit(right))
            case Equality():
                return self._visit_equality(node)
            case Call():
                return self._visit_call(node)
            case NotStrictlyFalse(argument=argument) | IsOneOf(argument=argument):
                cost, work, _ = self.visit(argument)
                return _Step(cost + 1, work + 1, SCALAR)
            case NewList(elements=elements):
                return self._visit_items(list(elements), 10)
            case NewMap(entries=entries):
                keys = self._visit_items([entry.key for entry in entries], 30)
                values = self._visit_items([entry.value for entry in entries], 0)
                shape = Shape(len(entries), values.shape.item, keys.shape.element.length)
                return _Step(keys.cost + values.cost, keys.work + values.work, shape)
            case NewMessage(fields=fields):
                cost, work, _ = self._visit_items([field.value for field in fields], 40)
                return _Step(cost, work, UNKNOWN)
            case Fold():
                return self._visit_fold(node)

    def _resolve(self, node: Resolved) -> _Step:
        if isinstance(node, Ternary):
            condition = self.visit(node.condition)
            branches = _both(self._resolve(node.then), self._resolve(node.otherwise))
            return _Step(condition.cost + branches.cost, condition.work + branches.work, branches.shape)
        base, type_ = node.base, self._types.get(node.id)
        if not isinstance(base, Variable):
            cost, work, shape = self.visit(base)
        elif base.slot is not None:
            cost, work, shape = 0, 1, self._slots.get(base.slot, UNKNOWN)
        else:
            cost, work, shape = 0, 1, self._input(base.name)
        for qualifier in node.qualifiers:
            cost, work = cost + 1, work + 1
            if not qualifier.constant:
                key = self._resolve(cast("Resolved", qualifier.key))
                cost, work = cost + key.cost, work + key.work
            if type_ is not None and type_.name == _DEVICE and isinstance(qualifier.key, str):
                shape = device_field(qualifier.key, limited=self._limited)
            else:
                shape = shape.element
            type_ = self._types.get(qualifier.id)
            known = shape_of_type(type_)
            shape = shape if known is UNKNOWN else known
        return _Step(cost, work, shape)

    def _input(self, name: str) -> Shape:
        if not self._limited:
            return UNKNOWN
        device = Shape(4, device_field("attributes", limited=True), MAX_TEXT, MAX_WORK)
        return device if name == "device" else Shape(self._devices, device)

    def _visit_equality(self, node: Equality) -> _Step:
        left, right = self.visit(node.left), self.visit(node.right)
        rule = SMALLER_SIZE if node.negated else EQUALITY
        price = rule.bound(_sizes([left.shape, right.shape], SCALAR))
        # Comparing goes no deeper than the smaller side.
        work = min(left.shape.work, right.shape.work)
        return _Step(left.cost + right.cost + price, left.work + right.work + work, SCALAR)

    def _visit_call(self, node: Call) -> _Step:
        steps = [self.visit(argument) for argument in node.arguments]
        shapes = [step.shape for step in steps]
        result = shape_of_result(node, shapes, self._types.get(node.id))
        cost = sum(step.cost for step in steps) + (1 if node.cost is None else node.cost.bound(_sizes(shapes, result)))
        work = sum(step.work for step in steps) + 1
        grows_in_place = node.function in ("_+_", "cel.@mapInsert") and self._is_accumulator(node.arguments[0])
        if grows_in_place:
            work += sum(shape.work for shape in shapes[1:])
        elif not _is_cheap(node):
            work += sum(shape.work for shape in shapes)
            if result.item is not None or node.function in _UNDERPRICED:
                work += result.work
        if node.function in _ALL_PAIRS:
            work += shapes[0].work * max(shape.length for shape in shapes)
        return _Step(cost, work, result)

    def _is_accumulator(self, node: Node) -> bool:
        return isinstance(node, Attribute) and isinstance(node.base, Variable) and node.base.slot in self._accumulators

    def _visit_items(self, nodes: list[Node], base: int) -> _Step:
        cost, work, item = base, 1, Shape(0)
        for node in nodes:
            step = self.visit(node)
            cost, work, item = cost + step.cost, work + step.work, join(item, step.shape)
        return _Step(cost, work, Shape(len(nodes), item))

    def _visit_fold(self, node: Fold) -> _Step:
        items, init = self.visit(node.range), self.visit(node.init)
        rounds = items.shape.length
        key = Shape(max(1, items.shape.key))
        if node.second is None:
            self._slots[node.first] = join(items.shape.element, key)
        else:
            self._slots[node.first] = key
            self._slots[node.second] = items.shape.element
        self._slots[node.accumulator] = init.shape
        condition = step = _Step(0, 0, SCALAR)
        if rounds:
            self._accumulators.add(node.accumulator)
            condition, step = self.visit(node.condition), self.visit(node.step)
            # Macros make steps that do nothing else with the accumulator than add to it, each time the same, or test
            # it. So what the first step costs and adds holds for all.
            growth = max(0, step.shape.length - init.shape.length)
            joined = join(init.shape, step.shape)
            self._slots[node.accumulator] = Shape(init.shape.length + rounds * growth, joined.item, joined.key)
        result = self.visit(node.result)
        cost = items.cost + init.cost + (rounds + 1) * condition.cost + rounds * step.cost + result.cost
        work = items.work + init.work + (rounds + 1) * condition.work + rounds * (1 + step.work) + result.work
        return _Step(cost, work + (result.shape.length if rounds else 0), result.shape)


def _both(left: _Step, right: _Step) -> _Step:
    return _Step(left.cost + right.cost, left.work + right.work, join(left.shape, right.shape))


def _sizes(shapes: list[Shape], result: Shape) -> Sizes:
    """An error counts as a value of size 1."""
    lengths = tuple(max(1, shape.length) for shape in shapes)
    return Sizes(lengths, tuple(shape.weight for shape in shapes), max(1, result.length))


def _is_cheap(node: Call) -> bool:
    """Whether a call takes constant time, whatever it is called on, or is paid for by its cost."""
    return node.function in _CHEAP or (node.cost is not None and node.function not in _UNDERPRICED)


_UNDERPRICED: Final = frozenset(("format", "replace", "flatten", "join"))
"""Their price says nothing about all that they look at or make."""
_CHEAP: Final = frozenset(
    (
        *("!_", "-_", "_-_", "_*_", "_/_", "_%_", "size", "type", "dyn"),
        *("isGreaterThan", "isLessThan", "compareTo", "add", "sub", "sign", "asInteger", "isInteger"),
        *("asApproximateFloat", "major", "minor", "patch", "hasValue", "value", "optional.of", "optional.none"),
        *("first", "last"),
    )
)
