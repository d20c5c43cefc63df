"""JSON Merge Patch (RFC 7396)."""

from __future__ import annotations

from typing import Any

from dray.api.errors import BadRequest
from dray.api.meta import Json


def apply_merge_patch(document: Json, patch: Any) -> Json:
    """The patched document. `document` is taken over and may be changed."""
    if not isinstance(patch, dict):
        raise BadRequest("json: cannot unmarshal the merge patch into an object")
    return _merge(document, patch)


def _merge(target: Json, patch: Json) -> Json:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            current = target.get(key)
            target[key] = _merge(current if isinstance(current, dict) else {}, value)
        else:
            target[key] = value
    return target
