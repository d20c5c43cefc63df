"""Deletes: at once, or after a grace period, or when the last finalizer is gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, NamedTuple

from dray.api.errors import NotFound
from dray.api.meta import Json
from dray.api.times import format_time, parse_time
from dray.apiserver import refusals
from dray.apiserver.admission import Planned
from dray.apiserver.listing import find_records
from dray.apiserver.options import DeleteOptions, ListOptions
from dray.apiserver.pods import grace_period
from dray.apiserver.records import Record, encode_stored
from dray.apiserver.registry import MAX_ATTEMPTS, Registry, is_finished
from dray.apiserver.resources import Row
from dray.apiserver.targets import Caller, Target
from dray.store.errors import RevisionMismatch
from dray.store.interface import Compare, Delete, Operation, Put

_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
_JOB_WARNING: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


class Deleted(NamedTuple):
    record: Record
    gone: bool
    """False if the object still waits for finalizers or its grace period."""
    warnings: list[str]


async def delete_object(registry: Registry, target: Target, options: DeleteOptions, caller: Caller) -> Deleted:
    row = target.row
    refusals.check_name(target.name)
    warnings = [_JOB_WARNING] if row.orphans_by_default and _policy(options) == "" else []
    entry = await registry.store.get(target.key)
    for _ in range(MAX_ATTEMPTS):
        if entry is None:
            raise refusals.not_found(row, target.name)
        old = registry.records.get(row, entry)
        _check_preconditions(row, target.name, old, options)
        registry.admission.check(row, "delete", caller.user, "", None, old.obj)
        marked = _mark(registry, row, old.obj, options)
        if marked is None:
            return Deleted(old, False, warnings)
        gone = is_finished(row, marked)
        if options.dry_run:
            return Deleted(Record(row, old.value, old.revision, _result(old.obj, marked, gone)), gone, warnings)
        change: Operation
        if gone:
            change = Delete(target.key)
        else:
            change = Put(target.key, encode_stored(marked, row.kind, row.storage_api_version))
        compare = Compare(target.key, old.revision)
        planned = Planned(row, target.namespace, compare, change, None if gone else marked, old.obj)
        try:
            revision = await registry.admission.commit(planned, dry_run=False)
        except RevisionMismatch as error:
            entry = error.current
            continue
        result = _result(old.obj, marked, gone)
        result["metadata"]["resourceVersion"] = str(revision)
        return Deleted(Record(row, None, revision, result), gone, warnings)
    raise refusals.conflict(row, target.name)


async def delete_collection(
    registry: Registry, target: Target, listing: ListOptions, options: DeleteOptions, caller: Caller
) -> tuple[list[Record], int]:
    """Deletes what a list with the same selectors shows; returns what was deleted, and the revision of that list."""
    found, revision = await find_records(registry, target, listing)
    deleted: list[Record] = []
    for record in found:
        metadata = record.obj["metadata"]
        one = Target(target.row, target.version, metadata.get("namespace", ""), metadata["name"])
        try:
            deleted.append((await delete_object(registry, one, options, caller)).record)
        except NotFound:  # someone else was faster
            continue
    return deleted, revision


def _check_preconditions(row: Row, name: str, old: Record, options: DeleteOptions) -> None:
    uid, revision = old.obj["metadata"].get("uid", ""), str(old.revision)
    if options.uid is not None and options.uid != uid:
        guess = "The object might have been deleted and then recreated"
        raise refusals.precondition_failed(row, name, "UID", options.uid, uid, guess)
    if options.resource_version is not None and options.resource_version != revision:
        guess = "The object might have been modified"
        raise refusals.precondition_failed(row, name, "ResourceVersion", options.resource_version, revision, guess)


def _policy(options: DeleteOptions) -> str:
    if options.propagation_policy:
        return options.propagation_policy
    match options.orphan_dependents:
        case True:
            return "Orphan"
        case False:
            return "Background"
        case _:
            return ""


def _mark(registry: Registry, row: Row, obj: Json, options: DeleteOptions) -> Json | None:
    """The object with its deletion noted; None if a deletion under way already covers this one."""
    metadata = dict(obj["metadata"])
    finalizers = _finalizers(row, metadata.get("finalizers") or [], options)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    seconds = grace_period(obj, options.grace_period_seconds) if row.kind == "Pod" else 0
    changed = finalizers != (obj["metadata"].get("finalizers") or [])
    if "deletionTimestamp" in metadata:
        current = metadata.get("deletionGracePeriodSeconds") or 0
        # Only a shorter period counts; asking again for nothing new changes nothing.
        if seconds < current and (options.grace_period_seconds is not None or seconds == 0):
            end = parse_time(metadata["deletionTimestamp"]) - timedelta(seconds=current - seconds)
            metadata["deletionTimestamp"] = format_time(end)
            metadata["deletionGracePeriodSeconds"] = seconds
        elif not changed and not is_finished(row, {**obj, "metadata": metadata}):
            return None
    else:
        end = registry.clock.now() + timedelta(seconds=seconds)
        metadata["deletionTimestamp"] = format_time(end)
        if row.kind != "Namespace":
            metadata["deletionGracePeriodSeconds"] = seconds
        if metadata.get("generation"):
            metadata["generation"] += 1
    marked = {**obj, "metadata": metadata}
    if row.kind == "Namespace":
        marked["status"] = {**obj.get("status", {}), "phase": "Terminating"}
    return marked


def _finalizers(row: Row, current: list[str], options: DeleteOptions) -> list[str]:
    """With the finalizer that makes the garbage collector orphan the dependents, or delete them first."""
    policy = _policy(options)
    if policy == "" and row.orphans_by_default and not {_ORPHAN, _FOREGROUND} & set(current):
        policy = "Orphan"
    kept = [name for name in current if name not in (_ORPHAN, _FOREGROUND)]
    match policy:
        case "Orphan":
            return [*kept, _ORPHAN]
        case "Foreground":
            return [*kept, _FOREGROUND]
        case "Background":
            return kept
        case _:
            return current


def _result(old: Json, marked: Json, gone: bool) -> Json:
    """What the answer shows: an object that went at once looks as it did before."""
    at_once = (
        gone and "deletionTimestamp" not in old["metadata"] and not marked["metadata"].get("deletionGracePeriodSeconds")
    )
    obj = old if at_once else marked
    return {**obj, "metadata": dict(obj["metadata"])}
