"""Namespaces as admission and the controllers read them."""

from __future__ import annotations

from dray.api.claims import ADMIN_ACCESS_LABEL
from dray.api.meta import ApiStruct, Json
from dray.api.views import ViewCondition, ViewMeta, view_as


class NamespaceSpec(ApiStruct, frozen=True):
    finalizers: tuple[str, ...] = ()


class NamespaceStatus(ApiStruct, frozen=True):
    phase: str = ""
    conditions: tuple[ViewCondition, ...] = ()


class Namespace(ApiStruct, frozen=True):
    metadata: ViewMeta = ViewMeta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()

    @property
    def allows_admin_access(self) -> bool:
        """Whether claims in it may ask for devices that others use."""
        return self.metadata.labels.get(ADMIN_ACCESS_LABEL) == "true"


def view_namespace(obj: Json) -> Namespace:
    """Raises InvalidView."""
    return view_as(obj, Namespace)
