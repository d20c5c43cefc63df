"""Discovery: which groups, versions and resources there are, in the old form and in the aggregated one."""

from __future__ import annotations

import platform
from functools import cache
from typing import Final

import dray
from dray.api.meta import Json
from dray.apiserver.resources import GROUPS, Row, Subresource, rows_of, versions_of
from dray.apiserver.reviews import AUTHENTICATION, AUTHORIZATION, REVIEWS, ReviewKind

KUBERNETES_MINOR: Final = "37"
_REVIEW_GROUPS: Final = (AUTHENTICATION, AUTHORIZATION)


def version_info() -> Json:
    return {
        "major": "1",
        "minor": KUBERNETES_MINOR,
        "gitVersion": f"v1.{KUBERNETES_MINOR}.0+dray-{dray.__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": f"python {platform.python_version()}",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def all_groups() -> tuple[str, ...]:
    """Every group but core, in order."""
    return tuple(sorted({*GROUPS, *_REVIEW_GROUPS} - {""}))


def group_versions(group: str) -> tuple[str, ...]:
    return versions_of(group) or (("v1",) if group in _REVIEW_GROUPS else ())


def core_versions(address: str) -> Json:
    return {
        "kind": "APIVersions",
        "versions": list(group_versions("")),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list() -> Json:
    groups = [{name: value for name, value in _group(group).items() if name != "kind"} for group in all_groups()]
    for group in groups:
        del group["apiVersion"]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def find_group(group: str) -> Json | None:
    return _group(group) if group in all_groups() else None


def _group(group: str) -> Json:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in group_versions(group)]
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": group,
        "versions": versions,
        "preferredVersion": versions[0],
    }


def find_resources(group: str, version: str) -> Json | None:
    """The APIResourceList of a group version; None if it isn't served."""
    if version not in group_versions(group):
        return None
    resources = [entry for row in rows_of(group, version) for entry in _resources(row)]
    resources += [_review(review) for review in REVIEWS if review.group == group]
    return {
        "kind": "APIResourceList",
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": sorted(resources, key=lambda entry: str(entry["name"])),
    }


def _review(review: ReviewKind) -> Json:
    return {
        "name": review.plural,
        "singularName": review.kind.lower(),
        "namespaced": review.namespaced,
        "kind": review.kind,
        "verbs": ["create"],
    }


def _resources(row: Row) -> list[Json]:
    main: Json = {
        "name": row.plural,
        "singularName": row.singular,
        "namespaced": row.namespaced,
        "kind": row.kind,
        "verbs": list(row.verbs),
    }
    if row.short_names:
        main["shortNames"] = list(row.short_names)
    if row.categories:
        main["categories"] = list(row.categories)
    return [main, *(_subresource(row, part) for part in row.subresources)]


def _subresource(row: Row, part: Subresource) -> Json:
    entry: Json = {
        "name": f"{row.plural}/{part.name}",
        "singularName": "",
        "namespaced": row.namespaced,
    }
    if part.version:
        entry |= {"group": part.group, "version": part.version}
    return entry | {"kind": part.kind or row.kind, "verbs": list(part.verbs)}


@cache
def aggregated(legacy: bool, api_version: str) -> Json:
    """All of it in one document: core (`legacy`, at /api) or the other groups (at /apis)."""
    groups = ("",) if legacy else all_groups()
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": api_version,
        "metadata": {},
        "items": [_aggregated_group(group) for group in groups],
    }


def _aggregated_group(group: str) -> Json:
    versions = [
        {"version": version, "resources": _aggregated_resources(group, version), "freshness": "Current"}
        for version in group_versions(group)
    ]
    return {"metadata": {"name": group, "creationTimestamp": None}, "versions": versions}


def _aggregated_resources(group: str, version: str) -> list[Json]:
    resources = [_aggregated_row(row, version) for row in rows_of(group, version)]
    for review in REVIEWS:
        if review.group == group:
            kind = {"group": group, "version": version, "kind": review.kind}
            resources.append(
                _aggregated_entry("resource", review.plural, kind, ["create"])
                | {
                    "scope": "Namespaced" if review.namespaced else "Cluster",
                    "singularResource": review.kind.lower(),
                }
            )
    return sorted(resources, key=lambda entry: str(entry["resource"]))


def _aggregated_row(row: Row, version: str) -> Json:
    kind = {"group": row.group, "version": version, "kind": row.kind}
    entry = _aggregated_entry("resource", row.plural, kind, list(row.verbs))
    entry |= {"scope": "Namespaced" if row.namespaced else "Cluster", "singularResource": row.singular}
    if row.short_names:
        entry["shortNames"] = list(row.short_names)
    if row.categories:
        entry["categories"] = list(row.categories)
    if row.subresources:
        entry["subresources"] = [
            _aggregated_entry(
                "subresource",
                part.name,
                {"group": part.group, "version": part.version or "v1", "kind": part.kind} if part.kind else kind,
                list(part.verbs),
            )
            for part in row.subresources
        ]
    return entry


def _aggregated_entry(label: str, name: str, kind: Json, verbs: list[str]) -> Json:
    return {label: name, "responseKind": kind, "verbs": verbs}
