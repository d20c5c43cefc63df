from __future__ import annotations

import copy
from typing import Any

import pytest

from dray.api.errors import BadRequest
from dray.apiserver.schemas import type_of
from dray.apiserver.strategic_merge import apply_strategic_merge

POD = type_of("", "v1", "Pod")


def merge(document: Any, patch: Any) -> Any:
    before = copy.deepcopy((document, patch))
    result = apply_strategic_merge(document, patch, POD)
    assert (document, patch) == before, "the arguments stay as they are"
    return result


def pod(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(containers)}}


def test_containers_merge_by_name() -> None:
    live = pod({"name": "a", "image": "x", "env": [{"name": "K", "value": "1"}]}, {"name": "b", "image": "y"})
    patch = pod({"name": "a", "image": "z", "env": [{"name": "L", "value": "2"}]})
    merged = merge(live, patch)["spec"]["containers"]
    assert [item["name"] for item in merged] == ["a", "b"]
    assert merged[0]["image"] == "z"
    assert {item["name"] for item in merged[0]["env"]} == {"K", "L"}


def test_a_list_item_can_be_deleted_by_its_key() -> None:
    live = pod({"name": "a"}, {"name": "b"})
    assert merge(live, pod({"name": "a", "$patch": "delete"}))["spec"]["containers"] == [{"name": "b"}]


def test_a_list_and_an_object_can_be_replaced_whole() -> None:
    live = pod({"name": "a"}, {"name": "b"})
    assert merge(live, pod({"$patch": "replace"}, {"name": "c"}))["spec"]["containers"] == [{"name": "c"}]
    assert merge({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"$patch": "replace", "b": "2"}}}) == {
        "metadata": {"labels": {"b": "2"}}
    }
    assert merge({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"$patch": "delete"}}}) == {
        "metadata": {"labels": {}}
    }


def test_lists_without_a_merge_key_are_replaced() -> None:
    live = {"spec": {"tolerations": [{"key": "a"}]}}
    assert merge(live, {"spec": {"tolerations": [{"key": "b"}]}})["spec"]["tolerations"] == [{"key": "b"}]


def test_finalizers_merge_with_the_patch_first() -> None:
    live = {"metadata": {"finalizers": ["a", "b"]}}
    assert merge(live, {"metadata": {"finalizers": ["c"]}})["metadata"]["finalizers"] == ["c", "a", "b"]
    assert merge(live, {"metadata": {"finalizers": ["b"]}})["metadata"]["finalizers"] == ["a", "b"]
    removal = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert merge(live, removal)["metadata"]["finalizers"] == ["b"]


def test_an_order_can_be_asked_for() -> None:
    live = pod({"name": "a"}, {"name": "b"}, {"name": "c"})
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "c", "image": "x"}],
        }
    }
    merged = merge(live, patch)["spec"]["containers"]
    assert [item["name"] for item in merged] == ["b", "c", "a"]
    assert merged[1] == {"name": "c", "image": "x"}


def test_volumes_keep_only_the_fields_that_the_patch_names() -> None:
    live = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    patch = {"spec": {"volumes": [{"name": "v", "configMap": {"name": "c"}, "$retainKeys": ["name", "configMap"]}]}}
    assert merge(live, patch)["spec"]["volumes"] == [{"name": "v", "configMap": {"name": "c"}}]


def test_null_removes_and_directives_never_reach_the_object() -> None:
    assert merge({"spec": {"nodeName": "n"}}, {"spec": {"nodeName": None}}) == {"spec": {}}
    added = merge({}, pod({"name": "a", "env": [{"name": "X", "$patch": "delete"}], "$retainKeys": ["name"]}))
    assert added == pod({"name": "a", "env": []})


@pytest.mark.parametrize(
    "patch",
    [
        pod({"image": "no name"}),
        pod({"name": "a", "$patch": "merge"}),
        {"spec": {"$patch": "nonsense"}},
        {"spec": {"$setElementOrder/containers": "x"}},
        {"spec": {"volumes": [{"name": "v", "$retainKeys": "x"}]}},
        [1],
    ],
)
def test_malformed_patches_are_bad_requests(patch: Any) -> None:
    with pytest.raises(BadRequest):
        merge({"spec": {"containers": [{"name": "a"}], "volumes": [{"name": "v"}]}}, patch)
