"""The independent checker: accepts what is right, and names the rule, claim, request and device of what isn't."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from dray.allocator.nodes import NodeFacts
from dray.allocator.state import AllocatedState
from dray.allocator.verify import Rule, Violation, verify, verify_cluster
from dray.api.claims import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceClaimConfiguration,
    DeviceDerivedAttribute,
    DeviceRequestAllocationResult,
    DeviceToleration,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimStatus,
)
from dray.api.classes import DeviceClass, DeviceClassConfiguration
from dray.api.devices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceID,
    DeviceTaint,
    SharedDeviceID,
)
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import ObjectKey
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.api.quantities import Quantity
from dray.api.slices import ResourceSlice
from tests.unit.allocator.world import (
    DRIVER,
    NODE,
    make_choice,
    make_claim,
    make_class,
    make_constraint,
    make_device,
    make_devices,
    make_index,
    make_request,
    make_slice,
)

CLASSES = (make_class("gpu"), make_class("nic"))
HERE = NodeFacts(NODE)


class Case:
    """Slices, claims and what the allocator makes of them; then one thing is changed and the checker looks at it."""

    def __init__(
        self,
        *slices: ResourceSlice,
        claims: Sequence[ResourceClaim],
        classes: Sequence[DeviceClass] = CLASSES,
        gates: FeatureGates = ALL_GATES,
        node: NodeFacts = HERE,
    ) -> None:
        self.slices, self.claims, self.classes, self.gates, self.node = slices, tuple(claims), classes, gates, node
        index = make_index(*slices, classes=classes, nodes=[node], gates=gates)
        results = index.allocate(node.name, self.claims)
        assert results is not None
        self.results = results
        assert self.check() == [], "what the allocator found is right"

    def check(self, **changes: Any) -> list[Violation]:
        given = {
            "slices": self.slices,
            "classes": self.classes,
            "node": self.node,
            "state": AllocatedState(),
            "claims": self.claims,
            "results": self.results,
            "gates": self.gates,
            **changes,
        }
        return verify(**given)

    def rules(self, **changes: Any) -> set[Rule]:
        return {violation.rule for violation in self.check(**changes)}

    def with_results(self, *devices: DeviceRequestAllocationResult) -> tuple[AllocationResult, ...]:
        """The first claim's devices replaced."""
        first = self.results[0]
        return (replace(first, devices=replace(first.devices, results=devices)), *self.results[1:])

    def device(self, number: int = 0) -> DeviceRequestAllocationResult:
        return self.results[0].devices.results[number]


def simple(count: int = 2, **request: Any) -> Case:
    return Case(make_slice(make_devices(4)), claims=[make_claim(make_request("req", count, **request))])


def test_a_violation_names_claim_request_device_and_rule() -> None:
    case = simple()
    state = AllocatedState(devices=frozenset({DeviceID(DRIVER, NODE, "dev-1")}))
    (violation,) = case.check(state=state)
    assert str(violation) == (
        "claim default/claim, request req, device gpu.example.com/node-1/dev-1: in use twice: is in use already"
    )
    assert violation == Violation(
        Rule.IN_USE, ObjectKey("default", "claim"), "is in use already", "req", DeviceID(DRIVER, NODE, "dev-1")
    )


def test_one_result_per_claim() -> None:
    with pytest.raises(ValueError, match="0 results for 1 claims"):
        simple().check(results=())


def test_the_count_is_exact() -> None:
    case = simple(2)
    assert case.rules(results=case.with_results(case.device())) == {Rule.COUNT}
    assert case.rules(results=case.with_results(case.device(0), case.device(0))) == {Rule.IN_USE}


def test_requests_are_answered_once_and_in_order() -> None:
    case = Case(make_slice(make_devices(4)), claims=[make_claim(make_request("a"), make_request("b"))])
    assert case.rules(results=case.with_results(case.device(1), case.device(0))) == {Rule.REQUESTS}
    assert case.rules(results=case.with_results(case.device(0))) == {Rule.REQUESTS}
    stray = replace(case.device(1), request="c", device="dev-3")
    assert case.rules(results=case.with_results(case.device(0), case.device(1), stray)) == {Rule.REQUESTS}


