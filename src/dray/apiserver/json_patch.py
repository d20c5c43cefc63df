"""JSON Patch (RFC 6902), with the leniencies of the library that Kubernetes uses."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

from dray.api.errors import BadRequest, Invalid, RequestTooLarge

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_NODES: Final = 100_000
"""`copy` can double a document with every operation; this bounds the result."""

_REJECTED: Final = "the server rejected our request due to an error in our request"


class PatchFailed(Exception):
    """An operation doesn't apply to this document."""


def apply_json_patch(document: Any, patch: Any) -> Any:
    """The patched document. `document` is taken over and may be changed."""
    operations = check_operations(patch)
    try:
        budget = MAX_COPIED_NODES
        for operation in operations:
            document, used = _apply(document, operation)
            budget -= used
            if budget < 0:
                raise PatchFailed("the copy operations grow the document too much")
    except PatchFailed as error:
        raise Invalid(_REJECTED, details={}) from error
    return document


def check_operations(patch: Any) -> Sequence[dict[str, Any]]:
    if not isinstance(patch, list) or not all(isinstance(operation, dict) for operation in patch):
        raise BadRequest("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(patch) > MAX_OPERATIONS:
        raise RequestTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}", details={}
        )
    return patch


def _apply(document: Any, operation: dict[str, Any]) -> tuple[Any, int]:
    path = _tokens(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _add(document, path, _value(operation)), 0
        case "remove":
            return _remove(document, path), 0
        case "replace":
            _get(document, path)
            return _replace(document, path, _value(operation)), 0
        case "test":
            if not _equal(_get_or_none(document, path), operation.get("value")):
                raise PatchFailed("testing value failed")
            return document, 0
        case "move":
            source = _tokens(operation.get("from"))
            if path[: len(source)] == source and path != source:
                raise PatchFailed("can't move a value into itself")
            moved = _get(document, source)
            return _add(_remove(document, source), path, moved), 0
        case "copy":
            copied = copy.deepcopy(_get(document, _tokens(operation.get("from"))))
            return _add(document, path, copied), _count(copied)
        case other:
            raise PatchFailed(f"unexpected kind: {other}")


def _value(operation: dict[str, Any]) -> Any:
    return copy.deepcopy(operation.get("value"))


def _count(value: Any) -> int:
    match value:
        case dict():
            return 1 + sum(map(_count, value.values()))
        case list():
            return 1 + sum(map(_count, value))
        case _:
            return 1


def _tokens(pointer: Any) -> list[str]:
    if not isinstance(pointer, str):
        raise PatchFailed("a path must be a string")
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise PatchFailed(f"{pointer!r} is not a JSON pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def _index(token: str, size: int) -> int:
    """Negative indices count from the end, as Kubernetes allows."""
    try:
        index = int(token)
    except ValueError:
        raise PatchFailed(f"{token!r} is not an index of a list") from None
    if index < 0:
        index += size
    if not 0 <= index < size:
        raise PatchFailed(f"index {token} is out of bounds")
    return index


def _step(value: Any, token: str) -> Any:
    match value:
        case dict() if token in value:
            return value[token]
        case list():
            return value[_index(token, len(value))]
        case _:
            raise PatchFailed(f"no value at {token!r}")


def _get(document: Any, path: list[str]) -> Any:
    for token in path:
        document = _step(document, token)
    return document


def _get_or_none(document: Any, path: list[str]) -> Any:
    """A test of an absent member against null holds."""
    if not path:
        return document
    parent = _get(document, path[:-1])
    if isinstance(parent, dict):
        return parent.get(path[-1])
    return _step(parent, path[-1])


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    match _get(document, path[:-1]):
        case dict() as parent:
            parent[path[-1]] = value
        case list() as parent:
            # One past the end is allowed: it appends.
            parent.insert(len(parent) if path[-1] == "-" else _index(path[-1], len(parent) + 1), value)
        case _:
            raise PatchFailed(f"can't add to {path[:-1]}")
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise PatchFailed("can't remove the whole document")
    match _get(document, path[:-1]):
        case dict() as parent if path[-1] in parent:
            del parent[path[-1]]
        case list() as parent:
            del parent[_index(path[-1], len(parent))]
        case _:
            raise PatchFailed(f"nothing to remove at {path}")
    return document


def _replace(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    match _get(document, path[:-1]):
        case list() as parent:
            parent[_index(path[-1], len(parent))] = value
        case parent:
            parent[path[-1]] = value
    return document


def _equal(left: Any, right: Any) -> bool:
    """Deep equality of JSON, in which true isn't 1."""
    match left, right:
        case dict(), dict():
            return left.keys() == right.keys() and all(_equal(value, right[key]) for key, value in left.items())
        case list(), list():
            return len(left) == len(right) and all(map(_equal, left, right))
        case _:
            return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
