from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dray.api.meta import Json
from tests.unit.apiserver.api_calls import (
    CLAIMS,
    CONFIG_MAPS,
    PODS,
    QUOTAS,
    Caller,
    make_claim,
    make_config_map,
    make_pod,
    start_api,
)

DEVICES = "gpu.example.com.deviceclass.resource.k8s.io/devices"
COUNT = "count/resourceclaims.resource.k8s.io"


@pytest.fixture
async def api() -> Caller:
    return await start_api()


async def make_quota(api: Caller, hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> None:
    """A quota whose usage has been counted, as the controller does it."""
    await api.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})
    await make_status(api, hard, used or dict.fromkeys(hard, "0"))


async def make_status(api: Caller, hard: dict[str, str], used: dict[str, str]) -> None:
    quota = await api.get(f"{QUOTAS}/q")
    answer = await api.ask("PUT", f"{QUOTAS}/q/status", {**quota, "status": {"hard": hard, "used": used}})
    assert answer.status == 200, answer.body


async def used(api: Caller) -> Json:
    usage: Json = (await api.get(f"{QUOTAS}/q"))["status"]["used"]
    return usage


async def test_usage_follows_creates_and_deletes(api: Caller) -> None:
    await make_quota(api, {DEVICES: "8", COUNT: "5"})
    claim = make_claim("c")
    claim["spec"]["devices"]["requests"][0]["exactly"]["count"] = 3
    await api.create(CLAIMS, claim)
    assert await used(api) == {DEVICES: "3", COUNT: "1"}
    await api.ask("DELETE", f"{CLAIMS}/c")
    assert await used(api) == {DEVICES: "0", COUNT: "0"}


async def test_the_object_and_its_usage_are_one_commit(api: Caller) -> None:
    await make_quota(api, {COUNT: "5"})
    claim = await api.create(CLAIMS, make_claim("c"))
    quota = await api.get(f"{QUOTAS}/q")
    assert claim["metadata"]["resourceVersion"] == quota["metadata"]["resourceVersion"]


async def test_what_exceeds_a_quota_is_forbidden(api: Caller) -> None:
    await make_quota(api, {DEVICES: "8", COUNT: "5"}, {DEVICES: "7", COUNT: "1"})
    claim = make_claim("c")
    claim["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    answer = await api.ask("POST", CLAIMS, claim)
    assert answer.status == 403
    assert answer.message == (
        f'resourceclaims.resource.k8s.io "c" is forbidden: exceeded quota: q, requested: {DEVICES}=2, '
        f"used: {DEVICES}=7, limited: {DEVICES}=8"
    )
    dry = await api.ask("POST", f"{CLAIMS}?dryRun=All", claim)
    assert dry.status == 403
    assert await used(api) == {DEVICES: "7", COUNT: "1"}


async def test_concurrent_creates_never_pass_the_edge(api: Caller) -> None:
    await make_quota(api, {COUNT: "10"})
    answers = await asyncio.gather(*(api.ask("POST", CLAIMS, make_claim(f"c{number}")) for number in range(32)))
    assert sorted(answer.status for answer in answers) == [201] * 10 + [403] * 22
    assert await used(api) == {COUNT: "10"}
    assert len((await api.get(CLAIMS))["items"]) == 10


async def test_a_new_quota_holds_before_anybody_counted(api: Caller) -> None:
    await api.create(CLAIMS, make_claim("before"))
    await api.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {COUNT: "2"}}})
    await api.create(CLAIMS, make_claim("c"))
    assert await used(api) == {COUNT: "2"}
    assert (await api.ask("POST", CLAIMS, make_claim("d"))).status == 403


async def test_a_new_quota_does_not_block_who_is_beyond_it_until_it_is_counted(api: Caller) -> None:
    for name in ("a", "b"):
        await api.create(CLAIMS, make_claim(name))
    await api.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {COUNT: "1"}}})
    await api.create(CLAIMS, make_claim("c"))
    await make_status(api, {COUNT: "1"}, {COUNT: "3"})
    assert (await api.ask("POST", CLAIMS, make_claim("d"))).status == 403


async def test_a_quota_without_a_count_of_a_resource_lets_nothing_pass(api: Caller) -> None:
    await make_quota(api, {COUNT: "5"})
    quota = await api.get(f"{QUOTAS}/q")
    quota["status"]["used"] = {}
    await api.ask("PUT", f"{QUOTAS}/q/status", quota)
    answer = await api.ask("POST", CLAIMS, make_claim("c"))
    assert answer.message.endswith(f"status unknown for quota: q, resources: {COUNT}")


async def test_other_kinds_are_counted_by_name(api: Caller) -> None:
    await make_quota(api, {"configmaps": "1", "count/configmaps": "1"})
    await api.create(CONFIG_MAPS, make_config_map("x"))
    assert (await api.ask("POST", CONFIG_MAPS, make_config_map("y"))).status == 403


async def test_pods_are_charged_until_they_end(api: Caller) -> None:
    await make_quota(api, {"pods": "1", "requests.cpu": "1"})
    resources = {"resources": {"requests": {"cpu": "600m"}}}
    await api.create(PODS, make_pod("p", containers=[{"name": "c", "image": "x", **resources}]))
    assert await used(api) == {"pods": "1", "requests.cpu": "600m"}
    assert (await api.ask("POST", PODS, make_pod("r"))).status == 403
    merge = "application/merge-patch+json"
    await api.ask("PATCH", f"{PODS}/p/status", {"status": {"phase": "Failed"}}, content_type=merge)
    assert await used(api) == {"pods": "0", "requests.cpu": "0"}


async def test_pods_must_state_what_a_quota_limits(api: Caller) -> None:
    await make_quota(api, {"requests.cpu": "1"})
    answer = await api.ask("POST", PODS, make_pod("p"))
    assert answer.message.endswith("failed quota: q: must specify requests.cpu for: c")
    limited = make_pod(
        "r",
        containers=[{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}, {"name": "d", "image": "x"}],
    )
    answer = await api.ask("POST", PODS, limited)
    assert answer.message.endswith("failed quota: q: must specify requests.cpu for: d")


async def test_scopes_choose_pods(api: Caller) -> None:
    await make_quota(api, {"pods": "0"}, scopes=["BestEffort"])
    assert (await api.ask("POST", PODS, make_pod("p"))).status == 403
    busy = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    assert (await api.ask("POST", PODS, make_pod("p", containers=[busy]))).status == 201