def test_one_alternative_wins_whole() -> None:
    case = Case(make_slice(make_devices(4)), claims=[make_claim(make_choice("a", ("big", 2, ""), ("small", 1, "")))])
    assert case.device().request == "a/big"
    mixed = replace(case.device(1), request="a/small")
    assert case.rules(results=case.with_results(case.device(), mixed)) == {Rule.REQUESTS}
    other = tuple(replace(case.device(number), request="a/small") for number in (0, 1))
    assert case.rules(results=case.with_results(*other)) == {Rule.COUNT}


def test_more_than_32_devices_are_too_many() -> None:
    case = Case(make_slice(make_devices(40)), claims=[make_claim(make_request("req", 32))])
    claims = [make_claim(make_request("req", 33))]
    more = (*case.results[0].devices.results, replace(case.device(), device="dev-39"))
    assert case.rules(claims=claims, results=case.with_results(*more)) == {Rule.LIMIT}


def test_a_device_must_exist_in_a_complete_pool() -> None:
    case = simple()
    assert case.rules(slices=[make_slice(make_devices(1))]) == {Rule.DEVICE}
    assert case.rules(slices=[make_slice(make_devices(4), count=2)]) == {Rule.DEVICE}
    assert case.rules(slices=[make_slice((*make_devices(4), make_device("dev-0")))]) == {Rule.DEVICE}
    newer = make_slice(make_devices(1), name="newer", generation=2, count=1)
    assert case.rules(slices=[*case.slices, newer]) == {Rule.DEVICE}
    (violation, *_) = case.check(slices=[make_slice(make_devices(4), count=2)])
    assert violation.detail == "1 of 2 slices of generation 1 are there"


def test_a_device_must_be_in_reach() -> None:
    case = simple()
    assert Rule.DEVICE in case.rules(node=NodeFacts("elsewhere"))
    one = tuple(make_device(f"dev-{number}", node_name=NODE) for number in range(2))
    case = Case(
        make_slice((*one, make_device("dev-2", node_name="other")), node=None, per_device_node_selection=True),
        claims=[make_claim(make_request("req", 2))],
    )
    far = replace(case.device(1), device="dev-2")
    assert case.rules(results=case.with_results(case.device(), far)) == {Rule.REACH}


def test_selectors_of_class_and_request_must_hold() -> None:
    case = Case(
        make_slice(make_devices(3, index=lambda number: number)),
        claims=[make_claim(make_request("req", 1, f'device.attributes["{DRIVER}"].index > 1'))],
    )
    wrong = case.with_results(replace(case.device(), device="dev-0"))
    (violation,) = case.check(results=wrong)
    assert (violation.rule, violation.detail) == (
        Rule.SELECTOR,
        '#0 is false: device.attributes["gpu.example.com"].index > 1',
    )
    (violation,) = case.check(classes=[make_class("gpu", 'device.driver == "x"')])
    assert violation.detail == '#0 is false: device.driver == "x"'.replace("#0", "of class gpu #0")
    assert case.rules(classes=[make_class("gpu", 'device.attributes["x"].y')]) == {Rule.SELECTOR}
    assert case.rules(classes=[]) == {Rule.CLASS}


def test_taints_need_a_toleration() -> None:
    taint = DeviceTaint(key="broken", value="yes", effect="NoSchedule")
    tolerated = (DeviceToleration(key="broken", operator="Exists"),)
    slices = [make_slice([make_device("dev-0", taints=(taint,))])]
    case = Case(*slices, claims=[make_claim(make_request("req", tolerations=tolerated))])
    intolerant = [make_claim(make_request("req"))]
    assert case.rules(claims=intolerant) == {Rule.TAINT, Rule.TOLERATIONS}
    forgotten = case.with_results(replace(case.device(), tolerations=()))
    assert case.rules(results=forgotten) == {Rule.TOLERATIONS}
    off = ALL_GATES.with_changes({"DRADeviceTaints": False})
    assert case.rules(claims=intolerant, results=forgotten, gates=off) == set()


