"""Explanations never contradict the allocator, whatever the cluster looks like."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from dray.allocator.errors import AllocationError
from dray.allocator.explain import explain
from dray.allocator.explain_text import format_explanation, summary_line
from dray.allocator.index import Index
from dray.allocator.nodes import NodeFacts
from dray.allocator.reasons import ChangeKind, Obstacle, RequestCount
from dray.api.claims import ResourceClaim
from dray.api.meta import ObjectKey
from tests.properties.allocator_worlds import World, worlds
from tests.unit.allocator.world import NODE, make_holder

SMALL = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def make_index(world: World) -> Index:
    """Every device in use belongs to a claim of its own."""
    index = Index(make_id=lambda: "00000000-0000-0000-0000-000000000000")
    for number, slice_ in enumerate(world.slices):
        index.inventory.apply_slice(slice_, key=number)
    for device_class in world.classes:
        index.apply_class(device_class)
    index.apply_node(NodeFacts(NODE))
    for number, device in enumerate(sorted(world.used)):
        index.apply_claim(make_holder(f"holder-{number}", device.device, pool=device.pool, driver=device.driver))
    return index


def fits(index: Index, claims: tuple[ResourceClaim, ...]) -> bool:
    try:
        return index.allocate(NODE, claims) is not None
    except AllocationError:
        return False


def alone(world: World, count: RequestCount) -> ResourceClaim:
    """A claim with nothing but this request, or this alternative."""
    name, _, sub = count.request.partition("/")
    claim = next(claim for claim in world.claims if claim.metadata.key == count.claim)
    request = next(request for request in claim.spec.devices.requests if request.name == name)
    if sub:
        request = replace(request, first_available=tuple(each for each in request.first_available if each.name == sub))
    devices = replace(claim.spec.devices, requests=(request,), constraints=())
    return replace(claim, spec=replace(claim.spec, devices=devices))


@given(worlds(failing=True, sets=True))
@SMALL
def test_what_is_explained_is_so(world: World) -> None:
    index = make_index(world)
    explanation = explain(index, world.claims)
    assert explanation.fits == fits(index, world.claims)
    assert format_explanation(explanation)
    assert summary_line(explanation)
    for group in explanation.groups:
        if group.obstacle == Obstacle.REQUEST:
            assert group.blocked
        for count in group.requests:
            lefts = [stage.left for stage in count.stages]
            assert lefts == sorted(lefts, reverse=True)
            if count.is_short:
                assert not fits(index, (alone(world, count),))


@given(worlds())
@SMALL
def test_what_is_available_can_be_had_and_after_waiting_it_fits(world: World) -> None:
    index = make_index(world)
    explanation = explain(index, world.claims)
    for group in explanation.groups:
        for count in group.requests:
            if count.wanted == 1 and count.available:
                assert fits(index, (alone(world, count),))
    for change in explanation.changes:
        if change.kind == ChangeKind.WAIT:
            fork = index.fork()
            for key in change.claims:
                fork.remove_claim(key)
            assert fits(fork, world.claims)
    everybody = index.fork()
    for number in range(len(world.used)):
        everybody.remove_claim(ObjectKey("default", f"holder-{number}"))
    if fits(everybody, world.claims) and not explanation.fits:
        assert any(change.kind == ChangeKind.WAIT for change in explanation.changes)
