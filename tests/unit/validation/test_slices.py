from __future__ import annotations

from typing import Any

import pytest

from tests.unit.validation.builders import (
    created,
    expect_accepted,
    expect_errors,
    make_device,
    make_slice,
    updated,
    without,
)

COUNTERS = {"memory": {"value": "40Gi"}}
CONSUMED = [{"counterSet": "gpu-0", "counters": {"memory": {"value": "10Gi"}}}]


def test_a_plain_slice_is_fine_and_starts_at_generation_one() -> None:
    stored = expect_accepted(created(make_slice(make_device())))
    assert stored.metadata.generation == 1


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"driver": ""}, "spec.driver: Required value"),
        ({"driver": "a b"}, 'spec.driver: Invalid value: "a b"'),
        ({"pool": {"name": "", "resourceSliceCount": 1}}, "spec.pool.name: Required value"),
        ({"pool": {"name": "p", "resourceSliceCount": 0}}, "spec.pool.resourceSliceCount: Invalid value: 0"),
        ({"pool": {"name": "p", "resourceSliceCount": 1, "generation": -1}}, "spec.pool.generation: Invalid value: -1"),
        ({"nodeName": None}, "spec: Required value: exactly one of `nodeName`"),
        ({"allNodes": True}, 'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of'),
        ({"perDeviceNodeSelection": False}, "spec.perDeviceNodeSelection: Invalid value: false: must be either unset"),
        ({"skipNodeOperations": ["Fly"]}, 'spec.skipNodeOperations[0]: Unsupported value: "Fly"'),
        ({"partitionTypeAttribute": "a.b/c"}, 'spec.partitionTypeAttribute: Invalid value: "a.b/c": may only be set'),
    ],
)
def test_the_spec_is_checked(spec: dict[str, Any], error: str) -> None:
    expect_errors(created(make_slice(make_device(), **spec)), error)


def test_a_node_selector_has_exactly_one_term() -> None:
    term = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    expect_accepted(created(make_slice(nodeName=None, nodeSelector={"nodeSelectorTerms": [term]})))
    outcome = created(make_slice(nodeName=None, nodeSelector={"nodeSelectorTerms": [term, term]}))
    expect_errors(outcome, 'spec.nodeSelector.nodeSelectorTerms: Invalid value: [{"MatchExpressions":[{"Key":"a",')


def test_upper_case_in_the_drivers_name_is_warned_about() -> None:
    outcome = created(make_slice(make_device(), driver="DRA.example.com"))
    expect_accepted(outcome)
    assert outcome.warnings == [
        'spec.driver: driver names should be lowercase; "DRA.example.com" contains uppercase characters'
    ]


def test_devices_are_many_but_fewer_when_they_are_special() -> None:
    def devices(count: int, **content: Any) -> list[dict[str, Any]]:
        return [make_device(f"d{number}", **content) for number in range(count)]

    expect_accepted(created(make_slice(*devices(128))))
    expect_errors(created(make_slice(*devices(129))), "spec.devices: Too many: 129: must have at most 128 items")
    special = make_device("x", attributes={"a": {"ints": [1]}})
    expect_errors(created(make_slice(*devices(64), special)), "spec.devices: Too many: 65: must have at most 64 items")


def test_names_of_devices_are_labels_and_unique() -> None:
    expect_errors(created(make_slice(make_device("GPU"))), 'spec.devices[0].name: Invalid value: "GPU"')
    twice = created(make_slice(make_device(), make_device()))
    expect_errors(twice, 'spec.devices[1]: Duplicate value: "gpu-0"')


@pytest.mark.parametrize(
    ("attribute", "error"),
    [
        ({}, '[a]: Invalid value: "": must specify one of: `int`, `bool`'),
        ({"int": 1, "bool": True}, '[a]: Invalid value: "{int, bool}": must specify exactly one of'),
        ({"string": "x" * 65}, "[a].string: Too long: may not be more than 64 bytes"),
        ({"version": "v1"}, '[a].version: Invalid value: "v1": must be a string compatible with semver.org'),
        ({"strings": ["x" * 65]}, "[a].strings[0]: Too long"),
        ({"versions": ["1.2.3", "1"]}, '[a].versions[1]: Invalid value: "1"'),
    ],
)
def test_attributes_have_one_good_value(attribute: dict[str, Any], error: str) -> None:
    outcome = created(make_slice(make_device(attributes={"a": attribute})))
    expect_errors(outcome, f"spec.devices[0].attributes{error}")


def test_an_empty_list_is_no_value() -> None:
    expect_errors(
        created(make_slice(make_device(attributes={"a": {"ints": []}}))),
        "spec.devices[0].attributes[a].ints: Invalid value: []: must not be empty if specified",
        'spec.devices[0].attributes[a]: Invalid value: "": must specify one of',
    )