def test_all_means_all() -> None:
    case = Case(make_slice(make_devices(3)), claims=[make_claim(make_request("req", everything=True))])
    (violation,) = case.check(results=case.with_results(case.device(0), case.device(2)))
    assert (violation.rule, violation.device) == (Rule.ALL, DeviceID(DRIVER, NODE, "dev-1"))
    incomplete = make_slice([make_device("x")], name="more", pool="more", count=2)
    assert case.rules(slices=[*case.slices, incomplete]) == {Rule.ALL}


def test_no_device_twice() -> None:
    claims = [make_claim(make_request("req", 2), name="one"), make_claim(make_request("req"), name="two")]
    case = Case(make_slice(make_devices(4)), claims=claims)
    second = case.results[1]
    stolen = replace(second, devices=replace(second.devices, results=(case.device(1),)))
    (violation,) = case.check(results=(case.results[0], stolen))
    assert (violation.rule, violation.claim.name) == (Rule.IN_USE, "two")
    assert violation.detail == "claim default/one, request req has it too"


def test_admin_access_ignores_other_claims_but_not_its_own() -> None:
    requests = [make_request("a", admin_access=True), make_request("b", admin_access=True)]
    case = Case(make_slice(make_devices(2)), claims=[make_claim(*requests)])
    state = AllocatedState(devices=frozenset({DeviceID(DRIVER, NODE, "dev-0")}))
    assert case.rules(state=state) == set()
    twice = case.with_results(case.device(), replace(case.device(1), device="dev-0"))
    assert case.rules(results=twice) == {Rule.IN_USE}
    unmarked = case.with_results(case.device(), replace(case.device(1), admin_access=None))
    assert case.rules(results=unmarked) == {Rule.ADMIN_ACCESS}
    assert case.rules(gates=ALL_GATES.with_changes({"DRAAdminAccess": False})) == {Rule.FEATURES}


PARTITIONS = make_slice(
    [make_device(f"part-{number}", counters={"card": {"memory": 30}}) for number in range(4)], name="devices", count=2
)
CARD = make_slice(name="counters", count=2, shared_counters={"card": {"memory": 100}})


def test_counters_are_not_overdrawn() -> None:
    case = Case(PARTITIONS, CARD, claims=[make_claim(make_request("req", 3))])
    one_in_use = AllocatedState(devices=frozenset({DeviceID(DRIVER, NODE, "part-3")}))
    (violation,) = case.check(state=one_in_use)
    assert (violation.rule, violation.detail) == (Rule.COUNTERS, "card/memory: 120 consumed, there are 100")
    assert Rule.FEATURES in case.rules(gates=ALL_GATES.with_changes({"DRAPartitionableDevices": False}))


def grouped(name: str, *groups: str) -> Device:
    use = DeviceCounterConsumption(counter_set="card", compatibility_groups=groups)
    return replace(make_device(name), consumes_counters=(use,))


@pytest.mark.parametrize(("other", "fits"), [(("a",), True), (("c",), False), ((), False)])
def test_devices_of_a_counter_set_need_a_group_in_common(other: tuple[str, ...], fits: bool) -> None:
    devices = [grouped("one", "a", "b"), grouped("two", "a"), grouped("other", *other)]
    case = Case(make_slice(devices, count=2), CARD, claims=[make_claim(make_request("req", 2))])
    third = AllocatedState(devices=frozenset({DeviceID(DRIVER, NODE, "other")}))
    assert case.rules(state=third) == (set() if fits else {Rule.COMPATIBILITY})


def shareable(memory: str = "10Gi", policy: CapacityRequestPolicy | None = None) -> Device:
    capacity = DeviceCapacity(value=Quantity.parse(memory), request_policy=policy)
    return replace(make_device("dev-0"), capacity={"memory": capacity}, allow_multiple_allocations=True)


def test_capacity_is_shared_out_but_not_more_than_there_is() -> None:
    claims = [make_claim(make_request("req", capacity={"memory": "4Gi"}), name=name) for name in ("one", "two")]
    case = Case(make_slice([shareable()]), claims=claims)
    used = {DeviceID(DRIVER, NODE, "dev-0"): {"memory": Quantity.parse("3Gi")}}
    shares = frozenset({SharedDeviceID(DRIVER, NODE, "dev-0", "some-id")})
    (violation,) = case.check(state=AllocatedState(shares=shares, capacity=used))
    assert (violation.rule, violation.claim.name) == (Rule.CAPACITY, "two")
    wrong = replace(case.device(), consumed_capacity={"memory": Quantity.parse("1Gi")})
    assert case.rules(results=case.with_results(wrong)) == {Rule.CAPACITY}
    assert case.rules(results=case.with_results(replace(case.device(), share_id=None))) == {Rule.SHARES, Rule.IN_USE}
    same = replace(case.device(), share_id=case.results[1].devices.results[0].share_id)
    assert case.rules(results=case.with_results(same)) == {Rule.IN_USE}


