from __future__ import annotations

import pytest

from tests.unit.apiserver.api_calls import CLAIMS, PODS, Caller, make_claim, make_pod, start_api


@pytest.fixture
async def api() -> Caller:
    return await start_api()


async def test_bookmarks_tell_how_far_a_watch_is(api: Caller) -> None:
    await api.create(CLAIMS, make_claim("c"))
    query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    events = (await api.ask("GET", f"{CLAIMS}?{query}")).events
    assert [event["type"] for event in events[:2]] == ["ADDED", "BOOKMARK"]
    mark = events[1]["object"]
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark["spec"] == {"devices": {"requests": None}}
    assert mark["metadata"]["resourceVersion"] == str(api.api.registry.store.current_revision)


async def test_a_watch_from_a_forgotten_revision_says_gone_in_the_stream(api: Caller) -> None:
    await api.create(CLAIMS, make_claim("c"))
    store = api.api.registry.store
    await store.compact(store.current_revision)
    answer = await api.ask("GET", f"{CLAIMS}?watch=1&resourceVersion=1")
    assert answer.status == 200
    (event,) = answer.events
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_objects_enter_and_leave_by_field(api: Caller) -> None:
    start = (await api.get(PODS))["metadata"]["resourceVersion"]
    await api.create(PODS, make_pod("p"))
    binding = {"metadata": {"name": "p"}, "target": {"name": "n1"}}
    await api.create(f"{PODS}/p/binding", binding)
    await api.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    query = f"watch=1&resourceVersion={start}&timeoutSeconds=1&fieldSelector=spec.nodeName%3Dn1"
    events = (await api.ask("GET", f"{PODS}?{query}")).events
    assert [event["type"] for event in events] == ["ADDED", "DELETED"]


async def test_watches_come_as_tables_and_as_metadata(api: Caller) -> None:
    await api.create(CLAIMS, make_claim("c"))
    query = "watch=1&timeoutSeconds=1"
    table = await api.ask("GET", f"{CLAIMS}?{query}", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert table.events[0]["object"]["rows"][0]["cells"][0] == "c"
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    partial = await api.ask("GET", f"{CLAIMS}?{query}", accept=accept)
    assert partial.events[0]["object"]["kind"] == "PartialObjectMetadata"


async def test_the_old_version_of_a_watch_is_converted(api: Caller) -> None:
    await api.create(CLAIMS, make_claim("c"))
    path = CLAIMS.replace("/v1/", "/v1beta1/")
    (event,) = (await api.ask("GET", f"{path}?watch=1&timeoutSeconds=1")).events
    assert event["object"]["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpu.example.com"
