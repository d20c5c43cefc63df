from __future__ import annotations

import base64
import json

import pytest

from tests.unit.apiserver.api_calls import CLAIMS, Caller, make_claim, start_api


@pytest.fixture
async def api() -> Caller:
    api = await start_api()
    for number in range(6):
        await api.create(CLAIMS, make_claim(f"c{number}", labels={"odd": str(number % 2)}))
    return api


async def test_a_page_knows_how_many_follow(api: Caller) -> None:
    page = await api.get(f"{CLAIMS}?limit=4")
    assert page["metadata"]["remainingItemCount"] == 2
    rest = await api.get(f"{CLAIMS}?limit=4&continue={page['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c4", "c5"]
    assert "continue" not in rest["metadata"]
    assert rest["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]


async def test_a_selected_page_is_full_if_enough_match(api: Caller) -> None:
    page = await api.get(f"{CLAIMS}?limit=2&labelSelector=odd%3D1")
    assert [item["metadata"]["name"] for item in page["items"]] == ["c1", "c3"]
    assert "remainingItemCount" not in page["metadata"]
    rest = await api.get(f"{CLAIMS}?limit=2&labelSelector=odd%3D1&continue={page['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c5"]


async def test_pages_show_one_revision_although_objects_change(api: Caller) -> None:
    page = await api.get(f"{CLAIMS}?limit=1")
    await api.ask("DELETE", f"{CLAIMS}/c3")
    await api.create(CLAIMS, make_claim("c0a"))
    rest = await api.get(f"{CLAIMS}?continue={page['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c1", "c2", "c3", "c4", "c5"]


async def test_a_continue_token_that_is_too_old_offers_an_inconsistent_rest(api: Caller) -> None:
    page = await api.get(f"{CLAIMS}?limit=2")
    await api.ask("DELETE", f"{CLAIMS}/c5")
    store = api.api.registry.store
    await store.compact(store.current_revision)
    expired = await api.ask("GET", f"{CLAIMS}?limit=2&continue={page['metadata']['continue']}")
    assert (expired.status, expired.json["reason"]) == (410, "Expired")
    assert expired.message.startswith("The provided continue parameter is too old")
    rest = await api.get(f"{CLAIMS}?continue={expired.json['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c2", "c3", "c4"]


def token(**content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


@pytest.mark.parametrize(
    "bad",
    [
        "x",
        "%21%21",
        token(v="v0", rv=1, start="a"),
        token(v="meta.k8s.io/v1", rv=0, start="a"),
        token(v="meta.k8s.io/v1", rv=5, start=""),
        token(v="meta.k8s.io/v1", rv="5", start="a"),
    ],
)
async def test_continue_tokens_that_we_did_not_make_are_refused(api: Caller, bad: str) -> None:
    answer = await api.ask("GET", f"{CLAIMS}?continue={bad}")
    assert answer.status == 400
    assert answer.message.startswith("continue key is not valid")


async def test_a_token_cannot_lead_out_of_its_collection(api: Caller) -> None:
    revision = api.api.registry.store.current_revision
    listed = await api.get(f"{CLAIMS}?continue={token(v='meta.k8s.io/v1', rv=revision, start='../../')}")
    assert all(item["metadata"]["name"].startswith("c") for item in listed["items"])


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("resourceVersion=99999", 504, "Too large resource version: 99999, current: "),
        ("resourceVersion=99999&resourceVersionMatch=Exact", 504, "Too large resource version"),
        ("resourceVersionMatch=Exact", 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422, 'is forbidden for resourceVersion "0"'),
        ("resourceVersion=1&resourceVersionMatch=Roughly", 422, 'Unsupported value: "Roughly"'),
        ("sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
        ("watch=1&sendInitialEvents=true", 422, "requires setting resourceVersionMatch to NotOlderThan"),
        ("watch=1&resourceVersion=abc", 400, "invalid resource version"),
        ("limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("limit=99999999999999999999", 400, "value out of range"),
        ("resourceVersion=-1", 400, "invalid resource version"),
    ],
)
async def test_impossible_lists_are_explained(api: Caller, query: str, status: int, text: str) -> None:
    answer = await api.ask("GET", f"{CLAIMS}?{query}")
    assert answer.status == status
    assert text in answer.message


async def test_an_old_revision_can_be_listed_exactly(api: Caller) -> None:
    before = (await api.get(CLAIMS))["metadata"]["resourceVersion"]
    await api.ask("DELETE", f"{CLAIMS}/c0")
    exact = await api.get(f"{CLAIMS}?resourceVersion={before}&resourceVersionMatch=Exact")
    assert len(exact["items"]) == 6
    newer = await api.get(f"{CLAIMS}?resourceVersion={before}&resourceVersionMatch=NotOlderThan")
    assert len(newer["items"]) == 5
    store = api.api.registry.store
    await store.compact(store.current_revision)
    gone = await api.ask("GET", f"{CLAIMS}?resourceVersion={before}&resourceVersionMatch=Exact")
    assert gone.status == 410
