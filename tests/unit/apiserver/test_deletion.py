from __future__ import annotations

import pytest

from dray.testing.clock import FakeClock
from tests.unit.apiserver.api_calls import (
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    PODS,
    Caller,
    make_claim,
    make_config_map,
    make_pod,
    start_api,
)

JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}},
}


@pytest.fixture
async def api() -> Caller:
    return await start_api(FakeClock())


async def run_pod(api: Caller, name: str, **spec: object) -> None:
    await api.create(PODS, make_pod(name, **spec))
    await api.create(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": {"name": "n1"}})


async def test_a_pod_that_never_ran_goes_at_once(api: Caller) -> None:
    await api.create(PODS, make_pod("p"))
    deleted = (await api.ask("DELETE", f"{PODS}/p")).json
    assert "deletionTimestamp" not in deleted["metadata"]
    assert (await api.ask("GET", f"{PODS}/p")).status == 404


async def test_a_pod_on_a_node_gets_its_own_grace_period(api: Caller) -> None:
    await run_pod(api, "p", terminationGracePeriodSeconds=7)
    metadata = (await api.ask("DELETE", f"{PODS}/p")).json["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 7
    assert metadata["deletionTimestamp"] == "2026-01-01T00:00:07Z"
    assert metadata["generation"] == 2


async def test_a_second_delete_can_only_shorten_the_wait(api: Caller) -> None:
    await run_pod(api, "p")
    await api.ask("DELETE", f"{PODS}/p")
    longer = (await api.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=90")).json["metadata"]
    assert longer["deletionGracePeriodSeconds"] == 30
    shorter = (await api.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=5")).json["metadata"]
    assert (shorter["deletionGracePeriodSeconds"], shorter["deletionTimestamp"]) == (5, "2026-01-01T00:00:05Z")
    again = (await api.ask("DELETE", f"{PODS}/p")).json["metadata"]
    assert again["resourceVersion"] == shorter["resourceVersion"], "nothing new, nothing written"


async def test_a_finished_pod_needs_no_grace(api: Caller) -> None:
    await run_pod(api, "p")
    merge = "application/merge-patch+json"
    await api.ask("PATCH", f"{PODS}/p/status", {"status": {"phase": "Succeeded"}}, content_type=merge)
    await api.ask("DELETE", f"{PODS}/p")
    assert (await api.ask("GET", f"{PODS}/p")).status == 404


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan"), ("Background", None)]
)
async def test_propagation_policies_leave_a_note_for_the_garbage_collector(
    api: Caller, policy: str, finalizer: str | None
) -> None:
    await api.create(CONFIG_MAPS, make_config_map("x"))
    answer = (await api.ask("DELETE", f"{CONFIG_MAPS}/x?propagationPolicy={policy}")).json
    if finalizer is None:
        assert answer["status"] == "Success"
    else:
        assert answer["metadata"]["finalizers"] == [finalizer]
        assert answer["metadata"]["deletionGracePeriodSeconds"] == 0


async def test_jobs_orphan_their_pods_unless_told_otherwise(api: Caller) -> None:
    await api.create(JOBS, JOB)
    answer = await api.ask("DELETE", f"{JOBS}/j")
    assert answer.json["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default" in answer.warnings[0]
    body = {**JOB, "metadata": {"name": "k"}}
    await api.create(JOBS, body)
    chosen = await api.ask("DELETE", f"{JOBS}/k?propagationPolicy=Background")
    assert (chosen.json["status"], chosen.warnings) == ("Success", [])


async def test_a_generation_counts_the_deletion(api: Caller) -> None:
    await api.create(CLASSES, {"metadata": {"name": "c", "finalizers": ["example.com/x"]}, "spec": {}})
    assert (await api.ask("DELETE", f"{CLASSES}/c")).json["metadata"]["generation"] == 2


async def test_no_finalizer_may_join_while_an_object_goes(api: Caller) -> None:
    await api.create(CLAIMS, make_claim("c", finalizers=["example.com/a"]))
    await api.ask("DELETE", f"{CLAIMS}/c")
    merge = "application/merge-patch+json"
    patch = {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}
    answer = await api.ask("PATCH", f"{CLAIMS}/c", patch, content_type=merge)
    assert answer.status == 422
    assert "no new finalizers can be added if the object is being deleted" in answer.message


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"propagationPolicy": "Sideways"}, 422, 'Unsupported value: "Sideways"'),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422, "cannot be both set"),
        ({"gracePeriodSeconds": "soon"}, 400, "cannot be handled as a DeleteOptions"),
        ({"preconditions": {"uid": "other"}}, 409, "The object might have been deleted and then recreated"),
        ({"preconditions": {"resourceVersion": "1"}}, 409, "The object might have been modified"),
        ({"dryRun": ["Some"]}, 422, 'Unsupported value: ["Some"]'),
        ({"kind": "Pod"}, 400, "cannot be handled as a DeleteOptions"),
    ],
)
async def test_deletes_that_make_no_sense_are_refused(api: Caller, body: object, status: int, text: str) -> None:
    await api.create(CONFIG_MAPS, make_config_map("x"))
    answer = await api.ask("DELETE", f"{CONFIG_MAPS}/x", body)
    assert answer.status == status
    assert text in answer.message
    assert (await api.ask("GET", f"{CONFIG_MAPS}/x")).status == 200


async def test_orphan_dependents_false_is_accepted_later(api: Caller) -> None:
    await api.create(CONFIG_MAPS, make_config_map("x", finalizers=["example.com/x"]))
    answer = await api.ask("DELETE", f"{CONFIG_MAPS}/x", {"orphanDependents": False})
    assert answer.status == 202
