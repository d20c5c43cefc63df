"""Server-side apply: merge a configuration into the live object, field by field, under its manager's name.

An applier owns exactly the fields of its last configuration. Fields that it no longer lists are removed unless someone
else owns them; fields that someone else owns with another value are conflicts, taken over only with force.
"""

from __future__ import annotations

from typing import Any

from dray.api.errors import BadRequest, Conflict
from dray.api.meta import Json
from dray.apiserver.fieldsets import (
    DuplicateItem,
    FieldSet,
    MissingKey,
    child_type,
    compare,
    difference,
    fields_of,
    is_granular,
    item_element,
    iter_paths,
    keyed_items,
    union,
    without_subtrees,
)
from dray.apiserver.managed_fields import (
    APPLY,
    UPDATE,
    Conversions,
    Convert,
    Manager,
    ManagerKey,
    Managers,
    Writer,
    find_conflicts,
    managed_part,
    take_from_others,
)
from dray.apiserver.schemas import Anything, ListOf, MapOf, Node, Scalar, Struct


def apply_configuration(
    live: Json,
    config: Json,
    managers: Managers,
    writer: Writer,
    convert: Convert,
    *,
    force: bool,
    reset: FieldSet,
) -> tuple[Json, Managers]:
    """The new object and its managers. All objects are in the writer's version; none is changed.

    Raises Conflict with one cause per field that another manager owns, BadRequest if `config` doesn't fit its type.
    """
    schema = writer.schema(writer.api_version)
    mine = writer.key(APPLY)
    try:
        merged = merge_values(live, config, schema)
        listed = fields_of(config, schema)
    except (DuplicateItem, MissingKey) as error:
        raise BadRequest(f"failed to create typed patch object: {error}") from error
    wanted = without_subtrees(managed_part(listed), reset)
    last = managers.get(mine)
    managers = dict(managers)
    managers[mine] = Manager(mine, writer.api_version, writer.now, wanted)
    if last is not None:
        owned = listed  # with the name, which nobody owns but which must stay
        for manager in managers.values():
            owned = union(owned, manager.fields)
        merged = remove_fields(merged, difference(_with_named_containers(last.fields, schema), owned), owned, schema)
    conversions = Conversions(live, merged, writer, convert, compare(live, merged, schema))
    if not force:
        conflicts = find_conflicts(managers, mine, conversions)
        if conflicts:
            raise conflict_error(conflicts, {key: manager.api_version for key, manager in managers.items()})
    managers = take_from_others(managers, mine, conversions)
    if not wanted:
        del managers[mine]
    elif last is not None and last.fields == wanted and last.api_version == writer.api_version:
        managers[mine] = last
    return merged, managers


def conflict_error(conflicts: dict[ManagerKey, FieldSet], versions: dict[ManagerKey, str]) -> Conflict:
    causes = []
    by_manager: dict[str, list[str]] = {}
    for key, fields in sorted(conflicts.items()):
        who = _describe(key, versions[key])
        for path in iter_paths(fields):
            by_manager.setdefault(who, []).append(path)
            causes.append({"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path})
    if len(causes) == 1:
        text = f"conflict with {next(iter(by_manager))}: {causes[0]['field']}"
    else:
        lines = [
            f"conflicts with {who}:\n" + "\n".join(f"- {path}" for path in paths) for who, paths in by_manager.items()
        ]
        text = "\n".join(lines)
    plural = "s" if len(causes) > 1 else ""
    return Conflict(f"Apply failed with {len(causes)} conflict{plural}: {text}", details={"causes": causes})


def _describe(key: ManagerKey, api_version: str) -> str:
    text = f'"{key.manager}"'
    if key.subresource:
        text += f' with subresource "{key.subresource}"'
    return f"{text} using {api_version}" if key.operation == UPDATE else text


def merge_values(live: Any, config: Any, schema: Node) -> Any:
    """`config` laid over `live`: objects by member, granular lists by key, everything else replaced."""
    if live is None or not is_granular(config, schema) or not is_granular(live, schema):
        return config
    match schema:
        case Struct() | MapOf():
            merged = dict(live)
            for name, value in config.items():
                kind = child_type(schema, name)
                merged[name] = value if kind is None else merge_values(live.get(name), value, kind)
            return merged
        case ListOf():
            return _merge_items(live, config, schema)
        case Scalar() | Anything():
            return config


def _merge_items(live: list[Any], config: list[Any], schema: ListOf) -> list[Any]:
    """Items of both sides once. Items only of `live` keep their place before the next item that both have."""
    wanted = keyed_items(config, schema)
    current = {item_element(item, schema): item for item in live}
    result: list[Any] = []
    pending = list(wanted)
    done: set[str] = set()
    for element, item in current.items():
        if element not in wanted:
            result.append(item)
            continue
        while element not in done:
            following = pending.pop(0)
            result.append(merge_values(current.get(following), wanted[following], schema.item))
            done.add(following)
    result.extend(merge_values(current.get(element), wanted[element], schema.item) for element in pending)
    return result


def _with_named_containers(fields: FieldSet, schema: Node) -> FieldSet:
    """Struct fields count as owned when something in them is: so that emptied ones go away, too."""
    result: FieldSet = {}
    for element, below in fields.items():
        if not below:
            result[element] = below
            continue
        kind = _element_type(element, schema)
        inner = below if kind is None else _with_named_containers(below, kind)
        is_struct_field = isinstance(schema, Struct) and element.startswith("f:")
        result[element] = {".": {}, **inner} if is_struct_field else inner
    return result


def _element_type(element: str, schema: Node) -> Node | None:
    if element.startswith("f:"):
        return child_type(schema, element[2:])
    return schema.item if isinstance(schema, ListOf) else None


def remove_fields(value: Any, gone: FieldSet, owned: FieldSet, schema: Node) -> Any:
    """`value` without the paths in `gone`; a container that holds something `owned` stays."""
    if not gone or not is_granular(value, schema):
        return value
    match schema:
        case Struct() | MapOf():
            kept = {name: _kept(member, f"f:{name}", gone, owned, schema) for name, member in value.items()}
            return {name: member for name, member in kept.items() if member is not _GONE}
        case ListOf():
            items = (_kept(item, item_element(item, schema), gone, owned, schema) for item in value)
            return [item for item in items if item is not _GONE]
        case Scalar() | Anything():
            return value


_GONE: Any = object()


def _kept(member: Any, element: str, gone: FieldSet, owned: FieldSet, schema: Node) -> Any:
    below = gone.get(element)
    if below is None:
        return member
    theirs = owned.get(element)
    if (not below or "." in below) and theirs is None:
        return _GONE
    kind = _element_type(element, schema)
    return member if kind is None else remove_fields(member, below, theirs or {}, kind)
