"""Sets of field paths, in the form that `managedFields` stores them (fieldsV1).

A set is a nested dict. Keys are path elements: `f:name` for a field, `k:{"name":"x"}` for an item of a list with keys,
`v:"x"` for an item of a list that is a set. `{}` is a path that is in the set and has nothing below; `"."` says that
the path itself is in the set, too, where there is something below:

    {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}     metadata.labels and metadata.labels.app

All functions return new sets, and may share parts with their arguments; nobody changes a set in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from dray.api.meta import Json
from dray.apiserver.schemas import ListOf, MapOf, Node, Struct

FieldSet: TypeAlias = dict[str, Any]

_SELF: Final = "."
_LEAF: Final[FieldSet] = {_SELF: {}}

_encode = msgspec.json.Encoder(order="sorted").encode


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right:
        return left or right
    result = dict(left)
    for element, theirs in right.items():
        if element == _SELF or element not in result:
            result[element] = theirs
        else:
            result[element] = _short(union(result[element] or _LEAF, theirs or _LEAF))
    return result


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths in `left` that are not in `right`; what is below a path in `right` stays."""
    if not right:
        return left
    result: FieldSet = {}
    for element, mine in left.items():
        theirs = right.get(element)
        if theirs is None:
            result[element] = mine
        elif element != _SELF:
            rest = difference(mine or _LEAF, theirs or _LEAF)
            if rest:
                result[element] = _short(rest)
    return result


def without_subtrees(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths in `left` that are neither in `right` nor below one of its leaves."""
    result: FieldSet = {}
    for element, mine in left.items():
        theirs = right.get(element)
        if theirs is None:
            result[element] = mine
        elif theirs:
            rest = without_subtrees(mine, theirs)
            if rest:
                result[element] = rest
    return result


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for element, mine in left.items():
        theirs = right.get(element)
        if theirs is None:
            continue
        if element == _SELF:
            result[element] = {}
        else:
            both = intersection(mine or _LEAF, theirs or _LEAF)
            if both:
                result[element] = _short(both)
    return result


def _short(fields: FieldSet) -> FieldSet:
    """A path with nothing below is written as `{}`."""
    return {} if len(fields) == 1 and _SELF in fields else fields


def iter_paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Paths for people, such as `.spec.containers[name="c"].image`, in order."""
    if not fields and prefix:
        yield prefix
    for element in sorted(fields):
        if element == _SELF:
            yield prefix
        else:
            yield from iter_paths(fields[element], prefix + _readable(element))


def _readable(element: str) -> str:
    kind, _, rest = element.partition(":")
    match kind:
        case "f":
            return f".{rest}"
        case "k":
            keys = msgspec.json.decode(rest)
            return "[" + ",".join(f"{name}={_encode(value).decode()}" for name, value in sorted(keys.items())) + "]"
        case "v":
            return f"[={rest}]"
        case _:
            return f"[{rest}]"


class DuplicateItem(ValueError):
    """Two items of a list have the same key."""

    def __init__(self, element: str) -> None:
        super().__init__(f"duplicate entries for key {_readable(element)}")


class MissingKey(ValueError):
    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__(f"associative list with keys has an element that omits all key fields {list(keys)}")


def item_element(item: Any, schema: ListOf) -> str:
    """The path element of an item in a list that is a set or has keys."""
    if schema.type == "set":
        return f"v:{_encode(item).decode()}"
    if not isinstance(item, dict):
        raise MissingKey(schema.keys)
    fields = schema.item.fields if isinstance(schema.item, Struct) else {}
    key: Json = {}
    for name in schema.keys:
        value = item.get(name)
        if value is None:
            value = fields[name].default if name in fields else None
        if value is not None:
            key[name] = value
    if not key:
        raise MissingKey(schema.keys)
    return f"k:{_encode(key).decode()}"


def keyed_items(items: list[Any], schema: ListOf) -> dict[str, Any]:
    """The items of a granular list by their path element, in order. Raises DuplicateItem, MissingKey."""
    keyed: dict[str, Any] = {}
    for item in items:
        element = item_element(item, schema)
        if element in keyed:
            raise DuplicateItem(element)
        keyed[element] = item
    return keyed


def _lenient_items(items: list[Any], schema: ListOf) -> dict[str, Any]:
    """The same for a stored list, which may hold the same key twice, or none: such items count as one."""
    keyed: dict[str, Any] = {}
    for item in items:
        try:
            element = item_element(item, schema)
        except MissingKey:
            element = f"v:{_encode(item).decode()}"
        keyed[element] = item if element not in keyed else [keyed[element], item]
    return keyed


def is_granular(value: Any, schema: Node) -> bool:
    """Whether the parts of a value are owned one by one, and not the value as a whole."""
    match schema:
        case Struct() | MapOf():
            return isinstance(value, dict) and not schema.atomic
        case ListOf():
            return isinstance(value, list) and schema.type != "atomic"
        case _:
            return False


def child_type(schema: Node, name: str) -> Node | None:
    """The type of a member of an object; None if its schema doesn't know it."""
    match schema:
        case Struct():
            field = schema.fields.get(name)
            return None if field is None else field.type
        case MapOf():
            return schema.value
        case _:
            return None


def fields_of(value: Any, schema: Node) -> FieldSet:
    """All fields that a configuration sets: what an applier comes to own."""
    result: FieldSet = {}
    match schema:
        case Struct() | MapOf():
            for name, member in value.items():
                kind = child_type(schema, name)
                if kind is None:
                    continue
                below = fields_of(member, kind) if is_granular(member, kind) else {}
                if isinstance(schema, MapOf) and below:
                    below = {_SELF: {}, **below}
                if below or not (isinstance(member, list) and is_granular(member, kind)):
                    result[f"f:{name}"] = below
        case ListOf():
            for element, item in keyed_items(value, schema).items():
                below = fields_of(item, schema.item) if is_granular(item, schema.item) else {}
                result[element] = {_SELF: {}, **below} if below else {}
        case _:
            pass
    return result


class Comparison(NamedTuple):
    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.modified or self.removed)


