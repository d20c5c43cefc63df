"""ResourceQuota admission: usage is written in the same commit as the object that uses it.

`status.used` is a running total: every commit that changes usage writes the new total, too, on condition that the
quota is still the one that was read; so two creates can't both take the last device. Writers of a namespace with quotas
take turns, since they would only make each other start over.

A new quota has no total yet. The first create that it is about counts what there is, and holds the edge from then on.
A namespace that was beyond the edge already isn't blocked, as in Kubernetes, until the quota controller has counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from dray.api.claims import ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.codec import decode_as
from dray.api.features import FeatureGates
from dray.api.meta import RESOURCE_GROUP, Json
from dray.api.pods import Pod, view_pod
from dray.api.quantities import Quantity
from dray.api.resourcequotas import ResourceQuota, ResourceQuotaStatus, view_resource_quota
from dray.api.views import ResourceList
from dray.apiserver import refusals
from dray.apiserver.records import decode_stored, encode_stored
from dray.apiserver.resources import ROWS, Row
from dray.runtime.clock import Clock
from dray.store.interface import Compare, Entry, Operation, Put, Store
from dray.validation.quota import EXTENDED_RESOURCE_CLAIM_ANNOTATION, extended_resources
from dray.validation.usage import ClaimWorld, is_counted, object_usage, quota_covers, unstated_amounts

_QUOTA_PREFIX: Final = "/registry/core/resourcequotas/"
_CLASS_PREFIX: Final = f"/registry/{RESOURCE_GROUP}/deviceclasses/"
_CLAIM_PREFIX: Final = f"/registry/{RESOURCE_GROUP}/resourceclaims/"
_POD_PREFIX: Final = "/registry/core/pods/"

Charge = tuple[list[Compare], list[Operation]]


class _Stored(NamedTuple):
    entry: Entry
    obj: Json
    view: ResourceQuota


class Quotas:
    def __init__(self, store: Store, gates: FeatureGates, clock: Clock) -> None:
        self._store = store
        self._gates = gates
        self._clock = clock
        self._turns: dict[str, asyncio.Lock] = {}

    async def has_quotas(self, namespace: str) -> bool:
        return await self._store.has(f"{_QUOTA_PREFIX}{namespace}/")

    def turn(self, namespace: str) -> asyncio.Lock:
        """Held around a charge and its commit."""
        return self._turns.setdefault(namespace, asyncio.Lock())

    async def charge(
        self, row: Row, namespace: str, new: Json | None, old: Json | None, seen: dict[str, Entry | None]
    ) -> Charge:
        """What to add to the commit that turns `old` into `new`. Raises Forbidden if a quota doesn't allow it.

        `seen` holds entries that are newer than what the store shows, learnt from a failed commit.
        """
        compares: list[Compare] = []
        operations: list[Operation] = []
        if row.kind == "ResourceQuota" and old is not None:
            return compares, operations
        for stored in await self._quotas(namespace, seen):
            quota = stored.view
            if not quota.status.hard:
                if not is_counted(row.resource(row.storage_version), quota.spec.hard):
                    continue
                quota = await self._counted(quota, namespace)
                if any(amount > quota.status.hard[name] for name, amount in quota.status.used.items()):
                    continue
            if old is None and new is not None:
                self._check_stated(quota, row, new)
            delta = await self._delta(quota, row, new, old)
            if not delta:
                continue
            self._check(quota, delta, row, new)
            used = quota.status.used
            total = {name: used[name] + delta.get(name, Quantity.ZERO) for name in used}
            compares.append(Compare(stored.entry.key, stored.entry.mod_revision))
            operations.append(Put(stored.entry.key, _with_status(stored.obj, quota.status.hard, total)))
        return compares, operations

    async def _counted(self, quota: ResourceQuota, namespace: str) -> ResourceQuota:
        """A new quota with a count of all that there is."""
        hard = quota.spec.hard
        used = dict.fromkeys(hard, Quantity.ZERO)
        for row in ROWS:
            resource = row.resource(row.storage_version)
            if not row.namespaced or row.stored_as or not is_counted(resource, hard):
                continue
            for entry in (await self._store.range(row.range_prefix(namespace))).entries:
                obj = decode_stored(entry.value, entry.mod_revision)
                for name, amount in self._usage(quota, row, obj, await self._world(hard, obj)).items():
                    if name in used:
                        used[name] += amount
        return replace(quota, status=ResourceQuotaStatus(hard=hard, used=used))

    async def _quotas(self, namespace: str, seen: dict[str, Entry | None]) -> list[_Stored]:
        entries = (await self._store.range(f"{_QUOTA_PREFIX}{namespace}/")).entries
        known = {entry.key: entry for entry in entries}
        for key, entry in seen.items():
            if entry is None:
                known.pop(key, None)
            elif key.startswith(_QUOTA_PREFIX):
                known[key] = entry
        return [_read(entry) for entry in known.values()]

    async def _delta(self, quota: ResourceQuota, row: Row, new: Json | None, old: Json | None) -> ResourceList:
        names = quota.status.hard
        if not names:
            return {}
        world = await self._world(names, new or old or {})
        before, after = (self._usage(quota, row, obj, world) for obj in (old, new))
        return {
            name: after.get(name, Quantity.ZERO) - before.get(name, Quantity.ZERO)
            for name in names
            if after.get(name, Quantity.ZERO) != before.get(name, Quantity.ZERO)
        }

    def _usage(self, quota: ResourceQuota, row: Row, obj: Json | None, world: ClaimWorld) -> ResourceList:
        resource = row.resource(row.storage_version)
        if obj is None or not quota_covers(quota, resource, obj):
            return {}
        return object_usage(resource, obj, world)

    def _check_stated(self, quota: ResourceQuota, row: Row, new: Json) -> None:
        """A pod must say how much it wants of what is limited."""
        resource = row.resource(row.storage_version)
        if not quota_covers(quota, resource, new):
            return
        unstated = unstated_amounts(quota.status.hard, resource, new)
        if unstated:
            said = "; ".join(f"{name} for: {','.join(who)}" for name, who in sorted(unstated.items()))
            text = f"failed quota: {quota.metadata.name}: must specify {said}"
            raise refusals.forbidden(row, new["metadata"].get("name", ""), text)

    def _check(self, quota: ResourceQuota, delta: ResourceList, row: Row, new: Json | None) -> None:
        hard, used = quota.status.hard, quota.status.used
        name = (new or {}).get("metadata", {}).get("name", "")
        title = quota.metadata.name
        unknown = sorted(resource for resource in delta if resource not in used)
        if unknown:
            raise refusals.forbidden(row, name, f"status unknown for quota: {title}, resources: {','.join(unknown)}")
        exceeded = sorted(
            resource
            for resource, amount in delta.items()
            if amount > Quantity.ZERO and used[resource] + amount > hard[resource]
        )
        if exceeded:
            said = ", ".join(
                f"{what}: {','.join(f'{resource}={amounts[resource]}' for resource in exceeded)}"
                for what, amounts in (("requested", delta), ("used", used), ("limited", hard))
            )
            raise refusals.forbidden(row, name, f"exceeded quota: {title}, {said}")

    async def _world(self, names: Iterable[str], obj: Json) -> ClaimWorld:
        """Classes and pods matter only to quotas on extended resources."""
        pods: dict[tuple[str, str], Pod] = {}
        claims: list[ResourceClaim] = []
        classes: list[DeviceClass] = []
        if any(name.startswith("requests.") and "/" in name for name in names):
            entries = (await self._store.range(_CLASS_PREFIX)).entries
            classes = [decode_as(DeviceClass, entry.value) for entry in entries]
        metadata = obj.get("metadata", {})
        if metadata.get("annotations", {}).get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true":
            namespace = metadata.get("namespace", "")
            for owner in metadata.get("ownerReferences") or ():
                entry = await self._store.get(f"{_POD_PREFIX}{namespace}/{owner.get('name', '')}")
                if entry is not None:
                    pods[(namespace, owner["name"])] = view_pod(decode_stored(entry.value, 0))
            entries = (await self._store.range(f"{_CLAIM_PREFIX}{namespace}/")).entries
            claims = [decode_as(ResourceClaim, entry.value) for entry in entries]

        def owned(namespace: str, uid: str) -> list[ResourceClaim]:
            return [
                claim
                for claim in claims
                if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true"
                and any(owner.uid == uid for owner in claim.metadata.owner_references)
            ]

        return ClaimWorld(
            self._clock.now(),
            extended_resources(classes),
            lambda namespace, name: pods.get((namespace, name)),
            owned,
            self._gates,
        )


def _read(entry: Entry) -> _Stored:
    obj = decode_stored(entry.value, entry.mod_revision)
    return _Stored(entry, obj, view_resource_quota(obj))


def _with_status(obj: Json, hard: ResourceList, used: ResourceList) -> bytes:
    status = {
        "hard": {name: str(amount) for name, amount in hard.items()},
        "used": {name: str(amount) for name, amount in used.items()},
    }
    return encode_stored({**obj, "status": status}, "ResourceQuota", "v1")
