"""Who set which field: `metadata.managedFields`, kept up to date by every write.

An entry belongs to a manager: name, operation (Apply or Update), subresource and, for updates, API version. Writes
other than apply take fields over silently; apply asks for them (`dray.apiserver.apply`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from dray.api.meta import Json
from dray.apiserver.fieldsets import Comparison, FieldSet, compare, difference, intersection, union, without_subtrees
from dray.apiserver.schemas import Node, Struct, type_of

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATE_MANAGERS: Final = 10
"""Beyond this many the oldest ones are summed up as `ancient-changes`."""

MAX_MANAGER_LENGTH: Final = 128
_ANCIENT: Final = "ancient-changes"

_NOT_MANAGED: Final[FieldSet] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        f"f:{name}": {}
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    },
}
"""Identity and bookkeeping: nobody owns these."""

Convert = Callable[[Json, str], Json | None]
"""Turns an object into another `apiVersion` of its kind; None if that isn't served (any more)."""


class ManagerKey(NamedTuple):
    manager: str
    operation: str
    api_version: str
    """Empty for appliers: they are the same manager in every version."""
    subresource: str


@dataclass(frozen=True, slots=True)
class Manager:
    key: ManagerKey
    api_version: str
    time: str
    fields: FieldSet
    entry: Json | None = None
    """As it was read, if it was."""

    def to_json(self) -> Json:
        if self.entry is not None:
            return self.entry
        entry: Json = {"manager": self.key.manager, "operation": self.key.operation, "apiVersion": self.api_version}
        if self.time:
            entry["time"] = self.time
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": self.fields}
        if self.key.subresource:
            entry["subresource"] = self.key.subresource
        return entry


Managers = dict[ManagerKey, Manager]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, in which version, through which endpoint, and when."""

    manager: str
    api_version: str
    subresource: str
    now: str
    group: str
    kind: str

    def key(self, operation: str) -> ManagerKey:
        version = self.api_version if operation == UPDATE else ""
        return ManagerKey(self.manager, operation, version, self.subresource)

    def schema(self, api_version: str) -> Struct:
        return type_of(self.group, api_version.rpartition("/")[2], self.kind)


def read_managers(obj: Json) -> Managers | None:
    """The managers in an object; None if an entry can't be read."""
    managers: Managers = {}
    for entry in obj.get("metadata", {}).get("managedFields") or ():
        manager = _read_entry(entry)
        if manager is None:
            return None
        managers[manager.key] = manager
    return managers


def _read_entry(entry: Any) -> Manager | None:
    match entry:
        case {"operation": "Apply" | "Update" as operation, "apiVersion": str(version), "fieldsV1": dict(fields)}:
            if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
                return None
            name, subresource, time = (str(entry.get(part) or "") for part in ("manager", "subresource", "time"))
            key = ManagerKey(name, operation, version if operation == UPDATE else "", subresource)
            return Manager(key, version, time, fields, entry)
        case _:
            return None


def write_managers(managers: Managers) -> list[Json]:
    """As they are stored: appliers first, then by time and name."""
    ordered = sorted(
        managers.values(),
        key=lambda item: (item.key.operation != APPLY, item.time, item.key.manager, item.api_version),
    )
    return [manager.to_json() for manager in ordered]


def base_managers(sent: Json, stored: Managers) -> Managers:
    """What a write starts from: the entries in the metadata that was sent, else the stored ones; `[{}]` resets them."""
    entries = sent.get("managedFields")
    if not entries:
        return stored
    if entries == [{}]:
        return {}
    return read_managers({"metadata": sent}) or stored


def managed_part(fields: FieldSet) -> FieldSet:
    """Without the fields that nobody owns."""
    return without_subtrees(fields, _NOT_MANAGED)


@functools.cache
def zero_value(schema: Node) -> Json:
    """The members that an empty object of this type has: those that are always written. Shared: don't change it."""
    zero: Json = {}
    if isinstance(schema, Struct):
        for name, field in schema.fields.items():
            if isinstance(field.type, Struct) and field.default == {}:
                zero[name] = zero_value(field.type)
            elif field.required:
                zero[name] = None
    return zero


