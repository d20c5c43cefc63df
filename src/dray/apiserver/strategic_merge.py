"""Strategic merge patch: like a merge patch, but lists of objects merge by the key that their schema names.

Directives: `$patch: replace|delete` in an object, `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>` and
`$retainKeys`. Where the patch and the live list disagree about order, items of the patch keep the patch's order, the
rest keeps the live order, and the two are interleaved by the live order as far as it says something.
"""

from __future__ import annotations

from typing import Any, Final

from dray.api.errors import BadRequest
from dray.api.meta import Json
from dray.apiserver.schemas import ANYTHING, Field, ListOf, MapOf, Node, Struct

_DIRECTIVE: Final = "$patch"
_DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_ELEMENT_ORDER: Final = "$setElementOrder/"
_RETAIN_KEYS: Final = "$retainKeys"


def apply_strategic_merge(document: Json, patch: Any, schema: Node) -> Json:
    """The patched document. It shares what the patch doesn't touch with `document`; both arguments stay as they are."""
    if not isinstance(patch, dict):
        raise BadRequest("json: cannot unmarshal the strategic merge patch into an object")
    return _merge_map(document, patch, schema)


def _merge_map(original: Json, patch: Json, schema: Node) -> Json:
    if _DIRECTIVE in patch:
        return _whole_map(patch)
    original, patch = dict(original), dict(patch)
    _retain_keys(original, patch)
    _merge_ordered_lists(original, patch, schema)
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            _delete_from_list(original, key.removeprefix(_DELETE_FROM), value)
        elif value is None:
            original.pop(key, None)
        elif isinstance(value, dict) and isinstance(original.get(key), dict):
            original[key] = _merge_map(original[key], value, _type_of(schema, key))
        elif isinstance(value, list) and isinstance(original.get(key), list):
            original[key] = _merge_list_field(original[key], value, schema, key)
        else:
            original[key] = _without_directives(value)
    return original


