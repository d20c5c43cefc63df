"""ServiceAccounts."""

from __future__ import annotations

from dray.api.events import ObjectReference
from dray.api.meta import ApiStruct, Json
from dray.api.views import ViewMeta, view_as


class ServiceAccount(ApiStruct, frozen=True):
    metadata: ViewMeta = ViewMeta()
    secrets: tuple[ObjectReference, ...] = ()
    automount_service_account_token: bool | None = None


def view_service_account(obj: Json) -> ServiceAccount:
    """Raises InvalidView."""
    return view_as(obj, ServiceAccount)
