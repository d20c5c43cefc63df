"""Partitionable devices: counters that partitions share, and groups that may go together."""

from __future__ import annotations

from dray.allocator.counters import Bucket, Draw, joined_groups, shares_groups
from dray.api.claims import ResourceClaim
from dray.api.slices import ResourceSlice
from tests.unit.allocator.world import ask, make_claim, make_device, make_holder, make_index, make_request, make_slice

NO_GROUPS: frozenset[str] = frozenset()


def _holder(*devices: str) -> ResourceClaim:
    return make_holder("holder", *devices, pool="p")


def make_gpu(memory: int = 8, **partitions: int) -> tuple[ResourceSlice, ResourceSlice]:
    """One GPU whose partitions take so much of its memory."""
    devices = [make_device(name, counters={"gpu": {"memory": amount}}) for name, amount in partitions.items()]
    return (
        make_slice(devices, name="parts", pool="p", count=2),
        make_slice(name="counters", pool="p", count=2, shared_counters={"gpu": {"memory": memory}}),
    )


def test_partitions_are_given_out_while_counters_last() -> None:
    index = make_index(*make_gpu(8, a=4, b=4, c=4))
    assert ask(index, make_claim(make_request(count=2))) == [["a", "b"]]
    assert ask(index, make_claim(make_request(count=3))) is None


def test_a_partition_that_is_too_large_is_passed_over() -> None:
    index = make_index(*make_gpu(8, big=6, huge=4, small=2))
    assert ask(index, make_claim(make_request(count=2))) == [["big", "small"]]


def test_allocated_partitions_count() -> None:
    index = make_index(*make_gpu(8, a=4, b=4, c=4))
    index.apply_claim(_holder("a"))
    assert ask(index, make_claim(make_request(count=1))) == [["b"]]
    index.apply_claim(_holder("a", "b"))
    assert ask(index, make_claim(make_request(count=1))) is None


def test_partitions_on_other_nodes_count_too() -> None:
    slices = (
        make_slice([make_device("here", counters={"gpu": {"memory": 6}})], name="s1", pool="p", count=3),
        make_slice(
            [make_device("there", counters={"gpu": {"memory": 6}})], name="s2", pool="p", node="node-2", count=3
        ),
        make_slice(name="s3", pool="p", count=3, shared_counters={"gpu": {"memory": 8}}, all_nodes=True),
    )
    index = make_index(*slices)
    assert ask(index, make_claim(make_request())) == [["here"]]
    index.apply_claim(_holder("there"))
    assert ask(index, make_claim(make_request())) is None


def test_a_counter_that_is_overdrawn_blocks_every_partition_of_the_pool() -> None:
    parts, _ = make_gpu(8, a=6, b=6)
    spare = make_device("spare", counters={"other": {"memory": 1}})
    slices = (
        make_slice([*parts.spec.devices, spare], name="parts", pool="p", count=2),
        make_slice(name="counters", pool="p", count=2, shared_counters={"gpu": {"memory": 8}, "other": {"memory": 8}}),
    )
    index = make_index(*slices)
    index.apply_claim(_holder("a"))
    assert ask(index, make_claim(make_request())) == [["spare"]]
    index.apply_claim(_holder("a", "b"))
    assert ask(index, make_claim(make_request())) is None


def test_another_share_of_a_partition_draws_nothing_more() -> None:
    parts = [
        make_device("a", capacity={"memory": "8"}, counters={"gpu": {"memory": 6}}, allow_multiple_allocations=True),
        make_device("b", counters={"gpu": {"memory": 6}}),
    ]
    slices = (
        make_slice(parts, name="parts", pool="p", count=2),
        make_slice(name="counters", pool="p", count=2, shared_counters={"gpu": {"memory": 8}}),
    )
    claim = make_claim(*(make_request(f"r{number}", capacity={"memory": "4"}) for number in range(2)))
    assert ask(make_index(*slices), claim) == [["a", "a"]]


def test_a_device_without_groups_goes_only_with_others_without() -> None:
    assert shares_groups(None, NO_GROUPS)
    assert shares_groups(NO_GROUPS, NO_GROUPS)
    assert not shares_groups(NO_GROUPS, frozenset("a"))
    assert not shares_groups(frozenset("a"), NO_GROUPS)


def test_groups_must_have_one_in_common_with_all() -> None:
    common = joined_groups(frozenset("ab"), frozenset("bc"))
    assert common == frozenset("b")
    assert shares_groups(common, frozenset("b"))
    assert not shares_groups(common, frozenset("a"))


def test_nothing_goes_with_devices_that_should_not_be_together() -> None:
    nothing = joined_groups(frozenset("a"), frozenset("b"))
    assert not shares_groups(nothing, NO_GROUPS)
    assert not shares_groups(nothing, frozenset("ab"))


def test_a_bucket_that_is_drawn_from_keeps_the_old_one() -> None:
    bucket = Bucket((8, 4), None)
    after = bucket.after(Draw(0, ((0, 3),), NO_GROUPS))
    assert (bucket.left, after.left) == ((8, 4), (5, 4))
    assert after.admits(Draw(0, ((0, 5),), NO_GROUPS))
    assert not after.admits(Draw(0, ((0, 6),), NO_GROUPS))
