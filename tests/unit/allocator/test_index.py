"""The index: changes, questions to the whole cluster, forks, and what it remembers."""

from __future__ import annotations

import pytest

from dray.allocator import compiler
from dray.allocator.errors import AllocationError, ClassMissing
from dray.allocator.index import Index
from dray.allocator.nodes import NodeFacts
from dray.api.claims import ResourceClaim
from dray.api.meta import ObjectKey
from tests.unit.allocator.world import (
    DRIVER,
    ask,
    make_claim,
    make_class,
    make_constraint,
    make_device,
    make_devices,
    make_holder,
    make_index,
    make_request,
    make_slice,
    names,
)

ONE = make_claim(make_request())


def make_cluster(nodes: int, devices: int = 4) -> Index:
    facts = [f"node-{number}" for number in range(nodes)]
    return make_index(
        *(
            make_slice(
                [make_device(f"dev-{each}", {"uuid": f"{name}/{each}", "numa": each % 2}) for each in range(devices)],
                node=name,
            )
            for name in facts
        ),
        nodes=facts,
    )


def fitting(index: Index, *claims: ResourceClaim) -> list[str]:
    return sorted(index.fitting(claims).nodes())


def test_a_question_to_equal_nodes_is_answered_once() -> None:
    index = make_cluster(50)
    assert index.fitting([ONE]).count == 50
    assert index.statistics.searches == 1
    assert len(index.fitting([ONE]).groups) == 1


def test_what_no_program_reads_does_not_tell_nodes_apart() -> None:
    index = make_cluster(10)
    claim = make_claim(make_request(count=2), constraints=[make_constraint(match=f"{DRIVER}/numa")])
    assert len(index.fitting([claim]).groups) == 1
    by_uuid = make_claim(make_request("r", 1, f'device.attributes["{DRIVER}"].uuid == "node-3/1"'))
    assert fitting(index, by_uuid) == ["node-3"]


def test_claims_of_one_template_share_a_program() -> None:
    index = make_cluster(1)
    for number in range(5):
        ask(index, make_claim(make_request(), name=f"claim-{number}"), node="node-0")
    assert index.statistics.programs == 1
    assert index.statistics.searches == 1


def test_a_claim_takes_its_devices_and_gives_them_back() -> None:
    index = make_cluster(2, devices=1)
    index.apply_claim(make_holder("holder", "dev-0", pool="node-0"))
    assert fitting(index, ONE) == ["node-1"]
    index.apply_claim(make_holder("holder", "dev-0", pool="node-1"))
    assert fitting(index, ONE) == ["node-0"]
    index.remove_claim(ObjectKey("default", "holder"))
    assert fitting(index, ONE) == ["node-0", "node-1"]


def test_a_claim_with_admin_access_keeps_nothing_in_use() -> None:
    index = make_cluster(1, devices=1)
    allocation = index.allocate("node-0", [make_claim(make_request(admin_access=True))])
    assert allocation is not None
    index.hold(allocation)
    assert fitting(index, ONE) == ["node-0"]


def test_slices_come_change_and_go() -> None:
    index = make_cluster(1, devices=1)
    index.apply_slice(make_slice(make_devices(3), node="node-0"))
    assert ask(index, make_claim(make_request(count=3)), node="node-0") == [["dev-0", "dev-1", "dev-2"]]
    index.remove_slice(f"node-0-{DRIVER}")
    assert fitting(index, ONE) == []


def test_nodes_come_and_go() -> None:
    index = make_cluster(2)
    index.remove_node("node-0")
    assert fitting(index, ONE) == ["node-1"]
    index.apply_node(NodeFacts("node-0"))
    assert fitting(index, ONE) == ["node-0", "node-1"]


def test_a_class_that_changes_changes_answers() -> None:
    index = make_cluster(1)
    assert fitting(index, ONE) == ["node-0"]
    index.apply_class(make_class("gpu", "false"))
    assert fitting(index, ONE) == []
    index.remove_class("gpu")
    with pytest.raises(ClassMissing):
        ask(index, ONE, node="node-0")


def test_errors_are_told_per_group() -> None:
    index = make_cluster(3)
    broken = make_claim(make_request("r", 1, f'device.attributes["{DRIVER}"].missing'))
    (group,) = index.fitting([broken]).groups
    assert not group.fits
    assert isinstance(group.error, AllocationError)
    assert sorted(group.nodes) == ["node-0", "node-1", "node-2"]


def test_all_results_at_once_are_those_of_each_node() -> None:
    index = make_cluster(3)
    index.apply_claim(make_holder("holder", "dev-0", "dev-1", pool="node-1"))
    together = {name: names(answer) for name, answer in index.allocate_all([ONE]) if isinstance(answer, tuple)}
    assert together == {f"node-{number}": ask(index, ONE, node=f"node-{number}") for number in range(3)}


def test_a_device_that_all_nodes_reach_is_used_up_for_all() -> None:
    slice_ = make_slice(make_devices(1), pool="net", all_nodes=True)
    index = make_index(slice_, nodes=["a", "b"])
    assert fitting(index, ONE) == ["a", "b"]
    index.apply_claim(make_holder("holder", "dev-0", pool="net"))
    assert fitting(index, ONE) == []


def test_a_fork_does_not_leak() -> None:
    index = make_cluster(2, devices=1)
    fork = index.fork()
    fork.apply_claim(make_holder("holder", "dev-0", pool="node-0"))
    fork.remove_node("node-1")
    assert fitting(fork, ONE) == []
    assert fitting(index, ONE) == ["node-0", "node-1"]


def test_a_fork_shares_what_was_found_out() -> None:
    index = make_cluster(2)
    index.fitting([ONE])
    searches = index.statistics.searches
    assert index.fork().fitting([ONE]).count == 2
    assert index.statistics.searches == searches


def test_room_counts_how_often_claims_fit() -> None:
    index = make_cluster(3, devices=4)
    index.apply_claim(make_holder("holder", "dev-0", pool="node-0"))
    assert index.room([ONE]) == 11
    assert index.room([make_claim(make_request(count=2))]) == 5
    assert index.room([ONE], at_most=7) == 7
    assert index.fitting([ONE]).count == 3


def test_room_counts_what_nodes_share_once() -> None:
    index = make_index(make_slice(make_devices(5), pool="net", all_nodes=True), nodes=["a", "b"])
    assert index.room([ONE]) == 5


def test_room_for_claims_that_use_nothing_up_has_no_end() -> None:
    index = make_cluster(1)
    assert index.room([make_claim(make_request(admin_access=True))], at_most=9) == 9


def test_a_node_that_is_not_known_has_what_its_slices_say() -> None:
    index = make_index(make_slice(make_devices(1), node="later"), nodes=[])
    assert ask(index, ONE, node="later") == [["dev-0"]]


def test_when_devices_of_too_many_kinds_have_been_seen_they_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "MOST_CLASSES", 10)
    index = make_cluster(1)
    by_uuid = make_claim(make_request("r", 1, f'device.attributes["{DRIVER}"].uuid.startsWith("node-0/")'))
    for number in range(20):
        slice_ = make_slice([make_device("dev", {"uuid": f"node-0/{number}"})], node="node-0")
        index.apply_slice(slice_)
        assert fitting(index, by_uuid) == ["node-0"]
    _, view = index.compile([by_uuid])
    assert view.size <= 11


def test_no_claims_need_nothing() -> None:
    assert make_cluster(1).allocate("node-0", []) == ()


def test_a_claim_without_requests_gets_an_empty_allocation() -> None:
    assert ask(make_cluster(1), make_claim(), node="node-0") == [[]]
