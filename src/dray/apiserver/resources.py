"""The table of resources. Everything the server knows of a kind hangs on its row; adding a kind is adding a row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dray.api.meta import RESOURCE_GROUP
from dray.api.resources import Resource
from dray.apiserver.core_kinds import (
    CONFIG_MAP_STRATEGY,
    LEASE_STRATEGY,
    NAMESPACE_STRATEGY,
    NODE_STRATEGY,
    RBAC_GROUP,
    RESOURCE_QUOTA_STRATEGY,
    SECRET_STRATEGY,
    SERVICE_ACCOUNT_STRATEGY,
    rbac_strategy,
)
from dray.apiserver.device_kinds import device_strategy
from dray.apiserver.event_kinds import EVENT_STRATEGY, EVENTS_GROUP, NEW_EVENT_STRATEGY
from dray.apiserver.jobs import JOB_STRATEGY
from dray.apiserver.pods import POD_STRATEGY
from dray.apiserver.records import head_of
from dray.apiserver.strategies import Strategy

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS: Final = ("get", "patch", "update")

_DEPRECATED: Final = {
    (RESOURCE_GROUP, "v1beta1"): ("v1.35", "v1.38"),
    (RESOURCE_GROUP, "v1beta2"): ("v1.36", "v1.39"),
}
"""Since when a version is deprecated in Kubernetes, and when it goes."""


@dataclass(frozen=True, slots=True)
class Subresource:
    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    """The kind of its bodies, if it isn't the resource's own."""
    group: str = ""
    version: str = ""


STATUS: Final = Subresource("status", STATUS_VERBS)


@dataclass(frozen=True)
class Row:
    """One resource. `versions` begins with the preferred one."""

    group: str
    plural: str
    kind: str
    namespaced: bool
    versions: tuple[str, ...]
    strategy: Strategy
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    stored_as: tuple[str, str] | None = None
    """Group and plural of the resource whose storage this one shows in another form."""
    storage_version: str = "v1"
    tracks_fields: bool = True
    """Whether `managedFields` says who set what; events are too many and too short-lived."""
    orphans_by_default: bool = False
    """Deleting it leaves its dependents alone unless told otherwise."""

    @cached_property
    def singular(self) -> str:
        return self.kind.lower()

    @cached_property
    def native_version(self) -> str:
        return "" if self.stored_as else self.storage_version

    @cached_property
    def prefix(self) -> str:
        """Where its objects are in the store."""
        group, plural = self.stored_as or (self.group, self.plural)
        return f"/registry/{group or 'core'}/{plural}/"

    @cached_property
    def storage_api_version(self) -> str:
        group = self.stored_as[0] if self.stored_as else self.group
        return f"{group}/{self.storage_version}" if group else self.storage_version

    @cached_property
    def head(self) -> bytes:
        return head_of(self.kind, self.storage_api_version)

    @cached_property
    def group_resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def group_kind(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    def resource(self, version: str) -> Resource:
        return Resource(self.group, version, self.plural, self.kind, self.namespaced)

    def key(self, namespace: str, name: str) -> str:
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else f"{self.prefix}{name}"

    def range_prefix(self, namespace: str) -> str:
        return f"{self.prefix}{namespace}/" if self.namespaced and namespace else self.prefix

    def subresource(self, name: str) -> Subresource | None:
        return next((item for item in self.subresources if item.name == name), None)

    def deprecation(self, version: str) -> str:
        """The warning that a request for an old version gets; empty if it is current."""
        times = _DEPRECATED.get((self.group, version))
        if times is None:
            return ""
        return f"{self.group}/{version} {self.kind} is deprecated in {times[0]}+, unavailable in {times[1]}+"


def _device_row(plural: str, kind: str, *, namespaced: bool, status: bool = False, v1beta1: bool = True) -> Row:
    return Row(
        RESOURCE_GROUP,
        plural,
        kind,
        namespaced,
        ("v1", "v1beta2", "v1beta1") if v1beta1 else ("v1", "v1beta2"),
        device_strategy(kind),
        subresources=(STATUS,) if status else (),
    )


def _rbac_row(plural: str, kind: str) -> Row:
    return Row(RBAC_GROUP, plural, kind, not kind.startswith("Cluster"), ("v1",), rbac_strategy(kind))


ROWS: Final[tuple[Row, ...]] = (
    Row(
        "",
        "namespaces",
        "Namespace",
        False,
        ("v1",),
        NAMESPACE_STRATEGY,
        short_names=("ns",),
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        subresources=(Subresource("finalize", ("update",)), STATUS),
    ),
    Row(
        "",
        "nodes",
        "Node",
        False,
        ("v1",),
        NODE_STRATEGY,
        short_names=("no",),
        subresources=(STATUS,),
    ),
    Row(
        "",
        "pods",
        "Pod",
        True,
        ("v1",),
        POD_STRATEGY,
        short_names=("po",),
        categories=("all",),
        subresources=(
            Subresource("binding", ("create",), "Binding"),
            Subresource("eviction", ("create",), "Eviction", "policy", "v1"),
            Subresource("log", ("get",)),
            STATUS,
        ),
    ),
    Row("", "events", "Event", True, ("v1",), EVENT_STRATEGY, short_names=("ev",), tracks_fields=False),
    Row("", "configmaps", "ConfigMap", True, ("v1",), CONFIG_MAP_STRATEGY, short_names=("cm",)),
    Row("", "secrets", "Secret", True, ("v1",), SECRET_STRATEGY),
    Row(
        "",
        "serviceaccounts",
        "ServiceAccount",
        True,
        ("v1",),
        SERVICE_ACCOUNT_STRATEGY,
        short_names=("sa",),
        subresources=(Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io", "v1"),),
    ),
    Row(
        "",
        "resourcequotas",
        "ResourceQuota",
        True,
        ("v1",),
        RESOURCE_QUOTA_STRATEGY,
        short_names=("quota",),
        subresources=(STATUS,),
    ),
    Row(
        "batch",
        "jobs",
        "Job",
        True,
        ("v1",),
        JOB_STRATEGY,
        categories=("all",),
        subresources=(STATUS,),
        orphans_by_default=True,
    ),
    Row("coordination.k8s.io", "leases", "Lease", True, ("v1",), LEASE_STRATEGY),
    Row(
        EVENTS_GROUP,
        "events",
        "Event",
        True,
        ("v1",),
        NEW_EVENT_STRATEGY,
        short_names=("ev",),
        stored_as=("", "events"),
        tracks_fields=False,
    ),
    _rbac_row("clusterroles", "ClusterRole"),
    _rbac_row("clusterrolebindings", "ClusterRoleBinding"),
    _rbac_row("roles", "Role"),
    _rbac_row("rolebindings", "RoleBinding"),
    _device_row("deviceclasses", "DeviceClass", namespaced=False),
    _device_row("devicetaintrules", "DeviceTaintRule", namespaced=False, status=True, v1beta1=False),
    _device_row("resourceclaims", "ResourceClaim", namespaced=True, status=True),
    _device_row("resourceclaimtemplates", "ResourceClaimTemplate", namespaced=True),
    _device_row("resourceslices", "ResourceSlice", namespaced=False),
)

_BY_PATH: Final = {(row.group, version, row.plural): row for row in ROWS for version in row.versions}
GROUPS: Final = tuple(dict.fromkeys(row.group for row in ROWS))


def find_row(group: str, version: str, plural: str) -> Row | None:
    return _BY_PATH.get((group, version, plural))


def row_of(resource: Resource) -> Row:
    """The row of a resource that is known to be served."""
    return _BY_PATH[(resource.group, resource.version, resource.plural)]


def rows_of(group: str, version: str) -> Iterable[Row]:
    return (row for row in ROWS if row.group == group and version in row.versions)


def versions_of(group: str) -> tuple[str, ...]:
    """The versions of a group, preferred first."""
    return tuple(dict.fromkeys(version for row in ROWS if row.group == group for version in row.versions))
