"""The allocator against a brute-force model on small random inputs: the same first solution, and the checker agrees."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from dray.allocator.errors import AllocationError
from dray.allocator.index import allocate
from dray.allocator.nodes import NodeFacts
from dray.allocator.state import AllocatedState
from dray.allocator.verify import verify
from dray.api.claims import AllocationResult
from dray.api.devices import SharedDeviceID
from dray.api.features import ALL_GATES
from tests.properties.allocator_model import Model, ModelError
from tests.properties.allocator_worlds import World, worlds
from tests.unit.allocator.world import NODE

SMALL = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
Answer = list[list[tuple[str, str, str]]] | str | None


def ask_model(world: World, *, lists: bool = True) -> Answer:
    used = {tuple(id) for id in world.used}
    consumed = {
        tuple(id): {name: quantity.as_fraction() for name, quantity in amounts.items()}
        for id, amounts in world.consumed.items()
    }
    try:
        return Model(world.slices, world.classes, used, consumed, lists=lists).allocate(world.claims)  # type: ignore[arg-type]
    except ModelError:
        return "error"


def make_state(world: World) -> AllocatedState:
    shares = frozenset(SharedDeviceID(*id, "share") for id in world.consumed)
    return AllocatedState(world.used, shares, world.consumed)


def ask_allocator(world: World, *, lists: bool = True) -> Answer:
    gates = ALL_GATES.with_changes({"DRAListTypeAttributes": lists})
    numbers = iter(range(1000))
    try:
        results = allocate(
            world.slices,
            world.classes,
            NodeFacts(NODE),
            world.claims,
            state=make_state(world),
            gates=gates,
            make_id=lambda: f"00000000-0000-0000-0000-{next(numbers):012}",
        )
    except AllocationError:
        return "error"
    if results is None:
        return None
    violations = verify(world.slices, world.classes, NodeFacts(NODE), make_state(world), world.claims, results, gates)
    assert not violations, violations
    return [listed(result) for result in results]


def listed(result: AllocationResult) -> list[tuple[str, str, str]]:
    return [(each.request, each.pool, each.device) for each in result.devices.results]


@given(worlds())
@SMALL
def test_the_first_solution_is_found(world: World) -> None:
    assert ask_allocator(world) == ask_model(world)


@given(worlds(failing=True))
@SMALL
def test_errors_of_selectors_are_met_where_the_ordered_search_meets_them(world: World) -> None:
    assert ask_allocator(world) == ask_model(world)


@given(worlds())
@SMALL
def test_without_lists_the_first_solution_is_found(world: World) -> None:
    assert ask_allocator(world, lists=False) == ask_model(world, lists=False)


@given(worlds(sets=True))
@SMALL
def test_the_first_set_that_satisfies_every_expression_is_found(world: World) -> None:
    assert ask_allocator(world) == ask_model(world)
