"""Leases: who leads, and which nodes are alive."""

from __future__ import annotations

from dray.api.meta import ApiStruct, Json
from dray.api.views import ViewMeta, view_as


class LeaseSpec(ApiStruct, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(ApiStruct, frozen=True):
    metadata: ViewMeta = ViewMeta()
    spec: LeaseSpec = LeaseSpec()


def view_lease(obj: Json) -> Lease:
    """Raises InvalidView."""
    return view_as(obj, Lease)