def test_attributes_and_capacities_are_counted_together() -> None:
    names = [f"n{number}" for number in range(33)]
    attributes = {name: {"bool": True} for name in names[:20]}
    capacity = {name: {"value": "1"} for name in names[20:]}
    outcome = created(make_slice(make_device(attributes=attributes, capacity=capacity)))
    expect_errors(outcome, "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities")


def test_each_item_of_a_list_counts_as_a_value() -> None:
    fine = {"a": {"ints": list(range(47))}, "b": {"int": 1}}
    expect_accepted(created(make_slice(make_device(attributes=fine))))
    outcome = created(make_slice(make_device(attributes=fine | {"c": {"int": 1}})))
    expect_errors(
        outcome, "spec.devices[0]: Invalid value: 49: the total number of attribute values must not exceed 48"
    )


def test_a_long_attribute_name_is_shortened_in_handwritten_errors() -> None:
    outcome = created(make_slice(make_device(attributes={"a" * 200: {"string": "x" * 65}})))
    expect_errors(
        outcome,
        "spec.devices[0].attributes: Too long: may not be more than 32 bytes",
        f"spec.devices[0].attributes[{'a' * 47}...{'a' * 46}].string: Too long",
    )


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"taints": [{"key": "a b", "effect": "None"}]}, "taints[0].key: Invalid value"),
        ({"taints": [{"key": "a", "effect": ""}]}, "taints[0].effect: Required value"),
        ({"taints": [{"key": "a", "effect": "Bang"}]}, 'taints[0].effect: Unsupported value: "Bang"'),
        ({"taints": [{"key": "a", "effect": "None"}] * 17}, "taints: Too many: 17"),
        ({"nodeName": "n"}, ": Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set"),
        (
            {"bindingConditions": ["a"] * 2, "bindingFailureConditions": ["b"]},
            'bindingConditions[1]: Duplicate value: "a"',
        ),
        ({"bindingConditions": ["a"], "bindingFailureConditions": ["a"]}, "bindingFailureConditions[0]: Invalid value"),
        (
            {"nodeAllocatableResources": {"gpu": {"mapping": {"deviceMultiplier": "1"}}}},
            "nodeAllocatableResources[gpu]: I",
        ),
        ({"nodeAllocatableResources": {"cpu": {}}}, "nodeAllocatableResources[cpu]: Required value: at least one of"),
        (
            {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "0"}}}},
            'nodeAllocatableResources[cpu].mapping.deviceMultiplier: Invalid value: "0": must be positive',
        ),
        (
            {"nodeAllocatableResources": {"cpu": {"mapping": {"capacityKey": "x", "capacityMultiplier": "1"}}}},
            'nodeAllocatableResources[cpu].mapping.capacityKey: Not found: "x"',
        ),
        (
            {"nodeAllocatableResources": {"memory": {"overhead": {"perPod": "-1"}}}},
            'nodeAllocatableResources[memory].overhead.perPod: Invalid value: "-1": must be non-negative',
        ),
        ({"consumesCounters": CONSUMED * 2}, "consumesCounters[1]: Duplicate value: {"),
        ({"consumesCounters": [{"counterSet": "a", "counters": {}}]}, "consumesCounters[0].counters: Required value"),
        (
            {"consumesCounters": [CONSUMED[0] | {"compatibilityGroups": ["A"]}]},
            'consumesCounters[0].compatibilityGroups[0]: Invalid value: "A"',
        ),
    ],
)
def test_devices_are_checked(content: dict[str, Any], error: str) -> None:
    separator = "" if error.startswith(":") else "."
    expect_errors(created(make_slice(make_device(**content))), f"spec.devices[0]{separator}{error}")


def test_each_device_selects_nodes_when_the_slice_says_so() -> None:
    def slice_with(**content: Any) -> Any:
        return make_slice(make_device(**content), nodeName=None, perDeviceNodeSelection=True)

    expect_accepted(created(slice_with(nodeName="n")))
    expect_errors(created(slice_with()), "spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`")
    both = created(slice_with(nodeName="n", allNodes=True))
    expect_errors(both, 'spec.devices[0]: Invalid value: "{`nodeName`, `allNodes`}"')


def test_counter_sets_stand_in_a_slice_of_their_own() -> None:
    counter_sets = [{"name": "gpu-0", "counters": COUNTERS}]
    expect_accepted(created(make_slice(devices=None, sharedCounters=counter_sets)))
    outcome = created(make_slice(make_device(), sharedCounters=counter_sets))
    expect_errors(outcome, 'spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed')
    expect_errors(created(make_slice(devices=[], sharedCounters=[])), "spec: Invalid value")


