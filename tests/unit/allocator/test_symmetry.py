"""Twins and mirror images: what makes devices equal to a search, and what doesn't."""

from __future__ import annotations

from dray.allocator.constraints import iter_bits
from dray.allocator.index import Index
from dray.allocator.situation import Situation
from dray.allocator.symmetry import Symmetry
from dray.allocator.tables import NodeShape, PoolPart, Table
from dray.api.claims import ResourceClaim
from tests.unit.allocator.world import (
    NODE,
    make_claim,
    make_constraint,
    make_device,
    make_index,
    make_request,
    make_slice,
)


def twins_of(index: Index, claim: ResourceClaim, position: int) -> list[int]:
    program, view = index.compile([claim])
    reach = index.inventory.reach(NODE)
    parts = tuple(PoolPart(view.shape(each.pool), each.mask, each.broken) for each in reach.pools)
    table = Table(program, view, NodeShape(parts, False), index.statistics)
    situation = Situation(table, [index.occupancy(each.pool) for each in reach.pools])
    state = situation.start.in_next_claim(len(program.claims[0].constraints))
    return iter_bits(Symmetry(table, situation).twins(position, table.options[0], state))


def of_models(letters: str, used: tuple[str, ...] = ()) -> Index:
    devices = [make_device(f"dev-{number}", {"model": letter, "id": number}) for number, letter in enumerate(letters)]
    return make_index(make_slice(devices), used=used)


MODEL = "gpu.example.com/model"


def test_devices_that_nothing_tells_apart_are_twins() -> None:
    assert twins_of(of_models("AABA"), make_claim(make_request()), 0) == [0, 1, 2, 3]


def test_a_constraint_tells_devices_apart_by_its_attribute() -> None:
    claim = make_claim(make_request(count=2), constraints=[make_constraint(match=MODEL)])
    assert twins_of(of_models("AABA"), claim, 0) == [0, 1, 3]


def test_a_selector_tells_devices_apart_by_its_answer_alone() -> None:
    claim = make_claim(make_request("r", 1, 'device.attributes["gpu.example.com"].id > 0'))
    assert twins_of(of_models("ABCD"), claim, 1) == [1, 2, 3]


def test_another_request_tells_devices_apart() -> None:
    claim = make_claim(make_request("any"), make_request("b", 1, 'device.attributes["gpu.example.com"].model == "B"'))
    assert twins_of(of_models("AABA"), claim, 0) == [0, 1, 3]


def test_a_device_in_use_is_no_twin_of_a_free_one() -> None:
    claim = make_claim(make_request(admin_access=True))
    assert twins_of(of_models("AAA", used=("dev-1",)), claim, 0) == [0, 2]


def partitions(*used: str) -> Index:
    """Three GPUs with the same two partitions each."""
    devices = [
        make_device(f"{gpu}-{size}", {"size": size}, counters={gpu: {"slots": size}})
        for gpu in ("gpu-a", "gpu-b", "gpu-c")
        for size in (1, 2)
    ]
    return make_index(
        make_slice(devices, name="parts", count=2),
        make_slice(name="sets", count=2, shared_counters={gpu: {"slots": 2} for gpu in ("gpu-a", "gpu-b", "gpu-c")}),
        used=used,
    )


def test_partitions_at_the_same_place_of_equal_devices_are_twins() -> None:
    small = make_claim(make_request("small", 1, 'device.attributes["gpu.example.com"].size == 1'))
    assert twins_of(partitions(), small, 0) == [0, 2, 4]


def test_a_device_of_which_a_partition_is_in_use_is_unlike_the_others() -> None:
    small = make_claim(make_request("small"))
    assert twins_of(partitions("gpu-b-1"), small, 0) == [0, 4]