def track_update(
    live: Json | None,
    obj: Json,
    managers: Managers,
    writer: Writer,
    convert: Convert,
    *,
    reset: FieldSet,
) -> Managers:
    """The managers after `writer` turned `live` into `obj`, both in the writer's version.

    `reset` are the fields that this endpoint leaves alone, whatever was sent.
    """
    schema = writer.schema(writer.api_version)
    before = zero_value(schema) if live is None else live
    change = compare(before, obj, schema)
    mine = writer.key(UPDATE)
    managers = take_from_others(managers, mine, Conversions(before, obj, writer, convert, change))
    if change.is_empty:
        return managers
    old = managers.get(mine)
    owned = difference(old.fields if old else {}, change.removed)
    owned = without_subtrees(managed_part(union(owned, union(change.modified, change.added))), reset)
    result = {key: manager for key, manager in managers.items() if key != mine}
    if owned:
        time = old.time if old is not None and old.fields == owned else writer.now
        result[mine] = Manager(mine, writer.api_version, time, owned)
    return _cap(result)


class Conversions:
    """The change of one write as managers of other versions see it."""

    def __init__(self, live: Json, obj: Json, writer: Writer, convert: Convert, change: Comparison) -> None:
        self._live, self._obj = live, obj
        self._writer, self._convert = writer, convert
        self._changes = {writer.api_version: change}

    def change(self, api_version: str) -> Comparison:
        known = self._changes.get(api_version)
        if known is None:
            live, obj = self._convert(self._live, api_version), self._convert(self._obj, api_version)
            if live is None or obj is None:
                known = Comparison({}, {}, {})
            else:
                known = compare(live, obj, self._writer.schema(api_version))
            self._changes[api_version] = known
        return known


def take_from_others(managers: Managers, mine: ManagerKey, conversions: Conversions) -> Managers:
    """What changed or went away isn't theirs any more."""
    result: Managers = {}
    for key, manager in managers.items():
        if key != mine:
            change = conversions.change(manager.api_version)
            if not change.is_empty:
                lost = union(union(change.modified, change.added), change.removed)
                left = difference(manager.fields, lost)
                if not left:
                    continue
                manager = manager if left == manager.fields else replace(manager, fields=left, entry=None)
        result[key] = manager
    return result


def find_conflicts(managers: Managers, mine: ManagerKey, conversions: Conversions) -> dict[ManagerKey, FieldSet]:
    """The fields that a write would take from others."""
    conflicts: dict[ManagerKey, FieldSet] = {}
    for key, manager in managers.items():
        if key == mine:
            continue
        change = conversions.change(manager.api_version)
        taken = intersection(manager.fields, union(change.modified, change.added))
        if taken:
            conflicts[key] = taken
    return conflicts


def _cap(managers: Managers) -> Managers:
    updaters = sorted((item for item in managers.values() if item.key.operation == UPDATE), key=lambda m: m.time)
    excess = updaters[: max(len(updaters) - MAX_UPDATE_MANAGERS, 0)]
    if not excess:
        return managers
    # One more than the excess goes, since the summary itself takes a place.
    excess = updaters[: len(excess) + 1]
    result = {key: manager for key, manager in managers.items() if manager not in excess}
    for version, fields, time in _sum_up(excess):
        key = ManagerKey(_ANCIENT, UPDATE, version, "")
        result[key] = Manager(key, version, time, union(fields, result[key].fields) if key in result else fields)
    return result


def _sum_up(managers: Iterable[Manager]) -> list[tuple[str, FieldSet, str]]:
    by_version: dict[str, tuple[FieldSet, str]] = {}
    for manager in managers:
        fields, time = by_version.get(manager.api_version, ({}, ""))
        by_version[manager.api_version] = (union(fields, manager.fields), max(time, manager.time))
    return [(version, fields, time) for version, (fields, time) in by_version.items()]
