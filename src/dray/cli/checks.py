"""What is wrong with the objects of a manifest: decoded and judged as by a server that is asked to create them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from dray.api.claims import ResourceClaim
from dray.api.codec import DecodeError, UnknownKind
from dray.api.errors import StatusError
from dray.api.features import FeatureGates
from dray.api.kinds import KINDS
from dray.api.meta import RESOURCE_GROUP, Time
from dray.api.taintrules import DeviceTaintRule
from dray.apiserver.resources import ROWS, Row
from dray.apiserver.strategies import WriteContext
from dray.cli.device_checks import check_device_kind, decode_device_kind, namespace_of, request_context
from dray.cli.findings import Finding, find_at, find_broken_document, find_broken_rules, find_undecodable, parse_field
from dray.cli.sources import BrokenDocument, ManifestObject
from dray.validation import strategy

_OTHER_KINDS: Final = {
    ("kueue.x-k8s.io", kind) for kind in ("ClusterQueue", "LocalQueue", "ResourceFlavor", "Workload")
}
"""Kinds whose content isn't looked into."""

_EARLY_MODEL: Final = (f"{RESOURCE_GROUP}/v1alpha1", f"{RESOURCE_GROUP}/v1alpha2")


class Checked(NamedTuple):
    """An object and what is wrong with it."""

    obj: ManifestObject | BrokenDocument
    findings: list[Finding]


def check_objects(
    objects: Iterable[ManifestObject | BrokenDocument], gates: FeatureGates, now: Time
) -> Iterator[Checked]:
    for obj in objects:
        match obj:
            case BrokenDocument():
                yield Checked(obj, [find_broken_document(obj)])
            case ManifestObject():
                yield Checked(obj, list(_check(obj, gates, now)))


def _check(obj: ManifestObject, gates: FeatureGates, now: Time) -> Iterator[Finding]:
    if missing := [name for name in ("apiVersion", "kind") if name not in obj.value]:
        yield from (find_at(obj, (name,), "Required value") for name in missing)
        return
    group, _, version = obj.api_version.rpartition("/")
    try:
        if group == RESOURCE_GROUP or not obj.kind or not obj.api_version:
            yield from _check_device_kind(obj, gates, now)
        elif (row := _carried_rows().get((obj.api_version, obj.kind))) is not None:
            yield from _check_carried(obj, row, version, gates, now)
        elif (group, obj.kind) in _OTHER_KINDS:
            yield from _check_metadata(obj)
        else:
            raise UnknownKind(obj.api_version, obj.kind)
    except UnknownKind as error:
        yield find_at(obj, ("kind",), _explain_kind(error), show_field=False)
    except DecodeError as error:
        yield find_undecodable(obj, error)
    except StatusError as error:
        yield find_at(obj, (), error.message)


def _check_device_kind(obj: ManifestObject, gates: FeatureGates, now: Time) -> Iterator[Finding]:
    value, warnings = decode_device_kind(obj, now)
    yield from warnings
    stored = yield from check_device_kind(obj, value, gates, now)
    if stored is not None and isinstance(value, ResourceClaim | DeviceTaintRule):
        # As if it were stored and its status then written.
        stored = replace(stored, metadata=replace(stored.metadata, resource_version="1"))
        context = request_context(obj, value, gates, now)
        written: Any = strategy.update_status(replace(stored, status=value.status), stored, context)
        yield from find_broken_rules(obj, written.errors)


def _check_carried(obj: ManifestObject, row: Row, version: str, gates: FeatureGates, now: Time) -> Iterator[Finding]:
    problems: list[str] = []
    decoded = row.strategy.decode(obj.value, version, now, problems)
    for problem in problems:
        quoted = problem.partition('"')[2].removesuffix('"')
        yield find_at(obj, parse_field(quoted), problem, show_field=False)
    context = WriteContext(
        version=version,
        verb="create",
        now=now,
        name_suffix="00000",
        namespace=namespace_of(obj, row.namespaced),
        gates=gates,
    )
    yield from find_broken_rules(obj, row.strategy.create(decoded, context).errors)


def _check_metadata(obj: ManifestObject) -> Iterator[Finding]:
    if not obj.key.name:
        yield find_at(obj, ("metadata", "name"), "Required value: name or generateName is required")


@cache
def _carried_rows() -> dict[tuple[str, str], Row]:
    return {
        (row.api_version(version), row.kind): row
        for row in ROWS
        if row.group != RESOURCE_GROUP
        for version in row.versions
    }


def _explain_kind(error: UnknownKind) -> str:
    """Kubernetes' message, and what there is instead."""
    if error.api_version in _EARLY_MODEL:
        return f"{error.message}; it belongs to the early model of DRA, which has no counterpart in later versions"
    group = error.api_version.rpartition("/")[0]
    known = [*KINDS, *_carried_rows()] if group != RESOURCE_GROUP else list(KINDS)
    versions = sorted({api_version for api_version, kind in known if kind == error.kind})
    if versions:
        return f"{error.message}; {error.kind} is known in {', '.join(versions)}"
    kinds = sorted(
        {kind for api_version, kind in known if api_version == error.api_version if not kind.endswith("List")}
    )
    if kinds:
        return f"{error.message}; kinds of {error.api_version}: {', '.join(kinds)}"
    groups = sorted({api_version for api_version, _ in known})
    return f"{error.message}; known are {', '.join(groups)}"
