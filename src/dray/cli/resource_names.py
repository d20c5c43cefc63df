"""From what people type (`claims`, `po`, `resourceclaims.resource.k8s.io`) to the resource that they mean."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from dray.api.errors import StatusError
from dray.api.meta import Json
from dray.api.resources import (
    CONFIG_MAPS,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from dray.runtime.http_client import HttpClient

_KNOWN: Final = {
    RESOURCE_CLAIMS: ("claim", "claims"),
    RESOURCE_CLAIM_TEMPLATES: ("claimtemplate", "claimtemplates"),
    RESOURCE_SLICES: ("slice", "slices"),
    DEVICE_CLASSES: ("class", "classes"),
    DEVICE_TAINT_RULES: ("taintrule", "taintrules"),
    NAMESPACES: ("ns",),
    NODES: ("no",),
    PODS: ("po",),
    EVENTS: ("ev",),
    CONFIG_MAPS: ("cm",),
    SECRETS: (),
    SERVICE_ACCOUNTS: ("sa",),
    RESOURCE_QUOTAS: ("quota",),
    JOBS: (),
    LEASES: (),
}
"""Every cluster that DRA runs on has these, so nobody need be asked. With short names, some of them our own."""


class UnknownResource(Exception):
    """The cluster has nothing of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f'the server doesn\'t have a resource type "{name}"')


class _Entry(NamedTuple):
    resource: Resource
    names: frozenset[str]


class ResourceNames:
    """Asks the server for what it serves only if a name isn't one of the usual."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._entries = [_entry(resource, short) for resource, short in _KNOWN.items()]
        self._asked = False

    async def find(self, name: str) -> Resource:
        """By plural, singular, kind or short name, maybe with `.group` or `.version.group`. Raises UnknownResource."""
        found = self._lookup(name.lower())
        if found is None and not self._asked:
            self._asked = True
            self._entries += await self._discover()
            found = self._lookup(name.lower())
        if found is None:
            raise UnknownResource(name)
        return found

    async def find_kind(self, api_version: str, kind: str) -> Resource:
        """The resource that a manifest's object belongs to. Raises UnknownResource."""
        for known in self._entries:
            if (known.resource.api_version, known.resource.kind) == (api_version, kind):
                return known.resource
        group, _, version = api_version.rpartition("/")
        for entry in await self._group_version(group, version):
            if entry.resource.kind == kind:
                self._entries.append(entry)
                return entry.resource
        raise UnknownResource(f"{kind} of {api_version}" if api_version else kind)

    def _lookup(self, name: str) -> Resource | None:
        plain, _, group = name.partition(".")
        for entry in self._entries:
            resource = entry.resource
            if plain not in entry.names:
                continue
            if not group or group in (resource.group, f"{resource.version}.{resource.group}", resource.version):
                return resource
        return None

    async def _discover(self) -> list[_Entry]:
        groups = (await self._client.get_raw("/apis")).get("groups") or ()
        preferred = [("", "v1")]
        for group in groups:
            versions = [item["version"] for item in group["versions"]]
            first = group.get("preferredVersion", {}).get("version")
            preferred += [(group["name"], version) for version in sorted(versions, key=lambda v: v != first)]
        found = await asyncio.gather(*(self._group_version(*pair) for pair in preferred))
        return [entry for entries in found for entry in entries]

    async def _group_version(self, group: str, version: str) -> list[_Entry]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            listed: Iterable[Json] = (await self._client.get_raw(path)).get("resources") or ()
        except StatusError:  # a broken extension must not hide the rest
            return []
        return [
            _entry(
                Resource(group, version, item["name"], item["kind"], item["namespaced"]), item.get("shortNames") or ()
            )
            for item in listed
            if "/" not in item["name"]
        ]


def _entry(resource: Resource, short: Iterable[str]) -> _Entry:
    return _Entry(resource, frozenset({resource.plural, resource.kind.lower(), *short}))