def test_capacity_follows_the_policy_of_the_device() -> None:
    steps = CapacityRequestPolicyRange(min=Quantity.parse("1Gi"), step=Quantity.parse("2Gi"), max=Quantity.parse("7Gi"))
    policy = CapacityRequestPolicy(default=Quantity.parse("1Gi"), valid_range=steps)
    case = Case(
        make_slice([shareable(policy=policy)]), claims=[make_claim(make_request("req", capacity={"memory": "4Gi"}))]
    )
    assert case.device().consumed_capacity == {"memory": Quantity.parse("5Gi")}
    too_much = [make_claim(make_request("req", capacity={"memory": "8Gi"}))]
    assert case.rules(claims=too_much) == {Rule.CAPACITY}
    unknown = [make_claim(make_request("req", capacity={"cores": "1"}))]
    (violation,) = case.check(claims=unknown)
    assert violation.detail == "the device has no capacity cores"
    values = CapacityRequestPolicy(valid_values=(Quantity.parse("2Gi"), Quantity.parse("6Gi")))
    assert case.rules(slices=[make_slice([shareable(policy=values)])]) == {Rule.CAPACITY}


def test_constraints_hold_for_the_set() -> None:
    devices = make_devices(4, root=lambda number: f"pci{number // 2}", number=lambda number: number)
    attribute = f"{DRIVER}/root"
    for constraint in (
        make_constraint(match=attribute),
        make_constraint("req", match=attribute),
        make_constraint(cel=f"devices.all(d, d.attributes['{DRIVER}'].number < 2)"),
    ):
        case = Case(make_slice(devices), claims=[make_claim(make_request("req", 2), constraints=[constraint])])
        wrong = case.with_results(case.device(), replace(case.device(1), device="dev-3"))
        (violation,) = case.check(results=wrong)
        assert violation.rule == Rule.CONSTRAINT
        assert violation.detail.startswith("constraint #0: ")
    distinct = make_constraint(distinct=attribute)
    case = Case(make_slice(devices), claims=[make_claim(make_request("req", 2), constraints=[distinct])])
    same = case.with_results(case.device(), replace(case.device(), device="dev-1"))
    (violation,) = case.check(results=same)
    assert violation.detail.endswith(f"have {attribute} in common: pci0")


def test_a_device_without_the_attribute_breaks_the_constraint() -> None:
    devices = [make_device("dev-0", {"root": "a"}), make_device("dev-1")]
    case = Case(
        make_slice(devices),
        claims=[make_claim(make_request("req"), constraints=[make_constraint(match=f"{DRIVER}/root")])],
    )
    (violation,) = case.check(results=case.with_results(replace(case.device(), device="dev-1")))
    assert violation.detail == f"constraint #0: {DRIVER}/{NODE}/dev-1 has no attribute {DRIVER}/root"


def test_lists_match_if_they_have_a_value_in_common() -> None:
    devices = [make_device(f"dev-{n}", {"root": value}) for n, value in enumerate((["a", "b"], ["b", "c"], ["c"]))]
    match = make_constraint(match=f"{DRIVER}/root")
    case = Case(make_slice(devices), claims=[make_claim(make_request("req", 2), constraints=[match])])
    apart = case.with_results(case.device(), replace(case.device(1), device="dev-2"))
    assert case.rules(results=apart) == {Rule.CONSTRAINT}
    assert case.rules(gates=ALL_GATES.with_changes({"DRAListTypeAttributes": False})) == {Rule.CONSTRAINT}