def compare(old: Any, new: Any, schema: Node) -> Comparison:
    """What changed between two values of one type."""
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    if old != new or _mixes_bool(old, new):
        _compare_members(old, new, schema, (added, modified, removed))
    return Comparison(added, modified, removed)


def _mixes_bool(old: Any, new: Any) -> bool:
    return isinstance(old, bool) != isinstance(new, bool)


def _compare_members(old: Any, new: Any, schema: Node, into: tuple[FieldSet, FieldSet, FieldSet]) -> None:
    match schema:
        case Struct() | MapOf():
            left, right = old if isinstance(old, dict) else {}, new if isinstance(new, dict) else {}
        case ListOf():
            left = _lenient_items(old, schema) if isinstance(old, list) else {}
            right = _lenient_items(new, schema) if isinstance(new, list) else {}
        case _:
            return
    for name in left if not right else right if not left else {**left, **right}:
        old_value, new_value = left.get(name), right.get(name)
        if old_value == new_value and not _mixes_bool(old_value, new_value):
            continue
        if isinstance(schema, ListOf):
            element, member_type = name, schema.item
        else:
            kind = child_type(schema, name)
            if kind is None:
                continue
            element, member_type = f"f:{name}", kind
        _compare_member(element, member_type, (name in left, old_value), (name in right, new_value), into)


def _compare_member(
    element: str,
    schema: Node,
    old: tuple[bool, Any],
    new: tuple[bool, Any],
    into: tuple[FieldSet, FieldSet, FieldSet],
) -> None:
    """Notes the change of one member; of each side it gets whether it is there, and its value."""
    added, modified, removed = into
    below: tuple[FieldSet, FieldSet, FieldSet] = ({}, {}, {})
    if is_granular(old[1] if new[1] is None else new[1], schema) and (old[1] or new[1]):
        _compare_members(old[1], new[1], schema, below)
    elif old[0] and new[0]:
        modified[element] = {}
        return
    if not old[0]:
        added[element] = _short({_SELF: {}, **below[0]})
    elif not new[0]:
        removed[element] = _short({_SELF: {}, **below[2]})
    else:
        for target, part in zip(into, below, strict=True):
            if part:
                target[element] = part
