from __future__ import annotations

from typing import Any

import pytest

from dray.api.errors import BadRequest, Invalid, RequestTooLarge
from dray.apiserver.json_patch import MAX_OPERATIONS, apply_json_patch


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a": [1]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2]}),
        ({"a": {"b": 1}}, {"op": "remove", "path": "/a/b"}, {"a": {}}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/-1"}, {"a": [1]}),
        ({"a": 1}, {"op": "replace", "path": "/a", "value": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": 1}, {"op": "move", "from": "/a", "path": "/b"}, {"b": 1}),
        ({"a": {"x": 1}}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": {"x": 1}, "b": {"x": 1}}),
        ({"a/b": {"c~d": 1}}, {"op": "remove", "path": "/a~1b/c~0d"}, {"a/b": {}}),
        ({"a": 1}, {"op": "test", "path": "/b", "value": None}, {"a": 1}),
        ({"a": 1}, {"op": "replace", "path": "", "value": {"z": 0}}, {"z": 0}),
    ],
)
def test_operations_do_what_the_rfc_says(document: Any, operation: Any, expected: Any) -> None:
    assert apply_json_patch(document, [operation]) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/nope"},
        {"op": "replace", "path": "/nope", "value": 1},
        {"op": "add", "path": "/nope/deeper", "value": 1},
        {"op": "add", "path": "/list/7", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "test", "path": "/flag", "value": 1},
        {"op": "test", "path": "/list", "value": [1]},
        {"op": "move", "from": "/obj", "path": "/obj/inside"},
        {"op": "copy", "from": "/nope", "path": "/x"},
        {"op": "jump", "path": "/list"},
        {"op": "add", "path": "no-slash", "value": 1},
        {"op": "remove", "path": ""},
        {"path": "/list"},
        {"op": "add"},
    ],
)
def test_what_does_not_apply_is_refused_without_details(operation: Any) -> None:
    with pytest.raises(Invalid) as caught:
        apply_json_patch({"list": [1, 2], "flag": True, "obj": {}}, [operation])
    assert caught.value.status()["details"] == {}


def test_copies_cannot_grow_without_bound() -> None:
    doubling = [{"op": "copy", "from": "", "path": f"/x{number}"} for number in range(30)]
    with pytest.raises(Invalid):
        apply_json_patch({"a": [0] * 10}, doubling)


def test_a_patch_must_be_a_list_of_operations() -> None:
    for patch in ({}, "x", [1], None):
        with pytest.raises(BadRequest):
            apply_json_patch({}, patch)
    with pytest.raises(RequestTooLarge):
        apply_json_patch({}, [{"op": "test", "path": ""}] * (MAX_OPERATIONS + 1))
