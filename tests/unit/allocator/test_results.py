"""What is written into a claim's status: devices, configuration, node selector."""

from __future__ import annotations

import msgspec
import pytest

from dray.allocator.errors import NodeSelectionFailed
from dray.allocator.index import Index
from dray.allocator.nodes import NodeFacts
from dray.api.claims import (
    AllocationResult,
    DeviceClaimConfiguration,
    DeviceToleration,
    OpaqueDeviceConfiguration,
    ResourceClaim,
)
from dray.api.classes import DeviceClass, DeviceClassConfiguration
from dray.api.features import ALL_GATES
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from tests.unit.allocator.world import (
    NODE,
    make_choice,
    make_claim,
    make_class,
    make_device,
    make_devices,
    make_index,
    make_request,
    make_slice,
)


def allocated(index: Index, claim: ResourceClaim) -> AllocationResult:
    allocation = index.allocate(NODE, [claim])
    assert allocation is not None
    return allocation[0]


def opaque(text: str) -> OpaqueDeviceConfiguration:
    return OpaqueDeviceConfiguration(driver="gpu.example.com", parameters=msgspec.Raw(f'"{text}"'.encode()))


def configured(name: str, *texts: str) -> DeviceClass:
    plain = make_class(name, "true")
    config = tuple(DeviceClassConfiguration(opaque=opaque(text)) for text in texts)
    return msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, config=config))


def with_config(claim: ResourceClaim, *entries: tuple[str, tuple[str, ...]]) -> ResourceClaim:
    config = tuple(DeviceClaimConfiguration(requests=requests, opaque=opaque(text)) for text, requests in entries)
    devices = msgspec.structs.replace(claim.spec.devices, config=config)
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))


def shown(result: AllocationResult) -> list[tuple[str, str, tuple[str, ...]]]:
    return [
        (config.source, bytes(config.opaque.parameters).decode().strip('"'), config.requests)
        for config in result.devices.config
        if config.opaque is not None
    ]


def test_class_configuration_comes_first_and_once_per_class() -> None:
    index = make_index(make_slice(make_devices(3)), classes=[configured("one", "c1"), configured("two", "c2a", "c2b")])
    claim = make_claim(
        make_request("a", device_class="two"),
        make_request("b", device_class="one"),
        make_request("c", device_class="two"),
    )
    assert shown(allocated(index, with_config(claim, ("own", ())))) == [
        ("FromClass", "c2a", ("a", "c")),
        ("FromClass", "c2b", ("a", "c")),
        ("FromClass", "c1", ("b",)),
        ("FromClaim", "own", ()),
    ]


def test_configuration_for_all_requests_names_none() -> None:
    index = make_index(make_slice(make_devices(2)), classes=[configured("gpu", "c")])
    claim = with_config(make_claim(make_request("a"), make_request("b")), ("own", ("a", "b")), ("part", ("b",)))
    assert shown(allocated(index, claim)) == [
        ("FromClass", "c", ()),
        ("FromClaim", "own", ()),
        ("FromClaim", "part", ("b",)),
    ]


def test_configuration_of_alternatives_that_lost_is_dropped() -> None:
    index = make_index(make_slice(make_devices(2)))
    claim = make_claim(make_choice("r", ("many", 3, ""), ("few", 1, "")), make_request("s"))
    claim = with_config(claim, ("lost", ("r/many",)), ("won", ("r/few",)), ("either", ("r/many", "r/few")))
    assert shown(allocated(index, claim)) == [
        ("FromClaim", "won", ("r/few",)),
        ("FromClaim", "either", ("r/many", "r/few")),
    ]


def test_devices_of_a_node_tie_the_claim_to_it() -> None:
    result = allocated(make_index(make_slice(make_devices(1))), make_claim(make_request()))
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(NODE,))
    assert result.node_selector == NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))


def test_devices_that_all_nodes_reach_tie_it_to_none() -> None:
    index = make_index(make_slice(make_devices(1), pool="net", all_nodes=True))
    assert allocated(index, make_claim(make_request())).node_selector is None


def test_a_device_that_binds_ties_the_claim_to_the_node_where_it_was_allocated() -> None:
    index = make_index(make_slice([make_device("fabric", binds_to_node=True)], pool="net", all_nodes=True))
    selector = allocated(index, make_claim(make_request())).node_selector
    assert selector is not None
    assert selector.node_selector_terms[0].match_fields[0].values == (NODE,)


def requiring(*requirements: tuple[str, str]) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=tuple(
            NodeSelectorRequirement(key=key, operator="In", values=(value,)) for key, value in requirements
        )
    )


def reachable(*terms: tuple[NodeSelectorTerm, ...]) -> Index:
    slices = [
        make_slice(
            make_devices(1), name=f"s{number}", pool=f"p{number}", node_selector=NodeSelector(node_selector_terms=each)
        )
        for number, each in enumerate(terms)
    ]
    return make_index(*slices, nodes=[NodeFacts(NODE, {"rack": "r1", "zone": "z1"})])


def test_what_devices_ask_of_a_node_is_put_together_without_repeating() -> None:
    index = reachable((requiring(("rack", "r1"), ("zone", "z1")),), (requiring(("zone", "z1")),))
    selector = allocated(index, make_claim(make_request(count=2))).node_selector
    assert selector == NodeSelector(node_selector_terms=(requiring(("rack", "r1"), ("zone", "z1")),))


def test_selectors_with_several_terms_can_not_be_put_together() -> None:
    index = reachable((requiring(("rack", "r1")), requiring(("zone", "z1"))))
    with pytest.raises(NodeSelectionFailed, match="2 terms"):
        allocated(index, make_claim(make_request()))


def test_tolerations_and_admin_access_are_copied() -> None:
    tolerations = (DeviceToleration(key="busy", operator="Exists"),)
    claim = make_claim(make_request(tolerations=tolerations, admin_access=True))
    (result,) = allocated(make_index(make_slice(make_devices(1))), claim).devices.results
    assert (result.tolerations, result.admin_access) == (tolerations, True)


def test_admin_access_that_is_off_is_left_out() -> None:
    claim = make_claim(make_request(admin_access=False))
    (result,) = allocated(make_index(make_slice(make_devices(1))), claim).devices.results
    assert result.admin_access is None


def test_binding_conditions_are_copied_if_they_are_enabled() -> None:
    device = make_device("fabric", binding_conditions=("Ready",), binding_failure_conditions=("Broken",))
    (result,) = allocated(make_index(make_slice([device])), make_claim(make_request())).devices.results
    assert (result.binding_conditions, result.binding_failure_conditions) == (("Ready",), ("Broken",))
    gates = ALL_GATES.with_changes({"DRADeviceBindingConditions": False})
    assert make_index(make_slice([device]), gates=gates).allocate(NODE, [make_claim(make_request())]) is None


def test_devices_without_node_operations_need_a_node_that_can_leave_them_out() -> None:
    slice_ = make_slice(make_devices(1), skip_node_operations=("Prepare",))
    assert make_index(slice_).allocate(NODE, [make_claim(make_request())]) is None
    able = make_index(slice_, nodes=[NodeFacts(NODE, {}, ("DRAOptionalNodeOperations",))])
    (result,) = allocated(able, make_claim(make_request())).devices.results
    assert result.skip_node_operations == ("Prepare",)