def test_counter_sets_are_checked() -> None:
    broken = [{"name": "A", "counters": COUNTERS}, {"name": "b", "counters": {}}, {"name": "b", "counters": {"C": {}}}]
    expect_errors(
        created(make_slice(devices=None, sharedCounters=broken)),
        'spec.sharedCounters[0].name: Invalid value: "A"',
        "spec.sharedCounters[1].counters: Required value",
        'spec.sharedCounters[2].counters: Invalid value: "C"',
        "spec.sharedCounters[2]: Duplicate value: {",
    )


def test_partitions_carry_their_type_as_text() -> None:
    def slice_with(**attributes: Any) -> Any:
        device = make_device(consumesCounters=CONSUMED, attributes=attributes)
        return make_slice(device, partitionTypeAttribute="dra.example.com/profile")

    expect_accepted(created(slice_with(profile={"string": "1g"})))
    place = "spec.devices[0].attributes[dra.example.com/profile]"
    expect_errors(created(slice_with()), f"{place}: Required value: device consumes counters")
    expect_errors(created(slice_with(profile={"int": 1})), f'{place}: Invalid value: {{"IntValue":1,')


def test_driver_pool_and_node_are_immutable() -> None:
    old = make_slice(make_device())
    pool = {"name": "other", "resourceSliceCount": 1, "generation": 1}
    expect_errors(
        updated(make_slice(make_device(), driver="b.c"), old), 'spec.driver: Invalid value: "b.c": field is imm'
    )
    expect_errors(
        updated(make_slice(make_device(), pool=pool), old), 'spec.pool.name: Invalid value: "other": field is'
    )
    moved = updated(make_slice(make_device(), nodeName=None, allNodes=True), old)
    expect_errors(moved, "spec.nodeName: Invalid value: null: field is immutable")


def test_each_change_of_the_spec_is_a_new_generation() -> None:
    old = expect_accepted(created(make_slice(make_device())))
    assert expect_accepted(updated(make_slice(make_device()), old)).metadata.generation == 1
    assert expect_accepted(updated(make_slice(make_device("gpu-1")), old)).metadata.generation == 2


def test_the_same_capacity_is_not_judged_again() -> None:
    capacity = {"memory": {"value": "1", "requestPolicy": {"validValues": ["2"]}}}
    old = make_slice(make_device(capacity=capacity))
    expect_accepted(updated(make_slice(make_device(capacity=capacity, attributes={"a": {"int": 1}})), old))
    moved = updated(make_slice(make_device("gpu-1", capacity=capacity)), old)
    expect_errors(moved, "spec.devices[0].capacity[memory].requestPolicy: Forbidden: allowMultipleAllocations")


def test_disabled_features_are_dropped_unless_in_use() -> None:
    device = make_device(
        taints=[{"key": "a", "effect": "None", "timeAdded": "2026-01-01T00:00:00Z"}],
        consumesCounters=[CONSUMED[0] | {"compatibilityGroups": ["g"]}],
        bindsToNode=True,
        allowMultipleAllocations=True,
        capacity={"memory": {"value": "2", "requestPolicy": {"default": "1", "validValues": ["1"]}}},
        nodeAllocatableResources={"cpu": {"mapping": {"deviceMultiplier": "1"}}},
        attributes={"a": {"int": 1}},
    )
    gates = without(
        "DRADeviceTaints",
        "DRAPartitionableDevices",
        "DRADeviceBindingConditions",
        "DRAConsumableCapacity",
        "DRADeviceCompatibilityGroups",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "DRAPartitionableDevicesType",
    )
    full = make_slice(device, skipNodeOperations=["*"], partitionTypeAttribute=None)
    plain = make_slice(make_device(capacity={"memory": {"value": "2"}}, attributes={"a": {"int": 1}}))
    assert expect_accepted(created(full, gates=gates)).spec == plain.spec
    assert expect_accepted(updated(full, full, gates=gates)).spec == full.spec


def test_a_list_attribute_that_was_dropped_has_no_value_left() -> None:
    outcome = created(make_slice(make_device(attributes={"a": {"ints": [1]}})), gates=without("DRAListTypeAttributes"))
    expect_errors(outcome, 'spec.devices[0].attributes[a]: Invalid value: "": must specify one of')


def test_a_stored_effect_is_judged_again_when_devices_change() -> None:
    def tainted(name: str) -> dict[str, Any]:
        return make_device(name, taints=[{"key": "a", "effect": "Old", "timeAdded": "2026-01-01T00:00:00Z"}])

    old = make_slice(tainted("a"))
    expect_accepted(updated(make_slice(tainted("a")), old))
    outcome = updated(make_slice(tainted("a"), make_device("b")), old)
    expect_errors(outcome, 'spec.devices[0].taints[0].effect: Unsupported value: "Old"')
