"""ResourceQuota admission: usage is written in the same commit as the object that uses it.

The quota's `status.used` is a running total. Every commit that changes usage also writes the new total, on condition
that the quota is still the one that was read; so two creates can't both take the last device. Writers of a namespace
with quotas take turns, since they would only make each other start over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from dray.api.claims import ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.codec import decode_as
from dray.api.features import FeatureGates
from dray.api.meta import RESOURCE_GROUP, Json
from dray.api.pods import Pod, view_pod
from dray.api.quantities import Quantity
from dray.api.resourcequotas import ResourceQuota, view_resource_quota
from dray.api.views import ResourceList
from dray.apiserver import refusals
from dray.apiserver.records import decode_stored, encode_stored
from dray.apiserver.resources import ROWS, Row, find_row
from dray.apiserver.usage import ClaimWorld, missing_amounts, quota_covers, usage_of
from dray.runtime.clock import Clock
from dray.store.errors import RevisionMismatch
from dray.store.interface import Compare, Entry, Operation, Put, Store
from dray.validation.quota import EXTENDED_RESOURCE_CLAIM_ANNOTATION, extended_resources

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
        if not namespace:
            return False
        return bool((await self._store.range(f"{_QUOTA_PREFIX}{namespace}/", limit=1)).entries)

    @asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        """Held around a charge and its commit; free of charge where there are no quotas."""
        if not await self.has_quotas(namespace):
            yield
            return
        lock = self._turns.setdefault(namespace, asyncio.Lock())
        async with lock:
            yield

    async def charge(
        self, row: Row, namespace: str, new: Json | None, old: Json | None, seen: dict[str, Entry | None]
    ) -> Charge:
        """What to add to the commit that turns `old` into `new`. Raises Forbidden if a quota doesn't allow it.

        `seen` holds entries that are newer than what the store shows, learnt from a failed commit.
        """
        if not await self.has_quotas(namespace) or (row.kind == "ResourceQuota" and old is not None):
            return [], []
        compares: list[Compare] = []
        operations: list[Operation] = []
        for quota in await self._quotas(namespace, seen):
            names = quota.view.spec.hard
            world = await self._world(names, new or old or {})
            before = self._counted(quota.view, row, old, world)
            after = self._counted(quota.view, row, new, world)
            delta = {
                name: after.get(name, Quantity.ZERO) - before.get(name, Quantity.ZERO)
                for name in names
                if after.get(name, Quantity.ZERO) != before.get(name, Quantity.ZERO)
            }
            if old is None and new is not None and quota_covers(quota.view, row, new):
                self._check_stated(quota.view, row, new)
            if not delta:
                continue
            used = await self._used(quota, namespace)
            self._check_limits(quota.view, used, delta, row, new)
            total = {name: used[name] + delta.get(name, Quantity.ZERO) for name in names}
            compares.append(Compare(quota.entry.key, quota.entry.mod_revision))
            operations.append(Put(quota.entry.key, _with_status(quota, total)))
        return compares, operations

    async def recalculate(self, namespace: str, name: str) -> None:
        """Count everything there is, after a quota was made or changed."""
        key = f"{_QUOTA_PREFIX}{namespace}/{name}"
        async with self.turn(namespace):
            # Twice: creates that were judged before the quota was visible are committed before the first write is,
            # so the second count sees them.
            for _ in range(2):
                entry = await self._store.get(key)
                if entry is None:
                    return
                quota = _read(entry)
                total = await self._count(quota.view, namespace)
                value = _with_status(quota, total)
                if value == entry.value:
                    continue
                try:
                    await self._store.put(key, value, expected=entry.mod_revision)
                except RevisionMismatch:  # someone changed the quota, and counts anew
                    return

    async def _quotas(self, namespace: str, seen: dict[str, Entry | None]) -> list[_Stored]:
        entries = (await self._store.range(f"{_QUOTA_PREFIX}{namespace}/")).entries
        known = {entry.key: entry for entry in entries}
        for key, entry in seen.items():
            if entry is None:
                known.pop(key, None)
            elif key.startswith(_QUOTA_PREFIX):
                known[key] = entry
        return [_read(entry) for entry in known.values()]

    def _counted(self, quota: ResourceQuota, row: Row, obj: Json | None, world: ClaimWorld) -> ResourceList:
        if obj is None or not quota_covers(quota, row, obj):
            return {}
        return usage_of(row, obj, world)

    def _check_stated(self, quota: ResourceQuota, row: Row, obj: Json) -> None:
        missing = missing_amounts(quota.spec.hard, row, obj)
        if missing:
            said = "; ".join(f"{name} for: {','.join(who)}" for name, who in sorted(missing.items()))
            text = f"failed quota: {quota.metadata.name}: must specify {said}"
            raise refusals.forbidden(row, obj["metadata"].get("name", ""), text)

    def _check_limits(
        self, quota: ResourceQuota, used: ResourceList, delta: ResourceList, row: Row, new: Json | None
    ) -> None:
        hard = quota.spec.hard
        exceeded = sorted(
            name for name, amount in delta.items() if amount > Quantity.ZERO and used[name] + amount > hard[name]
        )
        if exceeded:
            parts = (
                ("requested", delta),
                ("used", used),
                ("limited", hard),
            )
            said = ", ".join(f"{what}: {_listed(amounts, exceeded)}" for what, amounts in parts)
            name = (new or {}).get("metadata", {}).get("name", "")
            raise refusals.forbidden(row, name, f"exceeded quota: {quota.metadata.name}, {said}")

    async def _used(self, quota: _Stored, namespace: str) -> ResourceList:
        used = quota.view.status.used
        if all(name in used for name in quota.view.spec.hard):
            return used
        return await self._count(quota.view, namespace)

    async def _count(self, quota: ResourceQuota, namespace: str) -> ResourceList:
        total = dict.fromkeys(quota.spec.hard, Quantity.ZERO)
        for row in _counted_rows(quota.spec.hard):
            for entry in (await self._store.range(row.range_prefix(namespace))).entries:
                obj = decode_stored(entry.value, entry.mod_revision)
                world = await self._world(quota.spec.hard, obj)
                for name, amount in self._counted(quota, row, obj, world).items():
                    if name in total:
                        total[name] += amount
        return total

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
            for entry in (await self._store.range(f"{_CLAIM_PREFIX}{namespace}/")).entries:
                claims.append(decode_as(ResourceClaim, entry.value))

        def owned(namespace: str, uid: str) -> list[ResourceClaim]:
            return [
                claim
                for claim in claims
                if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true"
                and any(owner.uid == uid for owner in claim.metadata.owner_references)
            ]

        return ClaimWorld(
            extended_resources(classes),
            lambda namespace, name: pods.get((namespace, name)),
            owned,
            self._clock.now(),
            self._gates,
        )


def _read(entry: Entry) -> _Stored:
    obj = decode_stored(entry.value, entry.mod_revision)
    return _Stored(entry, obj, view_resource_quota(obj))


def _with_status(quota: _Stored, used: ResourceList) -> bytes:
    hard = {name: str(amount) for name, amount in quota.view.spec.hard.items()}
    status: Json = {"hard": hard, "used": {name: str(used[name]) for name in hard}}
    row = find_row("", "v1", "resourcequotas")
    assert row is not None
    return encode_stored({**quota.obj, "status": status}, row.kind, row.storage_api_version)


def _counted_rows(names: Iterable[str]) -> list[Row]:
    """The resources that a quota with these names counts."""
    rows = []
    for row in ROWS:
        if not row.namespaced or row.stored_as:
            continue
        own = {f"count/{row.group_resource}", row.plural if not row.group else ""}
        broad = row.kind in ("Pod", "ResourceClaim")
        if any(name in own or (broad and not name.startswith("count/")) for name in names):
            rows.append(row)
    return rows


def _listed(amounts: ResourceList, names: list[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names)
