"""JSON Merge Patch (RFC 7396)."""

from __future__ import annotations

from typing import Any

from dray.api.errors import BadRequest
from dray.api.meta import Json


def apply_merge_patch(document: Json, patch: Any) -> Json:
    """The patched document. It shares what the patch doesn't touch with `document`, which stays as it is."""
    if not isinstance(patch, dict):
        raise BadRequest("json: cannot unmarshal the merge patch into an object")
    return _merge(document, patch)


def _merge(target: Json, patch: Json) -> Json:
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            current = target.get(key)
            result[key] = _merge(current if isinstance(current, dict) else {}, value)
        else:
            result[key] = value
    return result
