from __future__ import annotations

from typing import Any

import pytest

from dray.api.meta import Json
from dray.api.pods import (
    ClaimName,
    ClaimNotCreated,
    HostPort,
    Pod,
    UnknownClaimSource,
    claim_name,
    host_ports,
    is_terminal,
    iter_containers,
    pod_requests,
    view_pod,
)


def container(name: str, cpu: str, **fields: Any) -> Json:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **fields}


def make_pod(**spec: Any) -> Pod:
    return view_pod({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec})


def cpu_of(pod: Pod) -> str:
    return str(pod_requests(pod)["cpu"])


def test_containers_run_together_so_their_requests_add_up() -> None:
    assert cpu_of(make_pod(containers=[container("a", "1"), container("b", "500m")])) == "1500m"


def test_init_containers_run_alone_so_the_largest_counts() -> None:
    pod = make_pod(containers=[container("a", "1")], initContainers=[container("x", "3"), container("y", "2")])
    assert cpu_of(pod) == "3"


def test_sidecars_run_beside_everything_that_starts_after_them() -> None:
    sidecar = container("s", "1", restartPolicy="Always")
    late = make_pod(containers=[container("a", "1")], initContainers=[container("x", "3"), sidecar])
    early = make_pod(containers=[container("a", "1")], initContainers=[sidecar, container("x", "3")])
    assert (cpu_of(late), cpu_of(early)) == ("3", "4")


def test_a_limit_without_request_is_a_request() -> None:
    assert cpu_of(make_pod(containers=[{"resources": {"limits": {"cpu": "2"}}}])) == "2"


def test_pod_level_resources_replace_the_sum_and_overhead_comes_on_top() -> None:
    pod = make_pod(
        containers=[container("a", "1")],
        resources={"requests": {"cpu": "4", "example.com/gpu": "1"}},
        overhead={"cpu": "100m"},
    )
    assert cpu_of(pod) == "4100m"
    assert "example.com/gpu" not in pod_requests(pod)


def test_a_claim_by_name_needs_no_status() -> None:
    pod = make_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])
    assert claim_name(pod, pod.spec.resource_claims[0]) == ClaimName("shared", False)


def test_a_claim_from_a_template_is_found_in_the_status_and_must_be_owned() -> None:
    pod = view_pod(
        {
            "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]},
        }
    )
    assert claim_name(pod, pod.spec.resource_claims[0]) == ClaimName("p-gpu-x", True)


def test_a_status_without_name_means_that_no_claim_is_needed() -> None:
    pod = view_pod(
        {
            "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
            "status": {"resourceClaimStatuses": [{"name": "gpu"}]},
        }
    )
    assert claim_name(pod, pod.spec.resource_claims[0]).name is None


def test_a_claim_that_is_not_made_yet_is_told_from_one_that_cannot_be() -> None:
    pod = make_pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}, {"name": "odd"}])
    with pytest.raises(ClaimNotCreated, match='pod "ns/p": ResourceClaim not created yet'):
        claim_name(pod, pod.spec.resource_claims[0])
    with pytest.raises(UnknownClaimSource, match='"odd": none of the supported fields are set'):
        claim_name(pod, pod.spec.resource_claims[1])


def test_containers_name_claims_and_requests() -> None:
    pod = make_pod(containers=[{"resources": {"claims": [{"name": "gpu", "request": "small"}]}}])
    [claim] = pod.spec.containers[0].resources.claims
    assert (claim.name, claim.request) == ("gpu", "small")


def test_the_claim_for_extended_resources_is_read() -> None:
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
    pod = view_pod(
        {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [mapping]}}}
    )
    status = pod.status.extended_resource_claim_status
    assert status is not None
    assert status.request_mappings[0].request_name == "container-0-request-0"


def test_host_ports_of_containers_and_sidecars_are_occupied() -> None:
    pod = make_pod(
        containers=[{"ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]}],
        initContainers=[
            {"restartPolicy": "Always", "ports": [{"hostPort": 1, "hostIP": "10.0.0.1", "protocol": "UDP"}]},
            {"ports": [{"hostPort": 2}]},
        ],
    )
    assert host_ports(pod) == [HostPort("0.0.0.0", "TCP", 8080), HostPort("10.0.0.1", "UDP", 1)]


def test_a_pod_is_terminal_after_success_or_failure() -> None:
    phases = ("Succeeded", "Failed", "Running", "")
    assert [is_terminal(view_pod({"status": {"phase": phase}})) for phase in phases] == [True, True, False, False]


def test_init_containers_come_first() -> None:
    pod = make_pod(containers=[{"name": "main"}], initContainers=[{"name": "first"}])
    assert [item.name for item in iter_containers(pod)] == ["first", "main"]


def test_where_a_pod_may_run_is_compiled_from_its_spec() -> None:
    pod = make_pod(nodeSelector={"zone": "a"})
    assert pod.node_filter.matches({"zone": "a"}, "n")
    assert not pod.node_filter.matches({}, "n")