def test_derived_attributes_shadow_those_of_the_device() -> None:
    devices = make_devices(2, root=lambda number: f"pci{number}")
    derived = (DeviceDerivedAttribute(name=f"{DRIVER}/root", expression="'same'"),)
    claim = make_claim(
        make_request("req", 2, derived_attributes=derived), constraints=[make_constraint(match=f"{DRIVER}/root")]
    )
    case = Case(make_slice(devices), claims=[claim])
    assert case.rules(claims=[make_claim(make_request("req", 2), constraints=claim.spec.devices.constraints)]) == {
        Rule.CONSTRAINT
    }


def test_a_cel_constraint_that_fails_is_a_violation() -> None:
    case = simple()
    broken = make_constraint(cel="devices[7].driver == ''")
    claims = [make_claim(make_request("req", 2), constraints=[broken])]
    assert case.rules(claims=claims) == {Rule.CONSTRAINT}
    off = ALL_GATES.with_changes({"DRACELDeviceConstraint": False})
    fine = [make_claim(make_request("req", 2), constraints=[make_constraint(cel="true")])]
    assert case.rules(claims=fine) == set()
    assert case.rules(claims=fine, gates=off) == {Rule.FEATURES}


def test_the_node_selector_says_where_the_devices_are() -> None:
    case = simple()
    assert case.rules(results=[replace(case.results[0], node_selector=None)]) == {Rule.NODE_SELECTOR}
    in_zone = NodeSelectorRequirement(key="zone", operator="In", values=("a", "b"))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(in_zone,)),))
    case = Case(
        make_slice(make_devices(2), node=None, node_selector=selector),
        claims=[make_claim(make_request("req", 2))],
        node=NodeFacts(NODE, {"zone": "a"}),
    )
    assert case.results[0].node_selector == selector
    assert case.rules(results=[replace(case.results[0], node_selector=None)]) == {Rule.NODE_SELECTOR}


def test_configuration_comes_from_class_and_claim() -> None:
    opaque = OpaqueDeviceConfiguration(driver=DRIVER)
    device_class = make_class("gpu")
    device_class = replace(
        device_class, spec=replace(device_class.spec, config=(DeviceClassConfiguration(opaque=opaque),))
    )
    claim = make_claim(make_request("a"), make_request("b", device_class="nic"))
    config = (DeviceClaimConfiguration(requests=("b",), opaque=opaque), DeviceClaimConfiguration(opaque=opaque))
    claim = replace(claim, spec=replace(claim.spec, devices=replace(claim.spec.devices, config=config)))
    nics = make_slice(make_devices(1), driver="nic.example.com")
    case = Case(make_slice(make_devices(1)), nics, claims=[claim], classes=[device_class, make_class("nic")])
    found = case.results[0].devices.config
    assert [(each.source, each.requests) for each in found] == [
        ("FromClass", ("a",)),
        ("FromClaim", ("b",)),
        ("FromClaim", ()),
    ]
    without = replace(case.results[0], devices=replace(case.results[0].devices, config=found[1:]))
    assert case.rules(results=[without]) == {Rule.CONFIG}
    extra = DeviceAllocationConfiguration(source="FromClaim", requests=("z",), opaque=opaque)
    more = replace(case.results[0], devices=replace(case.results[0].devices, config=(*found, extra)))
    assert case.rules(results=[more]) == {Rule.CONFIG}


def test_binding_conditions_and_node_operations_are_copied() -> None:
    device = make_device("dev-0", binding_conditions=("Ready",), binding_failure_conditions=("Failed",))
    case = Case(
        make_slice([device], skip_node_operations=("Prepare",)),
        claims=[make_claim(make_request("req"))],
        node=NodeFacts(NODE, {}, ("DRAOptionalNodeOperations",)),
    )
    bare = replace(case.device(), binding_conditions=(), binding_failure_conditions=(), skip_node_operations=())
    assert case.rules(results=case.with_results(bare)) == {Rule.BINDING, Rule.NODE_OPERATIONS}
    assert case.rules(node=NodeFacts(NODE)) == {Rule.NODE_OPERATIONS}
    assert case.rules(gates=ALL_GATES.with_changes({"DRADeviceBindingConditions": False})) == {Rule.BINDING}


# A whole cluster


def allocated(claim: ResourceClaim, result: AllocationResult) -> ResourceClaim:
    return replace(claim, status=ResourceClaimStatus(allocation=result))


