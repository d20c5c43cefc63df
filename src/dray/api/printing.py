"""Server-side printing: the table that `kubectl get` shows for any kind of object.

Works on plain JSON of any version. Time is handed in, since ages depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from dray.api.core_printing import CORE_KINDS
from dray.api.meta import RESOURCE_GROUP, Json
from dray.api.tables import AGE, NAME, Cells, Column, TableKind, age_of, at, list_at, name_of, number_at, text_at
from dray.api.times import format_age


def columns_of(api_version: str, kind: str) -> tuple[Column, ...]:
    return _table_kind(api_version, kind).columns


def cells_of(api_version: str, kind: str, obj: Json, now: datetime) -> Cells:
    return _table_kind(api_version, kind).cells(obj, now)


def print_table(api_version: str, kind: str, objects: Iterable[Json], now: datetime) -> Json:
    """The `Table` of these objects, with their metadata in the rows. List metadata is for the caller to add."""
    table_kind = _table_kind(api_version, kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [column._asdict() for column in table_kind.columns],
        "rows": [{"cells": list(table_kind.cells(obj, now)), "object": _partial(obj)} for obj in objects],
    }


def _partial(obj: Json) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj.get("metadata", {})}


def _table_kind(api_version: str, kind: str) -> TableKind:
    group = api_version.rpartition("/")[0]
    return _KINDS.get((group, kind), _OTHER)


def _plain_cells(obj: Json, now: datetime) -> Cells:
    return name_of(obj), age_of(obj, now)


def _claim_cells(obj: Json, now: datetime) -> Cells:
    states = []
    deleted = bool(at(obj, "metadata", "deletionTimestamp"))
    allocated = at(obj, "status", "allocation") is not None
    if deleted:
        states.append("deleted")
    if allocated:
        states.append("allocated")
        if list_at(obj, "status", "reservedFor"):
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return name_of(obj), ",".join(states), age_of(obj, now)


def _slice_cells(obj: Json, now: datetime) -> Cells:
    spec = at(obj, "spec")
    return (
        name_of(obj),
        text_at(spec, "nodeName"),
        text_at(spec, "driver"),
        text_at(spec, "pool", "name"),
        age_of(obj, now),
    )


def _taint_rule_cells(obj: Json, now: datetime) -> Cells:
    taint = at(obj, "spec", "taint")
    added = at(taint, "timeAdded")
    return (
        name_of(obj),
        text_at(taint, "key"),
        text_at(taint, "value"),
        text_at(taint, "effect"),
        format_age(now, added) if added else "",
        age_of(obj, now),
    )


_POOL_COUNTS: Final = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")


def _pool_status_cells(obj: Json, now: datetime) -> Cells:
    pools = list_at(obj, "status", "pools")
    condition = _outcome(obj)
    outcome = text_at(condition, "type") or "Pending"
    if at(obj, "status") is None or outcome == "Failed":
        sums = ["-"] * 5
    else:
        sums = [str(sum(number_at(pool, count) for pool in pools)) for count in _POOL_COUNTS]
        sums.append(str(sum(at(pool, "validationError") is not None for pool in pools)))
    matching = number_at(obj, "status", "poolCount")
    completed = "<none>"
    if outcome == "Complete":
        completed = format_age(now, at(condition, "lastTransitionTime"))
        if len(pools) < matching:
            outcome = f"Complete ({len(pools)}/{matching} pools)"
    return name_of(obj), text_at(obj, "spec", "driver"), *sums, matching, outcome, completed


def _outcome(obj: Json) -> Any:
    """The condition that says how the request ended: the first one that is true."""
    for condition in list_at(obj, "status", "conditions"):
        if at(condition, "type") in ("Complete", "Failed") and at(condition, "status") == "True":
            return condition
    return None


def _other_cells(obj: Json, now: datetime) -> Cells:
    return name_of(obj), text_at(obj, "metadata", "creationTimestamp")


_OTHER: Final = TableKind((NAME, Column("Created At", "When the object was created.", type="date")), _other_cells)

_KINDS: Final[dict[tuple[str, str], TableKind]] = {
    (RESOURCE_GROUP, "DeviceClass"): TableKind((NAME, AGE), _plain_cells),
    (RESOURCE_GROUP, "ResourceClaimTemplate"): TableKind((NAME, AGE), _plain_cells),
    (RESOURCE_GROUP, "ResourceClaim"): TableKind(
        (NAME, Column("State", "Whether the claim is pending, allocated, reserved, or being deleted."), AGE),
        _claim_cells,
    ),
    (RESOURCE_GROUP, "ResourceSlice"): TableKind(
        (
            NAME,
            Column("Node", "The node that has the devices, if it is only one."),
            Column("Driver", "The driver that provides the devices."),
            Column("Pool", "The pool that the devices belong to."),
            AGE,
        ),
        _slice_cells,
    ),
    (RESOURCE_GROUP, "DeviceTaintRule"): TableKind(
        (
            NAME,
            Column("Key", "The key of the taint that devices get."),
            Column("Value", "The value of the taint."),
            Column("Effect", "What the taint does to claims that don't tolerate it."),
            Column("TimeAdded", "How long ago the taint was added or its effect changed."),
            AGE,
        ),
        _taint_rule_cells,
    ),
    (RESOURCE_GROUP, "ResourcePoolStatusRequest"): TableKind(
        (
            NAME,
            Column("Driver", "The driver whose pools are asked about."),
            Column("Total", "Devices in all pools."),
            Column("Available", "Devices that are free."),
            Column("Allocated", "Devices that are in use."),
            Column("Unavailable", "Devices that can't be used."),
            Column("Errors", "Pools that are not valid."),
            Column("Pools", "Pools that match the request.", type="integer"),
            Column("Status", "How far the answer is."),
            Column("Completed", "How long ago the answer was complete."),
        ),
        _pool_status_cells,
    ),
    **CORE_KINDS,
}
