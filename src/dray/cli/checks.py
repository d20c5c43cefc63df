"""What is wrong with the objects of a manifest: decoded and judged as by a server that is asked to create them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from dray.api import exact
from dray.api.claims import ADMIN_ACCESS_LABEL, ResourceClaim, ResourceClaimTemplate
from dray.api.codec import DecodeError, UnknownKind, find_kind
from dray.api.errors import StatusError
from dray.api.features import FeatureGates
from dray.api.kinds import KINDS
from dray.api.meta import RESOURCE_GROUP, Time
from dray.api.poolstatus import ResourcePoolStatusRequest
from dray.api.strict import decode_strict
from dray.api.taintrules import DeviceTaintRule
from dray.apiserver.resources import ROWS, Row
from dray.apiserver.strategies import WriteContext
from dray.cli.sources import BrokenDocument, ManifestObject
from dray.validation import strategy
from dray.validation.fields import FieldError
from dray.validation.outcome import RequestContext

_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[]+)")
_OTHER_KINDS: Final = {
    ("kueue.x-k8s.io", kind) for kind in ("ClusterQueue", "LocalQueue", "ResourceFlavor", "Workload")
}
"""Kinds whose content isn't looked into."""

_EARLY_MODEL: Final = (f"{RESOURCE_GROUP}/v1alpha1", f"{RESOURCE_GROUP}/v1alpha2")


class Finding(NamedTuple):
    """One problem, as a line for people."""

    source: str
    line: int
    subject: str
    field: str
    reason: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (f"{self.source}:{self.line}", self.subject, self.field, _one_line(self.reason))))


def _one_line(reason: str) -> str:
    """Without the picture of the place that errors of expressions draw."""
    return " ".join(line.strip() for line in reason.splitlines() if not line.startswith(" |"))


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
                yield Checked(obj, [Finding(obj.source, obj.line, "", "", obj.reason)])
            case ManifestObject():
                yield Checked(obj, list(_check(obj, gates, now)))


def _check(obj: ManifestObject, gates: FeatureGates, now: Time) -> Iterator[Finding]:
    if missing := [name for name in ("apiVersion", "kind") if name not in obj.value]:
        yield from (_finding(obj, (name,), "Required value") for name in missing)
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
        yield _finding(obj, ("kind",), _explain_kind(error), show_field=False)
    except DecodeError as error:
        yield _finding(obj, error.path, error.message)
    except StatusError as error:
        yield _finding(obj, (), error.message)


def _check_device_kind(obj: ManifestObject, gates: FeatureGates, now: Time) -> Iterator[Finding]:
    value, strict_errors = decode_strict(obj.json_text, now=now)
    for error in strict_errors:
        yield _finding(obj, error.path, str(error), show_field=False)
    if isinstance(value, ResourcePoolStatusRequest):
        return  # asked of a cluster, and there are no rules for it here
    namespaced = isinstance(value, ResourceClaim | ResourceClaimTemplate)
    context = RequestContext(
        now=now,
        gates=gates,
        version=find_kind(obj.api_version, obj.kind).version,
        namespace=_namespace(obj, namespaced),
        # Whether a namespace allows admin access is a question to a cluster, not to a file.
        namespace_labels={ADMIN_ACCESS_LABEL: "true"},
    )
    outcome: Any = strategy.create(value, context)
    yield from _field_findings(obj, outcome.errors)
    if outcome.accepted and isinstance(value, ResourceClaim | DeviceTaintRule):
        # As if it were stored and its status then written.
        stored = replace(outcome.object, metadata=replace(outcome.object.metadata, resource_version="1"))
        written: Any = strategy.update_status(replace(stored, status=value.status), stored, context)
        yield from _field_findings(obj, written.errors)


def _check_carried(obj: ManifestObject, row: Row, version: str, gates: FeatureGates, now: Time) -> Iterator[Finding]:
    problems: list[str] = []
    decoded = row.strategy.decode(obj.value, version, now, problems)
    for problem in problems:
        quoted = problem.partition('"')[2].removesuffix('"')
        yield _finding(obj, parse_field(quoted), problem, show_field=False)
    context = WriteContext(
        version=version,
        verb="create",
        now=now,
        name_suffix="00000",
        namespace=_namespace(obj, row.namespaced),
        gates=gates,
    )
    yield from _field_findings(obj, row.strategy.create(decoded, context).errors)


def _namespace(obj: ManifestObject, namespaced: bool) -> str:
    return (obj.key.namespace or "default") if namespaced else ""


def _check_metadata(obj: ManifestObject) -> Iterator[Finding]:
    if not obj.key.name:
        yield _finding(obj, ("metadata", "name"), "Required value: name or generateName is required")


def _field_findings(obj: ManifestObject, errors: Iterable[FieldError]) -> Iterator[Finding]:
    for error in errors:
        yield Finding(obj.source, obj.line_of(parse_field(error.field)), str(obj), error.field, error.message)


def _finding(obj: ManifestObject, path: exact.Path, reason: str, *, show_field: bool = True) -> Finding:
    field = exact.format_path(path) if show_field else ""
    return Finding(obj.source, obj.line_of(path), str(obj), field, reason)


def parse_field(field: str) -> exact.Path:
    """`spec.devices[0].attributes[a.b/c]` as a path."""
    return tuple(
        (int(bracket) if bracket.isascii() and bracket.isdigit() else bracket) if name is None else name
        for bracket, name in ((match[1], match[2]) for match in _STEP.finditer(field))
    )


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