def make_cluster() -> tuple[list[ResourceSlice], list[ResourceClaim]]:
    slices = [make_slice(make_devices(2), node=node) for node in ("node-1", "node-2")]
    index = make_index(*slices, nodes=["node-1", "node-2"])
    claims = [make_claim(make_request("req"), name="pending")]
    for name, node in (("one", "node-1"), ("two", "node-1"), ("three", "node-2")):
        claim = make_claim(make_request("req"), name=name)
        results = index.allocate(node, [claim])
        assert results is not None
        claims.append(allocated(claim, results[0]))
        index.apply_claim(claims[-1])
    return slices, claims


NODES = [NodeFacts("node-1"), NodeFacts("node-2")]


def test_a_cluster_is_checked_as_a_whole() -> None:
    slices, claims = make_cluster()
    assert verify_cluster(slices, CLASSES, NODES, claims) == []
    _, one, two, _ = claims
    assert one.status.allocation is not None
    thief = allocated(two, one.status.allocation)
    (violation,) = verify_cluster(slices, CLASSES, NODES, [one, thief])
    assert (violation.rule, violation.claim.name) == (Rule.IN_USE, "two")
    assert violation.rule.is_lasting


def test_what_changed_since_is_told_from_what_was_wrong_from_the_start() -> None:
    slices, claims = make_cluster()
    later = verify_cluster(slices[:1], CLASSES, NODES[:1], claims)
    assert {violation.rule for violation in later} == {Rule.NODE}
    assert not any(violation.rule.is_lasting for violation in later)
    tainted = replace(make_device("dev-0"), taints=(DeviceTaint(key="broken", effect="NoExecute"),))
    slices[0] = make_slice([tainted, make_device("dev-1")], node="node-1")
    (violation,) = verify_cluster(slices, CLASSES, NODES, claims)
    assert violation.rule == Rule.TAINT
    assert not violation.rule.is_lasting


def test_devices_of_lost_nodes_are_still_not_to_be_had_twice() -> None:
    _, claims = make_cluster()
    assert claims[1].status.allocation is not None
    twins = [claims[1], allocated(claims[2], claims[1].status.allocation)]
    assert Rule.IN_USE in {violation.rule for violation in verify_cluster([], CLASSES, [], twins)}


def test_admin_access_takes_nothing_from_others_in_a_cluster() -> None:
    slices, claims = make_cluster()
    index = make_index(*slices)
    watcher = make_claim(make_request("req", 2, admin_access=True), name="watcher")
    results = index.allocate("node-1", [watcher])
    assert results is not None
    assert verify_cluster(slices, CLASSES, NODES, [*claims, allocated(watcher, results[0])]) == []


def test_every_node_that_the_selector_admits_must_reach_the_devices() -> None:
    zone = NodeSelectorRequirement(key="zone", operator="In", values=("a",))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(zone,)),))
    slices = [make_slice(make_devices(2), node=None, node_selector=selector)]
    nodes = [NodeFacts("near", {"zone": "a"}), NodeFacts("near-too", {"zone": "a"}), NodeFacts("far", {"zone": "b"})]
    claim = make_claim(make_request("req"))
    results = make_index(*slices, nodes=nodes).allocate("near", [claim])
    assert results is not None
    assert verify_cluster(slices, CLASSES, nodes, [allocated(claim, results[0])]) == []
    anywhere = replace(results[0], node_selector=None)
    rules = {violation.rule for violation in verify_cluster(slices, CLASSES, nodes, [allocated(claim, anywhere)])}
    assert rules == {Rule.NODE_SELECTOR, Rule.REACH}


def test_counters_hold_across_claims_and_nodes() -> None:
    slices = [PARTITIONS, CARD]
    claims = []
    for name in ("part-0", "part-1", "part-2", "part-3"):
        claim = make_claim(make_request("req"), name=name)
        results = make_index(*slices).allocate(NODE, [claim])
        assert results is not None
        (device,) = results[0].devices.results
        result = replace(results[0], devices=replace(results[0].devices, results=(replace(device, device=name),)))
        claims.append(allocated(claim, result))
    assert verify_cluster(slices, CLASSES, NODES, claims[:3]) == []
    assert {each.rule for each in verify_cluster(slices, CLASSES, NODES, claims)} == {Rule.COUNTERS}
