"""Where a pod goes, and why it goes nowhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from msgspec.structs import replace

from dray.api.claims import ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.codec import decode_as
from dray.api.meta import Json
from dray.api.nodes import view_node
from dray.api.pods import view_pod
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.placement.picture import Picture
from dray.placement.planning import Placement, Preferences, Rejection, Strategy, plan_placement
from dray.placement.pods import read_pod
from dray.testing.builders import make_claim, make_class, make_node, make_pod, make_request, make_slice


def make_picture(nodes: Iterable[Json] = (), slices: Iterable[Json] = ()) -> Picture:
    numbers = itertools.count()
    picture = Picture(make_id=lambda: f"share-{next(numbers)}")
    picture.apply_class(decode_as(DeviceClass, make_class()))
    for node in nodes:
        picture.apply_node(view_node(node))
    for item in slices:
        picture.apply_slice(decode_as(ResourceSlice, item))
    return picture


def two_nodes() -> Picture:
    names = ("node-1", "node-2")
    return make_picture([make_node(n) for n in names], [make_slice(n, ["gpu-0", "gpu-1"]) for n in names])


def claim_of(name: str = "claim", **request: object) -> ResourceClaim:
    return decode_as(ResourceClaim, make_claim(name, make_request(**request)))  # type: ignore[arg-type]


def place(picture: Picture, pod: Json, *claims: ResourceClaim, preferences: Preferences | None = None) -> Placement:
    plan = plan_placement(picture, read_pod(view_pod(pod)), claims, preferences=preferences or Preferences())
    assert isinstance(plan, Placement), plan
    return plan


def reject(picture: Picture, pod: Json, *claims: ResourceClaim) -> Rejection:
    plan = plan_placement(picture, read_pod(view_pod(pod)), claims)
    assert isinstance(plan, Rejection), plan
    return plan


def hold_one(picture: Picture, node: str) -> None:
    allocation = picture.index.allocate(node, [claim_of("held")])
    assert allocation is not None
    picture.index.hold(allocation)


def test_devices_are_packed_onto_the_node_that_is_used_already() -> None:
    picture = two_nodes()
    hold_one(picture, "node-2")
    assert place(picture, make_pod(), claim_of()).node == "node-2"


def test_devices_are_spread_if_asked_for() -> None:
    picture = two_nodes()
    hold_one(picture, "node-1")
    plan = place(picture, make_pod(), claim_of(), preferences=Preferences(devices=Strategy.SPREAD))
    assert plan.node == "node-2"


def test_a_pod_goes_where_its_allocated_claim_is() -> None:
    picture = two_nodes()
    claim = claim_of()
    allocation = picture.index.allocate("node-2", [claim])
    assert allocation is not None
    allocated = replace(claim, status=replace(claim.status, allocation=allocation[0]))
    assert place(picture, make_pod(), allocated).node == "node-2"


def test_a_claim_that_nothing_satisfies_counts_per_node() -> None:
    rejection = reject(two_nodes(), make_pod(), claim_of(count=3))
    assert str(rejection) == "0/2 nodes are available: 2 cannot allocate all claims."


def test_taints_labels_and_room_have_kubernetes_words() -> None:
    tainted = make_node("tainted") | {"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}}
    small = make_node("small", capacity={"cpu": "1", "memory": "1Gi", "pods": "10"})
    picture = make_picture([tainted, small])
    rejection = reject(picture, make_pod(requests={"cpu": "2"}))
    assert str(rejection) == "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {a: b}."
    other = reject(picture, make_pod(nodeSelector={"x": "y"}))
    assert other.reasons["node(s) didn't match Pod's node affinity/selector"] == 1


def test_pods_on_a_node_take_its_room_until_they_leave() -> None:
    picture = make_picture([make_node("node-1", capacity={"cpu": "2", "memory": "1Gi", "pods": "10"})])
    running = read_pod(view_pod(make_pod("running", requests={"cpu": "2"}, nodeName="node-1")))
    picture.apply_pod(running)
    assert reject(picture, make_pod(requests={"cpu": "1"})).reasons["Insufficient cpu"] == 1
    picture.remove_pod(running.key)
    assert place(picture, make_pod(requests={"cpu": "1"})).node == "node-1"


def test_a_pod_seen_before_its_node_counts_once_the_node_is_there() -> None:
    picture = make_picture()
    picture.apply_pod(read_pod(view_pod(make_pod("early", requests={"cpu": "16"}, nodeName="node-1"))))
    picture.apply_node(view_node(make_node("node-1")))
    assert reject(picture, make_pod(requests={"cpu": "1"})).reasons["Insufficient cpu"] == 1


def test_host_ports_collide_also_through_the_any_address() -> None:
    picture = make_picture([make_node("node-1")])

    def pod_with_port(name: str, ip: str) -> Json:
        pod = make_pod(name, nodeName="node-1")
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80, "hostIP": ip}]
        return pod

    picture.apply_pod(read_pod(view_pod(pod_with_port("a", "10.0.0.1"))))
    rejection = reject(picture, pod_with_port("b", ""))
    assert rejection.reasons["node(s) didn't have free ports for the requested pod ports"] == 1
    assert place(picture, pod_with_port("c", "10.0.0.2")).node == "node-1"


def test_preferred_affinity_outweighs_room() -> None:
    picture = make_picture([make_node("node-1"), make_node("node-2", labels={"disk": "ssd"})])
    term = {"weight": 100, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert place(picture, make_pod(affinity=affinity)).node == "node-2"


def test_an_earlier_alternative_of_a_prioritized_list_wins() -> None:
    large = make_slice("node-2", [{"name": "gpu-0", "attributes": {"large": {"bool": True}}}])
    picture = make_picture([make_node("node-1"), make_node("node-2")], [make_slice("node-1", ["gpu-0"]), large])
    expression = 'device.attributes["gpu.example.com"].?large.orValue(false)'
    selectors = [{"cel": {"expression": expression}}]
    common = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}
    request = {
        "name": "gpu",
        "firstAvailable": [{"name": "large", **common, "selectors": selectors}, {"name": "any", **common}],
    }
    claim = decode_as(ResourceClaim, make_claim("claim", request))
    plan = place(picture, make_pod(), claim)
    assert plan.node == "node-2"
    assert plan.allocations[0].devices.results[0].request == "gpu/large"


def test_a_taint_rule_takes_devices_out_and_its_end_brings_them_back() -> None:
    picture = two_nodes()
    rule = decode_as(
        DeviceTaintRule,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "maintenance"},
            "spec": {"deviceSelector": {"pool": "node-1"}, "taint": {"key": "a", "effect": "NoSchedule"}},
        },
    )
    picture.apply_rule(rule)
    assert {place(picture, make_pod(), claim_of()).node} == {"node-2"}
    assert picture.index.allocate("node-1", [claim_of()]) is None
    picture.remove_rule("maintenance")
    assert picture.index.allocate("node-1", [claim_of()]) is not None


def test_a_failing_selector_is_an_error_and_not_a_reason() -> None:
    rejection = reject(two_nodes(), make_pod(), claim_of(selector='device.attributes["gpu.example.com"].nope == "x"'))
    assert rejection.error is not None
    assert "no such key: nope" in str(rejection.error)


def test_a_fork_is_not_seen_by_the_picture_and_the_other_way_round() -> None:
    picture = two_nodes()
    fork = picture.fork()
    hold_one(fork, "node-1")
    fork.remove_node("node-2")
    assert fork.free_devices("node-1") == 1
    assert picture.free_devices("node-1") == 2
    picture.apply_node(view_node(make_node("node-3")))
    assert fork.node_count == 1
    assert picture.node_count == 3


def test_a_relabelled_node_is_judged_anew() -> None:
    picture = make_picture([make_node("node-1")])
    pod = make_pod(nodeSelector={"zone": "a"})
    assert reject(picture, pod).nodes == 1
    picture.apply_node(view_node(make_node("node-1", labels={"zone": "a"})))
    assert place(picture, pod).node == "node-1"
