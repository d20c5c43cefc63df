"""ResourceQuotas as admission and the quota controller read them."""

from __future__ import annotations

from dray.api.meta import ApiStruct, Json
from dray.api.views import ResourceList, ViewMeta, view_as


class ScopedResourceSelectorRequirement(ApiStruct, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(ApiStruct, frozen=True):
    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(ApiStruct, frozen=True):
    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(ApiStruct, frozen=True):
    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(ApiStruct, frozen=True):
    metadata: ViewMeta = ViewMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


def view_resource_quota(obj: Json) -> ResourceQuota:
    """Raises InvalidView."""
    return view_as(obj, ResourceQuota)
