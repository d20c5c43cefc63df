"""What every write must pass besides its kind's own rules: namespaces, node identities, quotas."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from dray.api.features import FeatureGates
from dray.api.meta import Json
from dray.apiserver import refusals
from dray.apiserver.core_kinds import RBAC_GROUP
from dray.apiserver.node_restriction import NodeWrite, check_node_write
from dray.apiserver.quotas import Charge, Quotas
from dray.apiserver.records import decode_json
from dray.apiserver.resources import Row
from dray.apiserver.users import UserInfo
from dray.runtime.clock import Clock
from dray.store.interface import Entry, Store

_NAMESPACE_PREFIX: Final = "/registry/core/namespaces/"
PERMANENT_NAMESPACES: Final = ("default", "kube-system", "kube-public")
"""These can't be deleted."""


GrantCheck = Callable[[UserInfo, str, Json, Json | None], None]
"""Raises Forbidden if a write of a role or binding (by its plural name) gives away more than the user has."""


class Admission:
    def __init__(self, store: Store, gates: FeatureGates, clock: Clock) -> None:
        self._store = store
        self.check_grant: GrantCheck | None = None
        self.quotas = Quotas(store, gates, clock)
        self._namespaces: dict[str, tuple[int, Json]] = {}

    async def check_namespace(self, row: Row, namespace: str, name: str) -> dict[str, str]:
        """Something is about to be created there. Returns the namespace's labels; raises NotFound, Forbidden."""
        if not row.namespaced:
            return {}
        found = await self._namespace(namespace)
        if found is None:
            raise refusals.namespace_not_found(namespace)
        if found.get("status", {}).get("phase") == "Terminating":
            raise refusals.namespace_terminating(row, name, namespace)
        labels: dict[str, str] = found["metadata"].get("labels", {})
        return labels

    async def namespace_labels(self, row: Row, namespace: str) -> dict[str, str]:
        found = await self._namespace(namespace) if row.namespaced else None
        labels: dict[str, str] = {} if found is None else found["metadata"].get("labels", {})
        return labels

    async def _namespace(self, name: str) -> Json | None:
        """Every write asks, so what was decoded is kept as long as it is current."""
        entry = await self._store.get(_NAMESPACE_PREFIX + name)
        if entry is None:
            self._namespaces.pop(name, None)
            return None
        known = self._namespaces.get(name)
        if known is None or known[0] != entry.mod_revision:
            known = self._namespaces[name] = (entry.mod_revision, decode_json(entry.value))
        return known[1]

    def check(self, row: Row, verb: str, user: UserInfo, subresource: str, new: Json | None, old: Json | None) -> None:
        """Raises Forbidden if a node oversteps, or something permanent is to go."""
        subject = new or old or {}
        metadata = subject.get("metadata", {})
        name = metadata.get("name", "")
        if verb == "delete" and row.kind == "Namespace" and name in PERMANENT_NAMESPACES:
            raise refusals.forbidden(row, name, "this namespace may not be deleted")
        if row.group == RBAC_GROUP and new is not None and self.check_grant is not None:
            self.check_grant(user, row.plural, new, old)
        check_node_write(
            NodeWrite(
                user=user,
                verb=verb,
                group=row.group,
                resource=row.plural,
                subresource=subresource,
                namespace=metadata.get("namespace", ""),
                name=name,
                new=new,
                old=old,
            )
        )

    def turn(self, namespace: str) -> AbstractAsyncContextManager[None]:
        """Held around `charge` and the commit that carries the charge."""
        return self.quotas.turn(namespace)

    async def charge(
        self, row: Row, namespace: str, new: Json | None, old: Json | None, seen: dict[str, Entry | None]
    ) -> Charge:
        if not row.namespaced:
            return [], []
        return await self.quotas.charge(row, namespace, new, old, seen)
