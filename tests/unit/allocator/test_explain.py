"""Why claims don't fit: what is counted, what is blamed, and which changes are proposed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from dray.allocator.errors import ClassMissing, NodeSelectionFailed, SelectorFailed
from dray.allocator.explain import explain
from dray.allocator.explain_text import format_explanation, summary_line
from dray.allocator.index import Index
from dray.allocator.nodes import NodeFacts
from dray.allocator.reasons import ChangeKind, Explanation, GroupReason, Obstacle, Stage
from dray.allocator.search import Limits
from dray.api.claims import AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult, ResourceClaim
from dray.api.devices import DeviceTaint
from dray.api.features import ALL_GATES
from dray.api.meta import ObjectKey
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.api.quantities import Quantity
from dray.cli.clusters import read_cluster
from tests.unit.allocator.world import (
    DRIVER,
    NODE,
    make_choice,
    make_claim,
    make_constraint,
    make_device,
    make_devices,
    make_holder,
    make_index,
    make_request,
    make_slice,
)

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "explanations.md").read_text()
SECTIONS = re.findall(
    r"```sh\ndray explain -f (\S+) claim/train\n```\n\n```text\n(.*?)\n```.*?```text\n(.*?)\n```", PAGE, re.S
)


@pytest.mark.parametrize(("file", "text", "line"), SECTIONS, ids=[Path(file).stem for file, _, _ in SECTIONS])
def test_the_page_about_explanations_shows_what_is_said(file: str, text: str, line: str) -> None:
    cluster = read_cluster([str(ROOT / file)], ALL_GATES)
    (claims,) = cluster.claim_sets()
    explanation = explain(cluster.make_index(), claims.claims)
    assert format_explanation(explanation) == text
    assert summary_line(explanation) == line


def test_the_page_has_all_examples() -> None:
    shown = {Path(file).name for file, _, _ in SECTIONS}
    assert shown == {path.name for path in (ROOT / "examples" / "explanations").glob("*.yaml")}
    assert len(shown) == 10


# Helpers


def ask(index: Index, *claims: ResourceClaim, nodes: Sequence[str] | None = None) -> Explanation:
    explanation = explain(index, claims, nodes)
    assert format_explanation(explanation)
    assert summary_line(explanation)
    return explanation


def only_group(explanation: Explanation) -> GroupReason:
    (group,) = explanation.groups
    return group


def left_after(explanation: Explanation) -> dict[Stage, int]:
    """Of the only request: the devices that are left after each stage."""
    (count,) = only_group(explanation).requests
    return {stage.stage: stage.left for stage in count.stages}


def changes(explanation: Explanation) -> list[str]:
    return [change.text for change in explanation.changes]


# What is counted


def test_devices_are_counted_on_their_way() -> None:
    taint = DeviceTaint(key="broken", effect="NoSchedule")
    devices = [
        make_device("old", {"model": "old"}, capacity={"memory": "40Gi"}),
        make_device("small", {"model": "new"}, capacity={"memory": "8Gi"}),
        make_device("broken", {"model": "new"}, capacity={"memory": "40Gi"}, taints=(taint,)),
        make_device("used", {"model": "new"}, capacity={"memory": "40Gi"}),
        make_device("good", {"model": "new"}, capacity={"memory": "40Gi"}),
    ]
    nics = make_slice(make_devices(2), driver="nic.example.com")
    selector = f'device.attributes["{DRIVER}"].model == "new"'
    claim = make_claim(make_request("req", 2, selector, capacity={"memory": "10Gi"}))
    explanation = ask(make_index(make_slice(devices), nics, used=["used"]), claim)
    assert left_after(explanation) == {
        Stage.SEEN: 7,
        Stage.CLASS: 5,
        Stage.SELECTORS: 4,
        Stage.ENABLED: 4,
        Stage.CAPACITY: 3,
        Stage.UNTAINTED: 2,
        Stage.FREE: 1,
        Stage.ROOM: 1,
    }
    (count,) = only_group(explanation).requests
    causes = {loss.cause or str(loss.claim) for stage in count.stages for loss in stage.losses} - {"None"}
    assert causes == {"memory is 8Gi, 10Gi requested", "tainted broken:NoSchedule", "default/holder"}
    assert count.bottleneck.stage == Stage.FREE


def test_the_node_that_has_most_of_it_comes_first() -> None:
    taint = DeviceTaint(key="broken", effect="NoSchedule")
    mostly = (*make_devices(3), make_device("bad", taints=(taint,)))
    slices = [make_slice(make_devices(4), node="half"), make_slice(mostly, node="most"), make_slice((), node="none")]
    index = make_index(*slices, nodes=["half", "none", "most"])
    index.apply_claim(make_holder("holder", "dev-0", "dev-1", pool="half"))
    explanation = ask(index, make_claim(make_request("req", 4)))
    assert [group.nodes for group in explanation.groups] == [("most",), ("half",), ("none",)]


def test_the_selector_that_removes_most_is_told() -> None:
    devices = make_devices(8, index=lambda number: number)
    texts = [f'device.attributes["{DRIVER}"].index {test}' for test in ("< 7", "> 6")]
    explanation = ask(make_index(make_slice(devices)), make_claim(make_request("req", 1, *texts)))
    (count,) = only_group(explanation).requests
    assert [(stage.left, stage.rejects) for stage in count.stages if stage.stage == Stage.SELECTORS] == [(7, 1), (0, 7)]
    assert "passing selector #1    0   this one alone rejects 7" in format_explanation(explanation)
    assert changes(explanation) == [f"without selector #{number} in request req" for number in (0, 1)]


def test_shared_capacity_that_is_left_is_told() -> None:
    device = make_device("dev-0", capacity={"memory": "10Gi"}, allow_multiple_allocations=True)
    index = make_index(make_slice([device]))
    share = DeviceRequestAllocationResult(
        request="req", driver=DRIVER, pool=NODE, device="dev-0", share_id="a",
        consumed_capacity={"memory": Quantity.parse("8Gi")},
    )  # fmt: skip
    holder = make_holder("tenant")
    allocation = AllocationResult(devices=DeviceAllocationResult(results=(share,)))
    index.apply_claim(replace(holder, status=replace(holder.status, allocation=allocation)))
    explanation = ask(index, make_claim(make_request("req", capacity={"memory": "4Gi"})))
    assert "memory: 2Gi of 10Gi left, 4Gi needed (1)" in format_explanation(explanation)
    assert changes(explanation) == [
        "after claim default/tenant ends",
        "with memory 2Gi instead of 4Gi in request req",
    ]


def test_features_and_nodes_that_devices_need_are_told() -> None:
    bound = make_slice([make_device("dev-0", binding_conditions=("Ready",))])
    gates = ALL_GATES.with_changes({"DRADeviceBindingConditions": False})
    explanation = ask(make_index(bound, gates=gates), make_claim(make_request()))
    assert "feature DRADeviceBindingConditions is turned off (1)" in format_explanation(explanation)
    lean = make_slice(make_devices(1), skip_node_operations=("Prepare",))
    explanation = ask(make_index(lean), make_claim(make_request()))
    assert "the node can't leave out node operations (1)" in format_explanation(explanation)
    assert left_after(explanation)[Stage.ENABLED] == 0


def test_admin_access_minds_no_other_claim() -> None:
    index = make_index(make_slice(make_devices(1)), used=["dev-0"])
    assert ask(index, make_claim(make_request(admin_access=True))).fits
    assert not ask(index, make_claim(make_request())).fits


def test_all_devices_means_all_that_match() -> None:
    index = make_index(make_slice(make_devices(3)), used=["dev-1"])
    explanation = ask(index, make_claim(make_request(everything=True)))
    assert summary_line(explanation).startswith("request req needs all devices of class gpu, node-1 has 2 free")
    assert changes(explanation) == ["after claim default/holder ends"]


def test_every_alternative_is_counted() -> None:
    claim = make_claim(make_choice("req", ("big", 5, ""), ("small", 4, "")))
    group = only_group(ask(make_index(make_slice(make_devices(3))), claim))
    assert [(each.request, each.available, each.wanted) for each in group.blocked] == [
        ("req/big", 3, 5),
        ("req/small", 3, 4),
    ]


def test_pools_that_are_not_used_are_told() -> None:
    invalid = make_slice([make_device("twin"), make_device("twin")], name="a", pool="a")
    incomplete = make_slice(make_devices(2), name="b", pool="b", count=3)
    quarrel = [make_slice(make_devices(1), name=f"c{count}", pool="c", count=count) for count in (3, 4)]
    text = format_explanation(ask(make_index(invalid, incomplete, *quarrel), make_claim(make_request())))
    assert "not counted: pool gpu.example.com/a is invalid: duplicate device name twin" in text
    assert "not counted: pool gpu.example.com/b is incomplete: 1 of 3 slices of generation 1 are there" in text
    assert "its slices of generation 1 don't agree" in text


# What is blamed


def test_requests_that_fit_alone_but_not_together() -> None:
    claim = make_claim(make_request("a", 2), make_request("b", 2))
    group = only_group(ask(make_index(make_slice(make_devices(3))), claim))
    assert group.obstacle == Obstacle.TOGETHER
    assert group.detail == "together they want 4 devices, and there are 3"


def test_counters_that_do_not_last_for_all() -> None:
    parts = make_slice([make_device(f"p{n}", counters={"card": {"memory": 4}}) for n in range(4)], name="a", count=2)
    card = make_slice(name="b", count=2, shared_counters={"card": {"memory": 10}})
    explanation = ask(make_index(parts, card), make_claim(make_request("req", 3)))
    group = only_group(explanation)
    assert group.obstacle == Obstacle.TOGETHER
    assert group.detail == "together they draw more than is left of the counters (card/memory: 10 of 10 left)"
    assert changes(explanation) == ["with count 2 instead of 3 in request req"]


def test_the_best_value_of_an_attribute_is_told() -> None:
    roots = ("a", "a", "a", "b", "b")
    devices = [make_device(f"dev-{number}", {"root": root}) for number, root in enumerate(roots)]
    claim = make_claim(make_request("req", 4), constraints=[make_constraint(match=f"{DRIVER}/root")])
    explanation = ask(make_index(make_slice((*devices, make_device("bare")))), claim)
    gap = only_group(explanation).gap
    assert gap is not None
    assert (gap.kind, gap.wanted, gap.best, gap.without) == ("match", 4, 3, 1)
    assert [(each.value, each.fillings[0].available) for each in gap.values] == [("a", 3), ("b", 2)]
    assert summary_line(explanation).startswith(f"needs 4 devices with one {DRIVER}/root, node-1 has 3 free with a; ")
    assert changes(explanation) == [
        "with count 3 instead of 4 in request req",
        f"without constraint #0 ({DRIVER}/root)",
    ]


def test_values_that_must_differ_are_counted() -> None:
    devices = make_devices(4, numa=lambda number: number % 2)
    claim = make_claim(make_request("req", 3), constraints=[make_constraint(distinct=f"{DRIVER}/numa")])
    gap = only_group(ask(make_index(make_slice(devices)), claim)).gap
    assert gap is not None
    assert (gap.kind, gap.wanted, gap.best) == ("distinct", 3, 2)


def test_a_misspelled_attribute_of_a_constraint_is_found() -> None:
    claim = make_claim(make_request("req", 2), constraints=[make_constraint(match=f"{DRIVER}/rooot")])
    explanation = ask(make_index(make_slice(make_devices(2, root=lambda number: "a"))), claim)
    assert f"no device has the attribute {DRIVER}/rooot; did you mean {DRIVER}/root?" in format_explanation(explanation)
    assert changes(explanation)[0] == f"with attribute {DRIVER}/root in place of {DRIVER}/rooot in constraint #0"


def test_of_several_constraints_the_one_at_fault_is_blamed() -> None:
    devices = make_devices(4, root=lambda number: "a", numa=lambda number: number)
    constraints = [make_constraint(match=f"{DRIVER}/{name}") for name in ("root", "numa")]
    gap = only_group(
        ask(make_index(make_slice(devices)), make_claim(make_request("req", 2), constraints=constraints))
    ).gap
    assert gap is not None
    assert gap.constraint == 1


def test_the_set_that_comes_closest_to_an_expression_is_told() -> None:
    devices = make_devices(6, index=lambda number: number * 3)
    expression = (
        f"devices.size() == 2 && devices[1].attributes['{DRIVER}'].index - devices[0].attributes['{DRIVER}'].index == 7"
    )
    claim = make_claim(make_request("req", 2), constraints=[make_constraint(cel=expression)])
    explanation = ask(make_index(make_slice(devices)), claim)
    gap = only_group(explanation).gap
    assert gap is not None
    assert gap.closest is not None
    assert (gap.closest.devices, gap.closest.miss) == (("dev-0", "dev-2"), "6 instead of 7")
    assert gap.best == 15
    assert changes(explanation) == ["without constraint #0 (the CEL expression)"]


def test_an_expression_with_alternatives_is_taken_as_a_whole() -> None:
    claim = make_claim(make_request("req", 2), constraints=[make_constraint(cel="size(devices) == 3 || false && true")])
    gap = only_group(ask(make_index(make_slice(make_devices(3))), claim)).gap
    assert gap is not None
    assert gap.closest is not None
    assert gap.closest.condition == "size(devices) == 3 || false && true"


def test_errors_come_with_the_same_structure() -> None:
    claim = make_claim(make_request("req", 1, f'device.attributes["{DRIVER}"].modle == "x"'))
    explanation = ask(make_index(make_slice(make_devices(2, model=lambda number: "x"))), claim)
    group = only_group(explanation)
    assert isinstance(group.error, SelectorFailed)
    assert group.requests[0].bottleneck.stage == Stage.SELECTORS
    assert changes(explanation)[0] == f"with attribute {DRIVER}/model in place of {DRIVER}/modle in request req"


def test_a_missing_class_is_a_problem_of_the_claim() -> None:
    explanation = ask(make_index(make_slice(make_devices(1))), make_claim(make_request(device_class="gpus")))
    assert isinstance(only_group(explanation).error, ClassMissing)
    assert "As it is, it can't be allocated anywhere:" in format_explanation(explanation)
    assert changes(explanation) == ["with class gpu in place of gpus in request req"]


def test_an_expression_that_does_not_compile_is_drawn() -> None:
    explanation = ask(make_index(make_slice(make_devices(1))), make_claim(make_request("req", 1, "device.driver ==")))
    lines = format_explanation(explanation).splitlines()
    assert any(line.strip().startswith("|") and line.endswith("^") for line in lines)


def test_a_constraint_that_refuses_all_shows_the_values() -> None:
    devices = make_devices(2, root=lambda number: f"pci{number}")
    claim = make_claim(make_request(everything=True), constraints=[make_constraint(match=f"{DRIVER}/root")])
    group = only_group(ask(make_index(make_slice(devices)), claim))
    assert group.gap is not None
    assert {each.value for each in group.gap.values} == {"pci0", "pci1"}


def test_a_slice_that_nobody_can_read_concerns_all_nodes() -> None:
    odd = NodeSelectorRequirement(key="zone", operator="Like", values=("a",))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(odd,)),))
    index = make_index(make_slice(make_devices(1), node_selector=selector), nodes=["node-1", "node-2"])
    group = only_group(ask(index, make_claim(make_request())))
    assert isinstance(group.error, NodeSelectionFailed)
    assert group.nodes == ("node-1", "node-2")


def test_a_search_that_runs_out_of_time_is_an_error() -> None:
    devices = make_devices(20, index=lambda number: number)
    claim = make_claim(make_request("req", 10), constraints=[make_constraint(cel="devices[0].driver == ''")])
    explanation = explain(make_index(make_slice(devices)), [claim], limits=Limits(expired=lambda: True))
    assert "time limit" in format_explanation(explanation)


# Several claims, several nodes


def test_claims_of_a_pod_are_explained_together() -> None:
    claims = [make_claim(make_request("req", count), name=name) for name, count in (("one", 2), ("two", 5))]
    explanation = ask(make_index(make_slice(make_devices(4))), *claims)
    text = format_explanation(explanation)
    assert text.startswith("Claims default/one and default/two do not fit together on the only node.")
    assert "request req of claim two needs 5 devices of class gpu" in text
    assert changes(explanation) == ["with count 2 instead of 5 in request req of claim two"]


def test_nodes_with_the_same_story_are_told_of_once_the_closest_first() -> None:
    sizes = {"node-1": 1, "node-2": 3, "node-10": 1, "node-3": 0}
    slices = [make_slice(make_devices(size), node=node) for node, size in sizes.items()]
    explanation = ask(make_index(*slices, nodes=list(sizes)), make_claim(make_request("req", 4)))
    assert [group.nodes for group in explanation.groups] == [("node-2",), ("node-1", "node-10"), ("node-3",)]
    assert explanation.nodes == 4


def test_only_the_nodes_asked_for_are_looked_at() -> None:
    slices = [make_slice(make_devices(2), node=node) for node in ("node-1", "node-2")]
    index = make_index(*slices, nodes=["node-1", "node-2", "node-3"])
    claim = make_claim(make_request("req", 2))
    assert ask(index, claim).fitting == 2
    assert not ask(index, claim, nodes=["node-3"]).fits
    assert "nowhere to go" in format_explanation(ask(index, claim, nodes=[]))


def test_equal_nodes_cost_as_much_as_one() -> None:
    def evaluations(nodes: int) -> int:
        names = [f"node-{number}" for number in range(nodes)]
        slices = [
            make_slice([make_device("dev-0", {"model": "x", "serial": name})], node=name, name=name) for name in names
        ]
        index = make_index(*slices, nodes=names)
        claim = make_claim(make_request("req", 2, f'device.attributes["{DRIVER}"].model == "x"'))
        explanation = explain(index, [claim])
        assert (len(explanation.groups), explanation.nodes) == (1, nodes)
        return index.statistics.selector_evaluations

    assert evaluations(200) == evaluations(1)


# What would help


def test_finding_out_what_would_help_can_be_left_out() -> None:
    index = make_index(make_slice(make_devices(1)))
    explanation = explain(index, [make_claim(make_request("req", 2))], try_changes=False)
    assert explanation.changes == ()
    assert summary_line(explanation) == "request req needs 2 devices of class gpu, node-1 has 1"


def test_the_fewest_claims_to_wait_for_are_found() -> None:
    index = make_index(make_slice(make_devices(4)))
    for name, devices in {"one": ["dev-0"], "two": ["dev-1"], "three": ["dev-2", "dev-3"]}.items():
        index.apply_claim(make_holder(name, *devices))
    (change,) = [each for each in ask(index, make_claim(make_request())).changes if each.kind == ChangeKind.WAIT]
    assert len(change.claims) == 1
    assert change.claims[0].name in ("one", "two")
    explanation = ask(index, make_claim(make_request("req", 3)))
    (change,) = [each for each in explanation.changes if each.kind == ChangeKind.WAIT]
    assert ObjectKey("default", "three") in change.claims
    assert len(change.claims) == 2


def test_waiting_is_not_proposed_where_it_does_not_help() -> None:
    index = make_index(make_slice(make_devices(2)), used=["dev-0"])
    assert changes(ask(index, make_claim(make_request("req", 3)))) == ["with count 1 instead of 3 in request req"]


def test_a_toleration_is_proposed() -> None:
    taint = DeviceTaint(key="broken", value="yes", effect="NoExecute")
    index = make_index(make_slice([make_device("dev-0", taints=(taint,))]))
    explanation = ask(index, make_claim(make_request()))
    assert changes(explanation) == ["if the taint broken=yes:NoExecute were tolerated in request req"]


def test_the_index_is_left_as_it_was() -> None:
    index = make_index(make_slice(make_devices(2)), nodes=[NodeFacts(NODE)], used=["dev-0", "dev-1"])
    claim = make_claim(make_request())
    before = ask(index, claim)
    assert index.allocate(NODE, [claim]) is None
    assert ask(index, claim) == before
