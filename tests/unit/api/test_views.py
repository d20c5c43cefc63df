from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dray.api.configmaps import view_config_map
from dray.api.events import view_event
from dray.api.jobs import is_finished, view_job
from dray.api.leases import view_lease
from dray.api.meta import Json
from dray.api.namespaces import view_namespace
from dray.api.nodes import is_ready, view_node
from dray.api.pods import view_pod
from dray.api.quantities import Quantity
from dray.api.resourcequotas import view_resource_quota
from dray.api.serviceaccounts import view_service_account
from dray.api.views import InvalidView, find_condition


def test_unknown_fields_are_ignored() -> None:
    pod = view_pod({"metadata": {"name": "p", "managedFields": [{}]}, "spec": {"fromTheFuture": {"a": 1}}})
    assert pod.metadata.name == "p"


def test_null_means_absent_everywhere() -> None:
    pod = view_pod({"metadata": {"name": "p", "labels": None}, "spec": {"containers": [{"name": "c", "ports": None}]}})
    assert pod.metadata.labels == {}
    assert pod.spec.containers[0].ports == ()


def test_quantities_may_be_numbers() -> None:
    node = view_node({"status": {"allocatable": {"cpu": 2, "memory": "1Gi", "share": 0.5}}})
    assert node.status.allocatable == {
        name: Quantity.parse(q) for name, q in (("cpu", "2"), ("memory", "1Gi"), ("share", "500m"))
    }


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"containers": "many"}, "$.spec.containers"),
        ({"containers": [{"resources": {"limits": {"cpu": "fast"}}}]}, "$.spec.containers[0].resources.limits"),
        ({"containers": [{"resources": {"limits": {"cpu": True}}}]}, "$.spec.containers[0].resources.limits"),
    ],
)
def test_a_malformed_object_is_named_with_the_place(spec: Json, place: str) -> None:
    with pytest.raises(InvalidView) as failure:
        view_pod({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec})
    assert str(failure.value).startswith("Pod ns/p: ")
    assert place in str(failure.value)


def test_the_controller_is_the_owner_that_manages() -> None:
    owners = [{"kind": "A", "name": "a"}, {"kind": "B", "name": "b", "controller": True}]
    controller = view_pod({"metadata": {"ownerReferences": owners}}).metadata.controller
    assert controller is not None
    assert controller.name == "b"


def test_a_node_is_ready_when_its_condition_says_so() -> None:
    ready = view_node({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    unknown = view_node({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
    assert (is_ready(ready), is_ready(unknown), is_ready(view_node({}))) == (True, False, False)


def test_a_namespace_allows_admin_access_only_if_labelled_exactly_so() -> None:
    label = "resource.kubernetes.io/admin-access"
    allowed = [
        view_namespace({"metadata": {"labels": {label: value}}}).allows_admin_access for value in ("true", "True", "")
    ]
    assert allowed == [True, False, False]


def test_a_job_is_finished_when_complete_or_failed() -> None:
    job = view_job({"status": {"conditions": [{"type": "Failed", "status": "True"}]}})
    assert is_finished(job)
    assert not is_finished(view_job({"status": {"conditions": [{"type": "Suspended", "status": "True"}]}}))


def test_a_jobs_template_is_read_as_a_pod() -> None:
    job = view_job({"spec": {"template": {"spec": {"resourceClaims": [{"name": "gpu"}]}}}})
    assert job.spec.template.spec.resource_claims[0].name == "gpu"


@pytest.mark.parametrize(
    ("view", "obj", "read", "value"),
    [
        (view_event, {"involvedObject": {"name": "p"}}, lambda event: event.involved_object.name, "p"),
        (view_lease, {"spec": {"holderIdentity": "me"}}, lambda lease: lease.spec.holder_identity, "me"),
        (view_config_map, {"data": {"a": "b"}}, lambda config: config.data, {"a": "b"}),
        (view_service_account, {"secrets": [{"name": "s"}]}, lambda account: account.secrets[0].name, "s"),
        (view_resource_quota, {"spec": {"hard": {"pods": "1"}}}, lambda quota: quota.spec.hard["pods"].value, 1),
    ],
)
def test_other_kinds_are_read(
    view: Callable[[Json], Any], obj: Json, read: Callable[[Any], Any], value: object
) -> None:
    assert read(view(obj)) == value


def test_a_condition_is_found_by_type() -> None:
    pod = view_pod({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Slow"}]}})
    condition = find_condition(pod.status.conditions, "Ready")
    assert condition is not None
    assert condition.reason == "Slow"
    assert find_condition(pod.status.conditions, "Initialized") is None
