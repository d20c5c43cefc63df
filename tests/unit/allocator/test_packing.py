"""What counter sets can give, alone and together."""

from __future__ import annotations

from dray.allocator.counters import Bucket, Draw
from dray.allocator.packing import Item, can_serve, find_yields, largest
from tests.unit.allocator.world import ask, make_claim, make_device, make_index, make_request, make_slice

NO_GROUPS: frozenset[str] = frozenset()


def takes(amount: int, *slots: int) -> Item:
    return Item(Draw(0, ((0, amount),), NO_GROUPS), slots)


def test_a_counter_set_yields_one_large_or_several_small_devices() -> None:
    items = [takes(4, 0), takes(2, 1), takes(2, 1), takes(2, 1)]
    assert set(find_yields(Bucket((4,), None), items, 2) or ()) == {(1, 0), (0, 2)}


def test_a_device_that_two_slots_want_goes_to_one_of_them() -> None:
    assert set(find_yields(Bucket((9,), None), [takes(1, 0, 1)], 2) or ()) == {(1, 0), (0, 1)}


def test_groups_that_do_not_go_together_yield_one_or_the_other() -> None:
    items = [Item(Draw(0, (), frozenset(group)), (slot,)) for slot, group in enumerate("ab")]
    assert set(find_yields(Bucket((), None), items, 2) or ()) == {(1, 0), (0, 1)}


def test_yields_are_added_up_over_the_counter_sets() -> None:
    either = ((1, 0), (0, 2))
    assert can_serve([either, either], (1, 2))
    assert can_serve([either, either], (2, 0))
    assert not can_serve([either, either], (1, 3))
    assert not can_serve([either, either], (2, 1))


def test_only_the_largest_count() -> None:
    assert set(largest([(1, 1), (2, 0), (1, 0), (2, 0)])) == {(1, 1), (2, 0)}


def test_a_full_house_of_partitions_is_not_tried_out() -> None:
    """Eight GPUs hold a large and a small partition each, or three small ones: too few for what is wanted."""
    devices, counters = [], {}
    for gpu in range(8):
        counters[f"gpu-{gpu}"] = {"slots": 7}
        for number in range(2):
            devices.append(make_device(f"{gpu}-large-{number}", {"size": 4}, counters={f"gpu-{gpu}": {"slots": 4}}))
        for number in range(3):
            devices.append(make_device(f"{gpu}-small-{number}", {"size": 2}, counters={f"gpu-{gpu}": {"slots": 2}}))
    index = make_index(
        make_slice(devices, name="parts", pool="p", count=2),
        make_slice(name="counters", pool="p", count=2, shared_counters=counters),
    )

    def wanting(large: int, small: int) -> list[list[str]] | None:
        sizes = [f'device.attributes["gpu.example.com"].size == {size}' for size in (4, 2)]
        return ask(index, make_claim(make_request("small", small, sizes[1]), make_request("large", large, sizes[0])))

    assert wanting(5, 15) is None
    assert index.statistics.steps < 100
    assert wanting(5, 14) is not None
    assert index.statistics.steps < 500
