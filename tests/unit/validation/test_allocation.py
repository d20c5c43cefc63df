from __future__ import annotations

from typing import Any

import pytest

from dray.api.features import ALL_GATES
from tests.unit.validation.builders import (
    expect_accepted,
    expect_errors,
    make,
    make_allocation,
    make_claim,
    status_updated,
    without,
)

UNALLOCATED = make_claim()


def allocated(*devices: str, changes: dict[str, Any] | None = None, **status: Any) -> Any:
    return make_claim(status={"allocation": make_allocation(*devices or ("gpu-0",), **changes or {}), **status})


def device_status(device: str = "gpu-0", **content: Any) -> dict[str, Any]:
    return {"driver": "dra.example.com", "pool": "pool", "device": device, **content}


def test_an_allocation_may_be_set_and_cleared_but_not_changed() -> None:
    expect_accepted(status_updated(allocated(), UNALLOCATED))
    expect_accepted(status_updated(UNALLOCATED, allocated()))
    expect_accepted(status_updated(allocated(), allocated()))
    outcome = status_updated(allocated("gpu-1"), allocated())
    expect_errors(outcome, "status.allocation: Invalid value: null: field cannot be modified once set")


def test_what_is_stored_is_not_judged_by_todays_rules() -> None:
    old = allocated("NOT-A-LABEL")
    consumer = {"resource": "pods", "name": "p", "uid": "u"}
    expect_accepted(status_updated(allocated("NOT-A-LABEL", reservedFor=[consumer]), old))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"request": "other"}, 'request: Invalid value: "other": must be the name of a request'),
        ({"driver": ""}, "driver: Required value"),
        ({"pool": ""}, "pool: Required value"),
        ({"pool": "a//b"}, 'pool: Invalid value: "a//b": segment 1: must not be empty'),
        ({"device": "GPU"}, 'device: Invalid value: "GPU"'),
        ({"shareID": "x"}, 'shareID: Invalid value: "x": must be a lowercase UUID in 8-4-4-4-12 format'),
        ({"skipNodeOperations": ["Fly"]}, 'skipNodeOperations[0]: Unsupported value: "Fly"'),
        ({"skipNodeOperations": ["*", "*"]}, 'skipNodeOperations[1]: Duplicate value: "*"'),
        ({"skipNodeOperations": ["NodePrepareResources"]}, 'skipNodeOperations: Invalid value: ["NodePrepareResou'),
        ({"bindingConditions": ["a"]}, "bindingFailureConditions: Invalid value: null: bindingFailureConditions are"),
        ({"tolerations": [{"operator": "Exists", "effect": "x"}]}, 'tolerations[0].effect: Unsupported value: "x"'),
    ],
)
def test_results_are_checked(changes: dict[str, Any], error: str) -> None:
    place = "status.allocation.devices.results[0]"
    expect_errors(status_updated(allocated(changes=changes), UNALLOCATED), f"{place}.{error}")


def test_a_claim_holds_at_most_32_devices() -> None:
    outcome = status_updated(allocated(*(f"gpu-{number}" for number in range(33))), UNALLOCATED)
    expect_errors(outcome, "status.allocation.devices.results: Too many: 33: must have at most 32 items")


def test_configuration_says_where_it_comes_from() -> None:
    allocation = make_allocation("gpu-0")
    allocation["devices"]["config"] = [
        {"opaque": {"driver": "a.b", "parameters": {}}},
        {"source": "FromHome", "opaque": {"driver": "a.b", "parameters": {}}},
        {"source": "FromClass", "opaque": {"driver": "a.b", "parameters": {}}},
    ]
    expect_errors(
        status_updated(make_claim(status={"allocation": allocation}), UNALLOCATED),
        "status.allocation.devices.config[0].source: Required value",
        'status.allocation.devices.config[1].source: Unsupported value: "FromHome"',
    )


def test_the_nodes_of_an_allocation_are_a_valid_selector() -> None:
    allocation = make_allocation("gpu-0") | {"nodeSelector": {"nodeSelectorTerms": []}}
    outcome = status_updated(make_claim(status={"allocation": allocation}), UNALLOCATED)
    expect_errors(outcome, "status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one")


def test_a_reservation_needs_an_allocation() -> None:
    consumer = {"resource": "pods", "name": "p", "uid": "u"}
    outcome = status_updated(make_claim(status={"reservedFor": [consumer]}), UNALLOCATED)
    expect_errors(outcome, "status.reservedFor: Forbidden: may not be specified when `allocated` is not set")


def test_consumers_are_complete_and_unique_by_uid() -> None:
    consumer = {"resource": "pods", "name": "p", "uid": "u"}
    expect_errors(
        status_updated(allocated(reservedFor=[{}]), allocated()),
        "status.reservedFor[0].resource: Required value",
        "status.reservedFor[0].name: Required value",
        "status.reservedFor[0].uid: Required value",
    )
    twice = status_updated(allocated(reservedFor=[consumer, consumer | {"name": "q"}]), allocated())
    expect_errors(twice, 'status.reservedFor[1]: Duplicate value: {"resource":"pods","name":"q","uid":"u"}')
    many = [consumer | {"uid": str(number)} for number in range(257)]
    expect_errors(status_updated(allocated(reservedFor=many), allocated()), "status.reservedFor: Too many: 257")


