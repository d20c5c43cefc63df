"""Names of the resources that dray's components work with."""

from __future__ import annotations

from typing import Final, NamedTuple

from dray.api.meta import RESOURCE_GROUP


class Resource(NamedTuple):
    """A collection in the API, e.g. resourceclaims of resource.k8s.io/v1."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection, or of one object in it."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(parts)


RESOURCE_CLAIMS: Final = Resource(RESOURCE_GROUP, "v1", "resourceclaims", "ResourceClaim", True)
RESOURCE_CLAIM_TEMPLATES: Final = Resource(
    RESOURCE_GROUP, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True
)
RESOURCE_SLICES: Final = Resource(RESOURCE_GROUP, "v1", "resourceslices", "ResourceSlice", False)
DEVICE_CLASSES: Final = Resource(RESOURCE_GROUP, "v1", "deviceclasses", "DeviceClass", False)
DEVICE_TAINT_RULES: Final = Resource(RESOURCE_GROUP, "v1", "devicetaintrules", "DeviceTaintRule", False)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", False)
NODES: Final = Resource("", "v1", "nodes", "Node", False)
PODS: Final = Resource("", "v1", "pods", "Pod", True)
EVENTS: Final = Resource("", "v1", "events", "Event", True)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap", True)
SECRETS: Final = Resource("", "v1", "secrets", "Secret", True)
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)
RESOURCE_QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota", True)
JOBS: Final = Resource("batch", "v1", "jobs", "Job", True)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", True)
CLUSTER_ROLES: Final = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)
CLUSTER_ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False
)
ROLES: Final = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", True)
ROLE_BINDINGS: Final = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True)

OWNABLE_RESOURCES: Final = (
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NAMESPACES,
    NODES,
    PODS,
    CONFIG_MAPS,
    SECRETS,
    SERVICE_ACCOUNTS,
    RESOURCE_QUOTAS,
    JOBS,
    LEASES,
    ROLES,
    ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
)
"""Everything that may own or be owned; events are left out, they expire."""
