from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dray.api.claims import ResourceClaim
from dray.api.codec import decode_as
from dray.api.features import ALL_GATES
from dray.api.meta import Json
from dray.api.pods import Pod, view_pod
from dray.validation.quota import claim_usage, matching_resources

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
WITHOUT_EXTENDED = ALL_GATES.with_changes({"DRAExtendedResource": False})
GPUS = {"gpu": "example.com/gpu"}


def make_claim(*requests: Json, **metadata: Any) -> ResourceClaim:
    spec = {"devices": {"requests": [{"name": f"r{position}", **request} for position, request in enumerate(requests)]}}
    return decode_as(
        ResourceClaim,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "ns", **metadata},
            "spec": spec,
        },
    )


def make_pods_claim() -> ResourceClaim:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    return make_claim(exactly("gpu"), annotations=annotations, ownerReferences=[owner])


def make_pod(status: Json, **metadata: Any) -> Pod:
    resources = {"requests": {"example.com/gpu": "1"}}
    return view_pod(
        {
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", **metadata},
            "spec": {"containers": [{"name": "c", "resources": resources}]},
            "status": {"extendedResourceClaimStatus": {"resourceClaimName": "c"}, **status},
        }
    )


def exactly(class_name: str, **fields: Any) -> Json:
    return {"exactly": {"deviceClassName": class_name, **fields}}


def usage_of(claim: ResourceClaim, pod: Pod | None = None, extended: dict[str, str] = GPUS) -> dict[str, str]:
    usage = claim_usage(claim, extended, lambda namespace, name: pod, lambda namespace, uid: [], NOW)
    return {name: str(amount) for name, amount in usage.items()}


def test_devices_are_counted_per_class() -> None:
    usage = usage_of(make_claim(exactly("gpu", count=2), exactly("gpu"), exactly("nic")))
    assert usage["gpu.deviceclass.resource.k8s.io/devices"] == "3"
    assert usage["nic.deviceclass.resource.k8s.io/devices"] == "1"
    assert usage["count/resourceclaims.resource.k8s.io"] == "1"


def test_all_devices_cost_the_most_that_a_claim_can_get() -> None:
    usage = usage_of(make_claim(exactly("gpu", allocationMode="All")))
    assert usage["gpu.deviceclass.resource.k8s.io/devices"] == "32"


def test_alternatives_cost_their_worst_case_per_class() -> None:
    alternatives = [
        {"name": "a", "deviceClassName": "gpu", "count": 2},
        {"name": "b", "deviceClassName": "gpu", "count": 5},
    ]
    usage = usage_of(make_claim({"firstAvailable": alternatives}))
    assert usage["gpu.deviceclass.resource.k8s.io/devices"] == "5"


def test_a_class_with_an_extended_resource_counts_as_that_too() -> None:
    assert usage_of(make_claim(exactly("gpu", count=2)))["requests.example.com/gpu"] == "2"


def test_without_the_gate_extended_resources_do_not_count() -> None:
    claim = make_claim(exactly("gpu"))
    usage = claim_usage(claim, GPUS, lambda *_: None, lambda *_: [], NOW, WITHOUT_EXTENDED)
    assert sorted(usage) == ["count/resourceclaims.resource.k8s.io", "gpu.deviceclass.resource.k8s.io/devices"]
    assert matching_resources(["requests.example.com/gpu"], GPUS, WITHOUT_EXTENDED) == []


def test_what_the_pod_is_charged_for_is_not_charged_again() -> None:
    assert "requests.example.com/gpu" not in usage_of(make_pods_claim(), make_pod({"phase": "Running"}))


def test_a_pod_that_is_done_is_not_charged_so_its_claim_is() -> None:
    usage = usage_of(make_pods_claim(), make_pod({"phase": "Succeeded"}))
    assert usage["requests.example.com/gpu"] == "1"


def test_a_pod_that_should_be_gone_is_not_charged() -> None:
    gone = make_pod({}, deletionTimestamp="2026-08-01T11:00:00Z", deletionGracePeriodSeconds=30)
    leaving = make_pod({}, deletionTimestamp="2026-08-01T11:59:50Z", deletionGracePeriodSeconds=30)
    assert "requests.example.com/gpu" in usage_of(make_pods_claim(), gone)
    assert "requests.example.com/gpu" not in usage_of(make_pods_claim(), leaving)


def test_a_quota_handles_only_names_about_claims() -> None:
    names = ["pods", "count/resourceclaims.resource.k8s.io", "gpu.deviceclass.resource.k8s.io/devices", "requests.cpu"]
    assert matching_resources(names, GPUS) == names[1:3]
