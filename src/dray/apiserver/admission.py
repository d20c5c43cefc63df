"""What every write must pass besides its kind's own rules: namespaces, node identities, quotas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from dray.api.features import FeatureGates
from dray.api.meta import Json
from dray.apiserver import refusals
from dray.apiserver.core_kinds import RBAC_GROUP
from dray.apiserver.node_authorizer import node_name
from dray.apiserver.node_restriction import NodeWrite, check_node_write
from dray.apiserver.quotas import Quotas
from dray.apiserver.records import decode_json
from dray.apiserver.resources import Row
from dray.apiserver.users import UserInfo
from dray.runtime.clock import Clock
from dray.store.errors import RevisionMismatch
from dray.store.interface import Compare, Entry, Operation, Store

_NAMESPACE_PREFIX: Final = "/registry/core/namespaces/"
PERMANENT_NAMESPACES: Final = ("default", "kube-system", "kube-public")
"""These can't be deleted."""


GrantCheck = Callable[[UserInfo, str, Json, Json | None], None]
"""Raises Forbidden if a write of a role or binding (by its plural name) gives away more than the user has."""


class Planned(NamedTuple):
    """A write that is ready to be committed: `old` and `new` are the object before and after, None if there is none."""

    row: Row
    namespace: str
    compare: Compare
    operation: Operation
    new: Json | None
    old: Json | None


class Admission:
    def __init__(self, store: Store, gates: FeatureGates, clock: Clock) -> None:
        self._store = store
        self.check_grant: GrantCheck | None = None
        self._quotas = Quotas(store, gates, clock)
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
        if node_name(user) is None:
            return
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

    async def commit(self, change: Planned, *, dry_run: bool) -> int:
        """Commits a change together with what it costs; returns the revision, 0 for a dry run.

        Raises RevisionMismatch if the object isn't as expected, Forbidden if a quota is used up.
        """
        namespace = change.namespace
        if not change.row.namespaced or not await self._quotas.has_quotas(namespace):
            if dry_run:
                return 0
            return (await self._store.commit((change.compare,), (change.operation,))).revision
        async with self._quotas.turn(namespace):
            seen: dict[str, Entry | None] = {}
            while True:
                compares, charges = await self._quotas.charge(change.row, namespace, change.new, change.old, seen)
                if dry_run:
                    return 0
                try:
                    committed = await self._store.commit((change.compare, *compares), (change.operation, *charges))
                except RevisionMismatch as error:
                    if error.key == change.compare.key:
                        raise
                    seen[error.key] = error.current  # the quota itself was changed meanwhile
                    continue
                return committed.revision
