"""How close sets of devices come to a CEL constraint that none of them satisfies.

The expression is taken apart at its top-level `&&`. For every set that is tried, the conditions that hold are counted;
for one that compares two numbers, it is known how far it misses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, islice, product
from typing import Final, NamedTuple

from dray.allocator.explain_counts import Counted, Seat
from dray.allocator.reasons import NearMiss
from dray.allocator.shapes import View
from dray.api.features import FeatureGates
from dray.cel.environment import devices_environment
from dray.cel.errors import CelError
from dray.cel.lexer import END, tokenize
from dray.cel.program import Program, compile_expression
from dray.cel.values import Value

MOST_SETS: Final = 2000
"""So many are tried; with more, the explanation says what these came to."""

_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_COMPARISONS: Final = frozenset(("==", "<=", ">=", "<", ">"))


class Condition(NamedTuple):
    """One part of a conjunction; the sides are there if it compares."""

    text: str
    program: Program
    left: Program | None = None
    right: Program | None = None
    operator: str = ""


class Closeness(NamedTuple):
    tried: int
    closest: NearMiss | None


class _Attempt(NamedTuple):
    holding: int
    miss: float
    seats: tuple[Seat, ...]


def find_closest(text: str, covered: Sequence[Counted], view: View, gates: FeatureGates) -> Closeness:
    """What the sets of devices come to that the covered requests could get."""
    conditions = split_conditions(text, "DRAConsumableCapacity" in gates, "DRAListTypeAttributes" in gates)
    best: _Attempt | None = None
    tried = 0
    seen: set[tuple[int, ...]] = set()
    for seats in islice(_iter_sets(covered), MOST_SETS):
        tried += 1
        key = tuple(seat.device_class for seat in seats)
        if key in seen:
            continue
        seen.add(key)
        values: list[Value] = [view.value(seat.device_class) for seat in seats]
        holding = sum(_holds(condition, values) for condition in conditions)
        miss = sum(_miss(condition, values) for condition in conditions)
        if best is None or (holding, -miss) > (best.holding, -best.miss):
            best = _Attempt(holding, miss, seats)
    if best is None:
        return Closeness(0, None)
    return Closeness(tried, _near_miss(conditions, best, view))


def _iter_sets(covered: Sequence[Counted]) -> Iterator[tuple[Seat, ...]]:
    choices = [combinations(each.seats, each.wanted) for each in covered]
    # The product would run the first combinations to their end before it gives anything; one request needs none.
    if len(choices) == 1:
        yield from choices[0]
        return
    for parts in product(*(list(islice(each, MOST_SETS)) for each in choices)):
        seats = tuple(seat for part in parts for seat in part)
        if len({seat.id for seat in seats}) == len(seats):
            yield seats


@lru_cache(maxsize=256)
def split_conditions(text: str, consumable: bool, lists: bool) -> tuple[Condition, ...]:
    """The parts of a conjunction; the whole if it is none, or if a part makes no sense by itself."""
    environment = devices_environment(stored=True, consumable_capacity=consumable, list_type_attributes=lists)
    try:
        conditions: list[Condition] = []
        for part in _split(text, frozenset(("&&",))):
            sides = _split(part, _COMPARISONS)
            program = compile_expression(part, environment)
            if len(sides) != 2:
                conditions.append(Condition(part, program))
                continue
            left, right = (compile_expression(side, environment) for side in sides)
            operator = part[len(sides[0]) : len(part) - len(sides[1])].strip()
            conditions.append(Condition(part, program, left, right, operator))
        return tuple(conditions)
    except CelError:
        return (Condition(text, compile_expression(text, environment)),)


def _split(text: str, operators: frozenset[str]) -> list[str]:
    """At these operators, unless they are in brackets, or something is there that binds less tightly."""
    kinds, texts, positions = tokenize(text)
    depth = 0
    cuts: list[tuple[int, int]] = []
    for number, kind in enumerate(kinds):
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
        elif depth == 0 and kind in operators:
            cuts.append((positions[number], positions[number] + len(texts[number])))
        elif depth == 0 and (kind == "||" or (kind == "?" and kinds[number - 1] not in (".", "["))):
            return [text]
        elif kind == END:
            break
    starts = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _holds(condition: Condition, values: list[Value]) -> bool:
    try:
        return condition.program.matches(values)
    except CelError:
        return False


def _miss(condition: Condition, values: list[Value]) -> float:
    """How far a comparison of numbers is from being true; 1 for anything else that is false."""
    if _holds(condition, values):
        return 0.0
    left, right = _side(condition.left, values), _side(condition.right, values)
    if left is None or right is None:
        return 1.0
    return abs(left - right) + (condition.operator in "<>")


def _side(program: Program | None, values: list[Value]) -> float | None:
    if program is None:
        return None
    try:
        value = program.evaluate(values)
    except CelError:
        return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _near_miss(conditions: Sequence[Condition], best: _Attempt, view: View) -> NearMiss | None:
    values: list[Value] = [view.value(seat.device_class) for seat in best.seats]
    names = tuple(seat.name for seat in best.seats)
    for condition in conditions:
        if not _holds(condition, values):
            left, right = _side(condition.left, values), _side(condition.right, values)
            operator = "" if condition.operator == "==" else f"{condition.operator} "
            miss = "" if left is None or right is None else f"{left:g} instead of {operator}{right:g}"
            return NearMiss(names, condition.text, miss)
    return None  # this set would do; then other constraints stand in the way


def shorten(text: str, longest: int) -> str:
    """Expressions on one line, the middle of long ones left out."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    return f"{line[: longest * 2 // 3 - 1]}…{line[-(longest // 3) :]}"
