"""Every change of pods and claims, in the order in which they happened, judged one by one.

A look at a cluster now and then misses what was wrong for a moment. The watches miss nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from dray.api.errors import Expired, StatusError
from dray.api.meta import Json
from dray.api.resources import PODS, RESOURCE_CLAIMS, Resource
from dray.runtime.client import Client, EventType

FINISHED = ("Succeeded", "Failed")
RESOURCES = (PODS, RESOURCE_CLAIMS)


class Change(NamedTuple):
    revision: int
    resource: Resource
    name: str
    obj: Json | None
    """None: deleted."""


class History:
    """Of one namespace, from the moment on when `recording` starts."""

    def __init__(self, namespace: str = "default") -> None:
        self._namespace = namespace
        self._changes: list[Change] = []

    @asynccontextmanager
    async def recording(self, client: Client) -> AsyncIterator[None]:
        """The server may be away now and then, for less than it remembers."""
        revisions = [(await client.list(each, self._namespace))["metadata"]["resourceVersion"] for each in RESOURCES]
        tasks = [
            asyncio.create_task(self._follow(client, resource, revision))
            for resource, revision in zip(RESOURCES, revisions, strict=True)
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:  # a recorder that ended has recorded nothing since
            if isinstance(result, Exception):
                raise result

    def has_seen(self, resource: Resource, name: str) -> bool:
        return any(change.resource is resource and change.name == name for change in self._changes)

    @property
    def bound_pods(self) -> set[str]:
        """UIDs of all pods that ever had a node."""
        pods = (change.obj for change in self._changes if change.resource is PODS and change.obj is not None)
        return {pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName")}

    async def _follow(self, client: Client, resource: Resource, revision: str) -> None:
        while True:
            try:
                async with client.watch(resource, self._namespace, resource_version=revision) as events:
                    async for event in events:
                        metadata = event.object["metadata"]
                        revision = metadata["resourceVersion"]
                        if event.type is not EventType.BOOKMARK:
                            obj = None if event.type is EventType.DELETED else event.object
                            self._changes.append(Change(int(revision), resource, metadata["name"], obj))
            except Expired:
                raise
            except StatusError:
                await asyncio.sleep(0.05)

    def find_lapses(self) -> list[str]:
        """What was wrong at any moment, with the revision at which it began."""
        pods: dict[str, Json] = {}
        claims: dict[str, Json] = {}
        lapses: dict[str, int] = {}
        for change in sorted(self._changes, key=lambda change: change.revision):
            objects = pods if change.resource is PODS else claims
            if change.obj is None:
                objects.pop(change.name, None)
            else:
                objects[change.name] = change.obj
            for lapse in (*_double_use(pods, claims), *_bound_without_claims(pods, claims)):
                lapses.setdefault(lapse, change.revision)
        return [f"at revision {revision}: {lapse}" for lapse, revision in lapses.items()]

    def format(self, *words: str) -> str:
        """One line for each change of an object whose name occurs in one of the words; all without any."""
        return "\n".join(
            f"{change.revision} {describe(change.name, change.obj)}"
            for change in sorted(self._changes, key=lambda change: change.revision)
            if not words or any(change.name in word for word in words)
        )


def describe(name: str, obj: Json | None) -> str:
    """What matters of a pod or a claim, in a line."""
    if obj is None:
        return f"{name} is gone"
    metadata, spec, status = obj["metadata"], obj.get("spec", {}), obj.get("status", {})
    said = [f"{name} {metadata['uid'][:8]} at {metadata['resourceVersion']}"]
    if "deletionTimestamp" in metadata:
        said.append("being deleted")
    if "containers" in spec:
        said.append(f"{status.get('phase')} on {spec.get('nodeName') or 'no node'}")
        said.append(f"claims {_claims_of(obj)}")
        said.extend(
            f"{each['type']}={each['status']} {each.get('message', '')}" for each in status.get("conditions", ())
        )
    else:
        said.append(f"devices {sorted(_devices(obj))}")
        said.append(f"for {[(user['name'], user['uid'][:8]) for user in status.get('reservedFor', ())]}")
        said.append(f"finalizers {metadata.get('finalizers', [])}")
    return ", ".join(said)


def _double_use(pods: dict[str, Json], claims: dict[str, Json]) -> Iterator[str]:
    """No device is in the hands of two pods that have a node, through different claims."""
    bound = {pod["metadata"]["uid"] for pod in pods.values() if pod["spec"].get("nodeName")}
    holders: dict[str, str] = {}
    for name, claim in claims.items():
        if not any(user["uid"] in bound for user in claim.get("status", {}).get("reservedFor", ())):
            continue
        for device in _devices(claim):
            if (other := holders.setdefault(device, name)) != name:
                yield f"{device} is used through {other} and {name}"


def _bound_without_claims(pods: dict[str, Json], claims: dict[str, Json]) -> Iterator[str]:
    """Who has a node, and isn't done, has all of its claims."""
    for name, pod in pods.items():
        if not pod["spec"].get("nodeName") or pod.get("status", {}).get("phase") in FINISHED:
            continue
        if len(_claims_of(pod)) < len(pod["spec"].get("resourceClaims", ())):
            yield f"pod {name} is bound, and not all of its claims are made"
        for key in _claims_of(pod):
            status = claims.get(key, {}).get("status", {})
            if "allocation" not in status:
                yield f"pod {name} is bound, and its claim {key} is not allocated"
            elif all(user["uid"] != pod["metadata"]["uid"] for user in status.get("reservedFor", ())):
                yield f"pod {name} is bound, and its claim {key} is not reserved for it"


def _claims_of(pod: Json) -> list[str]:
    """The names of the claims that exist as far as the pod knows."""
    made = {each["name"]: each.get("resourceClaimName") for each in pod["status"].get("resourceClaimStatuses", ())}
    names = [each.get("resourceClaimName") or made.get(each["name"]) for each in pod["spec"].get("resourceClaims", ())]
    return [name for name in names if name]


def _devices(claim: Json) -> list[str]:
    allocation = claim.get("status", {}).get("allocation") or {"devices": {}}
    return [f"{one['driver']}/{one['pool']}/{one['device']}" for one in allocation["devices"].get("results", ())]