def test_nobody_new_reserves_a_claim_that_is_being_deleted() -> None:
    consumers = [{"resource": "pods", "name": name, "uid": name} for name in "ab"]

    def deleting(*reserved: dict[str, str]) -> Any:
        status = {"allocation": make_allocation("gpu-0"), "reservedFor": reserved}
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]}}
        return make("ResourceClaim", spec, status=status, deletionTimestamp="2026-01-01T00:00:00Z")

    expect_accepted(status_updated(deleting(consumers[0]), deleting(*consumers)))
    outcome = status_updated(deleting(*consumers), deleting(consumers[0]))
    expect_errors(outcome, "status.reservedFor: Forbidden: new entries may not be added")


def test_device_status_is_about_allocated_devices() -> None:
    expect_accepted(status_updated(allocated(devices=[device_status()]), allocated()))
    other = status_updated(allocated(devices=[device_status("gpu-7")]), allocated())
    expect_errors(other, 'status.devices[0]: Invalid value: {"Driver":"dra.example.com","Pool":"pool","Device":"gpu-7"')
    twice = status_updated(allocated(devices=[device_status()] * 2), allocated())
    expect_errors(twice, "status.devices[1]: Duplicate value: {")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"data": [1]}, "data: Invalid value"),
        ({"data": {"a": "x" * 10240}}, "data: Too long"),
        (
            {"networkData": {"interfaceName": "x" * 257}},
            "networkData.interfaceName: Too long: may not be more than 256",
        ),
        ({"networkData": {"hardwareAddress": "x" * 129}}, "networkData.hardwareAddress: Too long"),
        ({"networkData": {"ips": ["10.0.0.1"]}}, 'networkData.ips[0]: Invalid value: "10.0.0.1"'),
        ({"networkData": {"ips": ["10.0.0.1/8"] * 2}}, 'networkData.ips[1]: Duplicate value: "10.0.0.1/8"'),
        ({"networkData": {"ips": [f"10.0.0.{n}/8" for n in range(17)]}}, "networkData.ips: Too many: 17"),
        (
            {
                "conditions": [
                    {"type": "Ready", "status": "Maybe", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                ]
            },
            'conditions[0].status: Unsupported value: "Maybe"',
        ),
        (
            {
                "conditions": [
                    {"type": "Ready", "status": "True", "reason": "9", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                ]
            },
            'conditions[0].reason: Invalid value: "9": a condition reason must start',
        ),
    ],
)
def test_device_status_is_checked(content: dict[str, Any], error: str) -> None:
    outcome = status_updated(allocated(devices=[device_status(**content)]), allocated())
    expect_errors(outcome, f"status.devices[0].{error}")


def test_null_data_is_no_data() -> None:
    expect_accepted(status_updated(allocated(devices=[device_status(data=None)]), allocated()))


def test_status_of_devices_goes_with_their_allocation() -> None:
    old = allocated(devices=[device_status()])
    deallocated = make_claim(status={"devices": [device_status()]})
    assert expect_accepted(status_updated(deallocated, old)).status.devices == ()


def test_a_status_update_leaves_everything_else_alone() -> None:
    old = make_claim()
    new = make(
        "ResourceClaim", {"devices": {"requests": []}}, labels={"a": "b"}, status={"allocation": make_allocation()}
    )
    stored = expect_accepted(status_updated(new, old))
    assert stored.spec == old.spec
    assert stored.metadata.labels == {}
    assert stored.status.allocation is not None


def test_admin_access_is_granted_in_labelled_namespaces_only() -> None:
    granted = allocated(changes={"adminAccess": True})
    place = "status.allocation.devices.results[0].adminAccess: Forbidden"
    expect_errors(status_updated(granted, UNALLOCATED), place)
    labels = {"resource.kubernetes.io/admin-access": "true"}
    expect_accepted(status_updated(granted, UNALLOCATED, namespace_labels=labels))
    expect_accepted(status_updated(granted, granted))


def test_disabled_features_leave_no_trace_in_the_status() -> None:
    share = "123e4567-e89b-12d3-a456-426614174000"
    changes = {
        "adminAccess": True,
        "shareID": share,
        "consumedCapacity": {"memory": "1Gi"},
        "bindingConditions": ["a"],
        "bindingFailureConditions": ["b"],
        "skipNodeOperations": ["*"],
    }
    gates = without(
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRAOptionalNodeOperations",
        "DRAResourceClaimDeviceStatus",
    )
    new = allocated(changes=changes, devices=[device_status(shareID=share)])
    stored = expect_accepted(status_updated(new, UNALLOCATED, gates=gates))
    assert stored.status == allocated().status
    kept = expect_accepted(status_updated(new, new, gates=gates))
    assert kept.status == new.status


def test_a_taint_rule_reports_at_most_eight_conditions() -> None:
    def rule(count: int, **change: Any) -> Any:
        condition = {"status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"} | change
        conditions = [{"type": f"T{number}", **condition} for number in range(count)]
        taint = {"key": "a", "effect": "None", "timeAdded": "2026-01-01T00:00:00Z"}
        return make("DeviceTaintRule", {"taint": taint}, status={"conditions": conditions})

    expect_accepted(status_updated(rule(8), rule(0), gates=ALL_GATES))
    expect_errors(status_updated(rule(9), rule(0)), "status.conditions: Too many: 9")
    expect_errors(status_updated(rule(1, status=""), rule(0)), "status.conditions[0].status: Required value")