def _whole_map(patch: Json) -> Json:
    match patch[_DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise BadRequest(f"Unknown patch type found: {other}")


def _retain_keys(original: Json, patch: Json) -> None:
    if _RETAIN_KEYS not in patch:
        return
    keep = patch.pop(_RETAIN_KEYS)
    if not isinstance(keep, list):
        raise BadRequest("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in keep:
            raise BadRequest("invalid patch format of retainKeys")
    for key in [key for key in original if key not in keep]:
        del original[key]


def _delete_from_list(original: Json, key: str, values: Any) -> None:
    if not isinstance(values, list):
        raise BadRequest("invalid patch format of primitive list")
    if isinstance(original.get(key), list):
        original[key] = [item for item in original[key] if item not in values]


def _merge_ordered_lists(original: Json, patch: Json, schema: Node) -> None:
    """Lists whose order the patch states. They are done here and leave the patch."""
    for directive in [key for key in patch if key.startswith(_ELEMENT_ORDER)]:
        order = patch.pop(directive)
        key = directive.removeprefix(_ELEMENT_ORDER)
        if not isinstance(order, list):
            raise BadRequest("invalid patch format of setElementOrder list")
        live, changes = original.get(key), patch.pop(key, None)
        if not isinstance(live, list) and not isinstance(changes, list):
            continue
        merge_key = _merge_key(schema, key)
        if isinstance(live, list) and isinstance(changes, list):
            merged = _merge_list_field(live, changes, schema, key)
        else:
            merged = live if isinstance(live, list) else _without_directives(changes)
        live_order = live if isinstance(live, list) else []
        original[key] = _in_order(merged, order, live_order, merge_key)


def _merge_list_field(original: list[Any], patch: list[Any], schema: Node, key: str) -> list[Any]:
    field = _field_of(schema, key)
    if field is None or not field.merge:
        return [_without_directives(item) for item in patch]
    if not original and not patch:
        return original
    if any(isinstance(item, list) for item in (*original, *patch)):
        raise BadRequest("lists of lists are not supported")
    if not all(isinstance(item, dict) for item in (*original, *patch)):
        merged = list(original)
        merged.extend(item for index, item in enumerate(patch) if item not in original and item not in patch[:index])
        return _in_order(merged, patch, original, "")
    if not field.merge_key:
        raise BadRequest(f"cannot merge lists without merge key for {key}")
    return _merge_objects(original, patch, field)


def _merge_objects(original: list[Json], patch: list[Json], field: Field) -> list[Json]:
    merge_key = field.merge_key
    item_type = field.type.item if isinstance(field.type, ListOf) else field.type
    live, plain = _apply_list_directives(original, patch, merge_key)
    merged = list(live)
    positions = {_hashable(item.get(merge_key)): index for index, item in enumerate(merged)}
    for item in plain:
        if merge_key not in item:
            raise BadRequest(f"map: {item} does not contain declared merge key: {merge_key}")
        index = positions.get(_hashable(item[merge_key]))
        if index is None:
            positions[_hashable(item[merge_key])] = len(merged)
            merged.append(_without_directives(item))
        else:
            merged[index] = _merge_map(merged[index], item, item_type)
    return _in_order(merged, plain, live, merge_key)


def _apply_list_directives(original: list[Json], patch: list[Json], merge_key: str) -> tuple[list[Json], list[Json]]:
    """`$patch: delete` removes the element with that key, `$patch: replace` drops the live list."""
    live = list(original)
    plain: list[Json] = []
    replace = False
    for item in patch:
        match item.get(_DIRECTIVE):
            case None:
                plain.append(item)
            case "delete":
                if merge_key not in item:
                    raise BadRequest("delete patch type with no merge key defined")
                live = [other for other in live if other.get(merge_key) != item[merge_key]]
            case "replace":
                replace = True
            case "merge":
                raise BadRequest("merging lists cannot yet be specified in the patch")
            case other:
                raise BadRequest(f"unknown patch type found: {other}")
    return ([] if replace else live), plain


def _in_order(merged: list[Any], patch_order: list[Any], live_order: list[Any], merge_key: str) -> list[Any]:
    rank = {_identity(item, merge_key): index for index, item in reversed(list(enumerate(patch_order)))}
    live_rank = {_identity(item, merge_key): index for index, item in reversed(list(enumerate(live_order)))}
    patched = [item for item in merged if _identity(item, merge_key) in rank]
    patched.sort(key=lambda item: rank[_identity(item, merge_key)])
    others = [item for item in merged if _identity(item, merge_key) not in rank]
    others.sort(key=lambda item: live_rank.get(_identity(item, merge_key), len(live_rank)))
    result: list[Any] = []
    at = 0
    for item in patched:
        mine = live_rank.get(_identity(item, merge_key))
        while mine is not None and at < len(others):
            theirs = live_rank.get(_identity(others[at], merge_key))
            if theirs is None or theirs >= mine:
                break
            result.append(others[at])
            at += 1
        result.append(item)
    return result + others[at:]


def _identity(item: Any, merge_key: str) -> Any:
    if merge_key and isinstance(item, dict):
        return _hashable(item.get(merge_key))
    return _hashable(item)


def _hashable(value: Any) -> Any:
    """Equality of JSON scalars, in which true isn't 1; anything else by its text."""
    if isinstance(value, dict | list):
        return repr(value)
    return (type(value) is bool, value)


def _without_directives(value: Any) -> Any:
    """What a patch puts where nothing was, without the instructions for merging."""
    match value:
        case dict():
            if value.get(_DIRECTIVE) == "delete":
                return {}
            return {
                key: _without_directives(item)
                for key, item in value.items()
                if item is not None
                and key not in (_DIRECTIVE, _RETAIN_KEYS)
                and not key.startswith((_DELETE_FROM, _ELEMENT_ORDER))
            }
        case list():
            kept = [item for item in value if not (isinstance(item, dict) and item.get(_DIRECTIVE) == "delete")]
            return [_without_directives(item) for item in kept]
        case _:
            return value


def _field_of(schema: Node, key: str) -> Field | None:
    return schema.fields.get(key) if isinstance(schema, Struct) else None


def _type_of(schema: Node, key: str) -> Node:
    match schema:
        case Struct():
            field = schema.fields.get(key)
            return field.type if field is not None else ANYTHING
        case MapOf():
            return schema.value
        case _:
            return ANYTHING


def _merge_key(schema: Node, key: str) -> str:
    field = _field_of(schema, key)
    return field.merge_key if field is not None else ""
