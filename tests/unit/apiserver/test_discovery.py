from __future__ import annotations

import pytest

from dray.apiserver.openapi import document_v2, find_document_v3, index_v3
from dray.apiserver.resources import ROWS
from tests.unit.apiserver.api_calls import Caller, start_api


@pytest.fixture
async def api() -> Caller:
    return await start_api()


async def test_every_row_is_in_both_forms_of_discovery(api: Caller) -> None:
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    documents = {}
    for root in ("/api", "/apis"):
        answer = await api.ask("GET", root, accept=aggregated)
        assert answer.content_type == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        documents |= {item["metadata"]["name"]: item["versions"] for item in answer.json["items"]}
    for row in ROWS:
        for version in row.versions:
            path = f"/apis/{row.group}/{version}" if row.group else f"/api/{version}"
            listed = {entry["name"]: entry for entry in (await api.get(path))["resources"]}
            assert listed[row.plural]["kind"] == row.kind
            found = next(item for item in documents[row.group] if item["version"] == version)
            entry = next(item for item in found["resources"] if item["resource"] == row.plural)
            assert entry["verbs"] == listed[row.plural]["verbs"]
            subresources = {f"{row.plural}/{part['subresource']}" for part in entry.get("subresources", ())}
            assert subresources == {name for name in listed if name.startswith(f"{row.plural}/")}


async def test_groups_and_versions_can_be_asked_for_one_by_one(api: Caller) -> None:
    groups = {group["name"]: group for group in (await api.get("/apis"))["groups"]}
    assert groups["resource.k8s.io"]["preferredVersion"]["version"] == "v1"
    assert (await api.get("/apis/resource.k8s.io"))["versions"] == groups["resource.k8s.io"]["versions"]
    assert (await api.get("/version"))["minor"] == "37"
    assert "/apis/resource.k8s.io/v1" in (await api.get("/"))["paths"]
    for path in ("/apis/nope", "/apis/resource.k8s.io/v9", "/api/v2", "/apis//v1"):
        assert (await api.ask("GET", path)).status == 404


def test_every_openapi_document_is_listed_and_complete() -> None:
    for path, entry in index_v3()["paths"].items():
        document = find_document_v3(path)
        assert document is not None
        assert entry["serverRelativeURL"].startswith(f"/openapi/v3/{path}?hash=")
        assert document["paths"]
    assert find_document_v3("apis/nope/v1") is None


def test_patches_say_that_they_take_field_validation() -> None:
    document = find_document_v3("apis/resource.k8s.io/v1")
    assert document is not None
    patch = document["paths"]["/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"]["patch"]
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "ResourceClaim"


def test_operations_have_names_of_their_own() -> None:
    for path in index_v3()["paths"]:
        document = find_document_v3(path)
        assert document is not None
        names = [
            operation["operationId"]
            for item in document["paths"].values()
            for method, operation in item.items()
            if method != "parameters"
        ]
        assert len(names) == len(set(names)), path


def test_the_old_format_refers_to_definitions() -> None:
    document = document_v2()
    claim = document["definitions"]["io.k8s.api.resource.v1.ResourceClaim"]
    assert claim["properties"]["spec"]["$ref"] == "#/definitions/io.k8s.api.resource.v1.ResourceClaimSpec"
    assert "components" not in str(document)
