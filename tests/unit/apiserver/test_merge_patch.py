from __future__ import annotations

import copy
from typing import Any

import pytest

from dray.api.errors import BadRequest
from dray.apiserver.merge_patch import apply_merge_patch


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "x"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_the_examples_of_the_rfc(document: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy((document, patch))
    assert apply_merge_patch(document, patch) == expected
    assert (document, patch) == before


def test_what_a_patch_leaves_alone_is_shared() -> None:
    document = {"spec": {"x": [1]}, "status": {"y": 1}}
    patched = apply_merge_patch(document, {"status": {"y": 2}})
    assert patched["spec"] is document["spec"]


def test_a_patch_must_be_an_object() -> None:
    with pytest.raises(BadRequest):
        apply_merge_patch({}, [1])
