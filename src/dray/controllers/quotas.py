"""Counts what a ResourceQuota limits: when it is made, when its limits change, and now and then.

In between, `dray apiserver` keeps the totals itself, in the commits that change them. So a count must not be older than
the quota that it is written to: the quota is read first, then everything is listed anew, and the write insists on the
quota's revision. Who created something meanwhile changed that revision.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dray.api.claims import ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.codec import decode_as
from dray.api.errors import NotFound
from dray.api.meta import Json, ObjectKey
from dray.api.pods import view_pod
from dray.api.quantities import Quantity
from dray.api.resourcequotas import ResourceQuota, view_resource_quota
from dray.api.resources import (
    DEVICE_CLASSES,
    OWNABLE_RESOURCES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    Resource,
)
from dray.api.views import ResourceList
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue
from dray.validation.quota import EXTENDED_RESOURCE_CLAIM_ANNOTATION, extended_resources
from dray.validation.usage import ClaimWorld, is_counted, object_usage, quota_covers

SECOND_LOOK: Final = 1.0
"""Seconds after a first count: creates that were judged before the quota was there are stored by then."""

RECOUNT: Final = 300.0
_PAGE: Final = 500


class QuotaController:
    def __init__(self, client: Client, clock: Clock, quotas: Informer[Json], queue: WorkQueue[ObjectKey]) -> None:
        self._client = client
        self._clock = clock

        def quota_changed(old: Json | None, new: Json | None) -> None:
            if new is not None and (old is None or old["spec"] != new["spec"]):
                queue.add(ObjectKey(new["metadata"]["namespace"], new["metadata"]["name"]))

        quotas.add_handler(quota_changed)

    async def reconcile(self, key: ObjectKey) -> float | None:
        try:
            quota = await self._client.get(RESOURCE_QUOTAS, key.name, key.namespace)
        except NotFound:
            return None
        view = view_resource_quota(quota)
        used = await self._count(view, key.namespace)
        status = {
            "hard": {name: str(amount) for name, amount in view.spec.hard.items()},
            "used": {name: str(amount) for name, amount in used.items()},
        }
        if quota.get("status") == status:
            return RECOUNT
        await self._client.update(RESOURCE_QUOTAS, {**quota, "status": status}, subresource="status")
        return SECOND_LOOK

    async def _count(self, quota: ResourceQuota, namespace: str) -> ResourceList:
        names = quota.spec.hard
        total = dict.fromkeys(names, Quantity.ZERO)
        world = await self._world(names, namespace)
        for resource in OWNABLE_RESOURCES:
            if not resource.namespaced or not is_counted(resource, names):
                continue
            for obj in await self._list(resource, namespace):
                if not quota_covers(quota, resource, obj):
                    continue
                for name, amount in object_usage(resource, obj, world).items():
                    if name in total:
                        total[name] += amount
        return total

    async def _world(self, names: Iterable[str], namespace: str) -> ClaimWorld:
        """Classes and pods matter only to quotas on extended resources."""
        if not any(name.startswith("requests.") and "/" in name for name in names):
            return ClaimWorld(self._clock.now(), {})
        classes = [decode_as(DeviceClass, obj) for obj in await self._list(DEVICE_CLASSES, "")]
        pods = {obj["metadata"]["name"]: obj for obj in await self._list(PODS, namespace)}
        claims = [decode_as(ResourceClaim, obj) for obj in await self._list(RESOURCE_CLAIMS, namespace)]
        made = [
            claim for claim in claims if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true"
        ]
        return ClaimWorld(
            self._clock.now(),
            extended_resources(classes),
            lambda _, name: view_pod(pods[name]) if name in pods else None,
            lambda _, uid: [
                claim for claim in made if any(owner.uid == uid for owner in claim.metadata.owner_references)
            ],
        )

    async def _list(self, resource: Resource, namespace: str) -> list[Json]:
        objects: list[Json] = []
        token = ""
        while True:
            page = await self._client.list(resource, namespace, limit=_PAGE, continue_token=token)
            objects += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return objects
