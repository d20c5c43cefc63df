"""Whether a request may proceed: nodes by the node authorizer, everybody by RBAC; the answer for those who may not.

`AccessControl` keeps what both need, roles and who runs what, in step with the store.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Final

import msgspec

from dray.api.errors import Forbidden
from dray.api.meta import RESOURCE_GROUP
from dray.apiserver.node_authorizer import NodeAuthorizer
from dray.apiserver.node_graph import NodeGraph
from dray.apiserver.rbac import Policy, RbacAuthorizer
from dray.apiserver.users import Attributes, Decision
from dray.store.errors import Compacted, SlowWatcher
from dray.store.interface import Store, Watch

RBAC_PREFIX: Final = "/registry/rbac.authorization.k8s.io/"
PODS_PREFIX: Final = "/registry/core/pods/"
SLICES_PREFIX: Final = f"/registry/{RESOURCE_GROUP}/resourceslices/"

_SANITIZED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class _SliceSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Slice(msgspec.Struct):
    """All that matters here of an object that can be big."""

    spec: _SliceSpec = msgspec.field(default_factory=_SliceSpec)


_read_slice: Final = msgspec.json.Decoder(_Slice).decode


class AccessControl:
    """The server's authorizer. Call `start` before asking it and `stop` when done."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.policy = Policy()
        self._graph = NodeGraph()
        self._authorizers = (NodeAuthorizer(self._graph), RbacAuthorizer(self.policy))
        self._followers: list[asyncio.Task[None]] = []

    def __call__(self, asked: Attributes) -> Decision:
        reasons = []
        for authorize in self._authorizers:
            decision = authorize(asked)
            if decision.allowed:
                return decision
            if decision.reason:
                reasons.append(decision.reason)
        return Decision(False, ", ".join(reasons))

    async def start(self) -> None:
        for prefix in (RBAC_PREFIX, PODS_PREFIX, SLICES_PREFIX):
            watch, keys = await self._load(prefix, frozenset())
            follower = asyncio.create_task(self._follow(prefix, watch, keys), name=f"access control {prefix}")
            self._followers.append(follower)

    @property
    def is_following(self) -> bool:
        """Whether decisions still follow what is stored."""
        return bool(self._followers) and not any(follower.done() for follower in self._followers)

    async def stop(self) -> None:
        for follower in self._followers:
            follower.cancel()
        await asyncio.gather(*self._followers, return_exceptions=True)
        self._followers.clear()

    async def _load(self, prefix: str, known: frozenset[str]) -> tuple[Watch, set[str]]:
        """Takes over everything below `prefix`, forgets what is gone of `known`, and watches from there."""
        result = await self._store.range(prefix)
        keys = {entry.key for entry in result.entries}
        for key in known - keys:
            self._note(key, None)
        for entry in result.entries:
            self._note(entry.key, entry.value)
        return await self._store.watch(prefix, result.revision), keys

    async def _follow(self, prefix: str, watch: Watch, keys: set[str]) -> None:
        while True:
            try:
                with closing(watch):
                    while changes := await watch.batch():
                        for change in changes:
                            self._note(change.key, change.value)
                            (keys.discard if change.deleted else keys.add)(change.key)
                return
            except (SlowWatcher, Compacted):
                watch, keys = await self._load(prefix, frozenset(keys))

    def _note(self, key: str, value: bytes | None) -> None:
        _, _, group, resource, *namespace, name = key.split("/")
        scope = namespace[0] if namespace else ""
        match group, resource:
            case "core", "pods":
                bound = value is not None and b'"nodeName":"' in value  # others aren't worth decoding
                self._graph.set_pod(scope, name, msgspec.json.decode(value) if value is not None and bound else None)
            case _, "resourceslices":
                self._graph.set_slice(name, "" if value is None else _read_slice(value).spec.node_name)
            case _:
                self.policy.note(resource, scope, name, None if value is None else msgspec.json.decode(value))


def forbidden(asked: Attributes, reason: str) -> Forbidden:
    """The 403 for a request that isn't allowed, worded as Kubernetes does."""
    message = _describe(asked).translate(_SANITIZED)
    if reason:
        message = f"{message}: {reason}"
    if not asked.is_resource_request:
        return Forbidden(f"forbidden: {message}", details={})
    resource = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    subject = f'{resource} "{asked.name}"' if asked.name else resource
    details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return Forbidden(
        f"{subject} is forbidden: {message}", details={field: value for field, value in details.items() if value}
    )


def _describe(asked: Attributes) -> str:
    if not asked.is_resource_request:
        return f'User "{asked.user.name}" cannot {asked.verb} path "{asked.path}"'
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    what = f'User "{asked.user.name}" cannot {asked.verb} resource "{resource}" in API group "{asked.group}"'
    return f'{what} in the namespace "{asked.namespace}"' if asked.namespace else f"{what} at the cluster scope"
