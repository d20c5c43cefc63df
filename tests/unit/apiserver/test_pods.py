from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.api_calls import PODS, Caller, make_pod, start_api

MERGE = "application/merge-patch+json"


@pytest.fixture
async def api() -> Caller:
    return await start_api()


async def test_a_pod_gets_the_defaults_that_schedulers_rely_on(api: Caller) -> None:
    containers = [
        {"name": "c", "image": "repo/x:1", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 1}]}
    ]
    spec = (await api.create(PODS, make_pod("p", containers=containers)))["spec"]
    assert (spec["restartPolicy"], spec["schedulerName"], spec["priority"]) == ("Always", "default-scheduler", 0)
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert spec["containers"][0]["ports"][0]["protocol"] == "TCP"
    assert {toleration["key"] for toleration in spec["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
async def test_the_quality_of_service_follows_the_resources(api: Caller, resources: Any, expected: str) -> None:
    pod = await api.create(PODS, make_pod("p", containers=[{"name": "c", "image": "x", "resources": resources}]))
    assert pod["status"]["qosClass"] == expected


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"containers": []}, "spec.containers", "Required value"),
        ({"containers": [{"image": "x"}]}, "spec.containers[0].name", "Required value"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image", "Required value"),
        ({"containers": [{"name": "c", "image": "x"}] * 2}, "spec.containers[1].name", 'Duplicate value: "c"'),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy", 'Unsupported value: "Sometimes"'),
        ({"nodeName": "Bad_Node"}, "spec.nodeName", "a lowercase RFC 1123 subdomain"),
        ({"nodeSelector": {"a b": "c"}}, "spec.nodeSelector", "name part must consist of"),
        (
            {"terminationGracePeriodSeconds": -1},
            "spec.terminationGracePeriodSeconds",
            "must be greater than or equal to 0",
        ),
        ({"resourceClaims": [{"name": "a"}]}, "spec.resourceClaims[0]", "must specify one of"),
        (
            {"resourceClaims": [{"name": "a", "resourceClaimName": "x"}, {"name": "a", "resourceClaimName": "y"}]},
            "spec.resourceClaims[1].name",
            'Duplicate value: "a"',
        ),
        (
            {"resourceClaims": [{"name": "a", "resourceClaimName": "Bad_Name"}]},
            "spec.resourceClaims[0].resourceClaimName",
            "a lowercase RFC 1123 subdomain",
        ),
        (
            {"containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "a"}]}}]},
            "spec.containers[0].resources.claims[0]",
            "must be one of the names in pod.spec.resourceClaims which is empty",
        ),
        (
            {
                "containers": [
                    {"name": "c", "image": "x", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}
                ]
            },
            "spec.containers[0].resources.requests",
            "must be less than or equal to cpu limit of 1",
        ),
        ({"tolerations": [{"operator": "Equal"}]}, "spec.tolerations[0].operator", "operator must be Exists"),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, "spec.schedulingGates[1]", 'Duplicate value: "a"'),
        (
            {"containers": [{"name": "c", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/"}]}]},
            "spec.containers[0].volumeMounts[0].name",
            'Not found: "v"',
        ),
    ],
)
async def test_bad_pods_are_refused(api: Caller, spec: Any, field: str, text: str) -> None:
    answer = await api.ask("POST", PODS, make_pod("p", **spec))
    assert answer.status == 422, answer.body
    causes = {cause["field"]: cause["message"] for cause in answer.json["details"]["causes"]}
    assert field in causes, causes
    assert text in causes[field]


@pytest.mark.parametrize(
    "patch",
    [
        {"containers": [{"name": "c", "image": "y"}]},
        {"activeDeadlineSeconds": 10},
        {"tolerations": [{"key": "a", "operator": "Exists"}]},
    ],
)
async def test_some_fields_of_a_pod_may_change(api: Caller, patch: Any) -> None:
    created = await api.create(PODS, make_pod("p"))
    if "tolerations" in patch:
        patch = {"tolerations": [*created["spec"]["tolerations"], *patch["tolerations"]]}
    strategic = "application/strategic-merge-patch+json"
    answer = await api.ask("PATCH", f"{PODS}/p", {"spec": patch}, content_type=strategic)
    assert answer.status == 200, answer.body
    assert answer.json["metadata"]["generation"] == 2


async def test_other_changes_are_shown_as_a_diff(api: Caller) -> None:
    await api.create(PODS, make_pod("p", resourceClaims=[{"name": "a", "resourceClaimName": "one"}]))
    patch = {"spec": {"resourceClaims": [{"name": "a", "resourceClaimName": "two"}]}}
    answer = await api.ask("PATCH", f"{PODS}/p", patch, content_type=MERGE)
    assert answer.status == 422
    assert '-   "ResourceClaimName": "one",\n+   "ResourceClaimName": "two",' in answer.message


async def test_gates_only_go_away(api: Caller) -> None:
    await api.create(PODS, make_pod("p", schedulingGates=[{"name": "a"}, {"name": "b"}]))
    fewer = await api.ask("PATCH", f"{PODS}/p", {"spec": {"schedulingGates": [{"name": "b"}]}}, content_type=MERGE)
    assert fewer.status == 200
    more = {"spec": {"schedulingGates": [{"name": "b"}, {"name": "c"}]}}
    answer = await api.ask("PATCH", f"{PODS}/p", more, content_type=MERGE)
    assert "only deletion is allowed, but found new scheduling gate 'c'" in answer.message
    bound = await api.ask("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}})
    assert (bound.status, "non-empty .spec.schedulingGates" in bound.message) == (409, True)


async def test_a_binding_names_a_node_and_means_one_pod(api: Caller) -> None:
    await api.create(PODS, make_pod("p"))
    missing = await api.ask("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {}})
    assert missing.json["details"]["causes"][0]["field"] == "target.name"
    other = {"metadata": {"name": "p", "uid": "other"}, "target": {"name": "n"}}
    assert (await api.ask("POST", f"{PODS}/p/binding", other)).status == 409
    renamed = {"metadata": {"name": "q"}, "target": {"name": "n"}}
    assert (await api.ask("POST", f"{PODS}/p/binding", renamed)).status == 400
    annotated = {"metadata": {"name": "p", "annotations": {"a": "b"}}, "target": {"kind": "Node", "name": "n"}}
    await api.create(f"{PODS}/p/binding", annotated)
    pod = await api.get(f"{PODS}/p")
    assert pod["metadata"]["annotations"] == {"a": "b"}
    assert pod["spec"]["nodeName"] == "n"


async def test_claim_statuses_must_name_claims_of_the_pod(api: Caller) -> None:
    await api.create(PODS, make_pod("p", resourceClaims=[{"name": "a", "resourceClaimTemplateName": "t"}]))
    good = {"status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "x"}]}}
    assert (await api.ask("PATCH", f"{PODS}/p/status", good, content_type=MERGE)).status == 200
    bad = {"status": {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "x"}]}}
    answer = await api.ask("PATCH", f"{PODS}/p/status", bad, content_type=MERGE)
    assert answer.json["details"]["causes"][0]["field"] == "status.resourceClaimStatuses[0].name"
