"""The roles and bindings that every server starts with: Kubernetes' own, for the kinds that dray serves.

They are made on start if they aren't there, and can then be changed like any other object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dray.api.meta import RESOURCE_GROUP, Json
from dray.apiserver.node_authorizer import COORDINATION, NODE_RULES, READ
from dray.apiserver.rbac import MASTERS, Rule
from dray.apiserver.tokens import AUTHENTICATED, CONTROLLERS_USER, SCHEDULER_USER
from dray.apiserver.users import UserInfo

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
UNAUTHENTICATED: Final = "system:unauthenticated"
ANONYMOUS: Final = UserInfo("system:anonymous", groups=(UNAUTHENTICATED,))

_LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
_READ_WRITE: Final = (*READ, *_WRITE)
_EVENTS: Final = Rule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",))
_ELECTION: Final = Rule(("create", "get", "list", "watch", "update", "patch"), (COORDINATION,), ("leases",))
_OWN_REVIEWS: Final = (
    Rule(("create",), ("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews")),
    Rule(("create",), ("authentication.k8s.io",), ("selfsubjectreviews",)),
)

_CORE_VIEW: Final = (
    "bindings",
    "configmaps",
    "events",
    "limitranges",
    "namespaces",
    "namespaces/status",
    "pods",
    "pods/log",
    "pods/status",
    "resourcequotas",
    "resourcequotas/status",
    "serviceaccounts",
)
_VIEW: Final = (
    Rule(READ, ("",), _CORE_VIEW),
    Rule(READ, ("batch",), ("jobs", "jobs/status")),
    Rule(READ, (COORDINATION,), ("leases",)),
    Rule(READ, ("events.k8s.io",), ("events",)),
    Rule(READ, (RESOURCE_GROUP,), ("resourceclaims", "resourceclaims/status", "resourceclaimtemplates")),
)
_EDIT: Final = (
    Rule(READ, ("",), ("secrets",)),
    Rule(("impersonate",), ("",), ("serviceaccounts",)),
    Rule(_WRITE, ("",), ("configmaps", "events", "pods", "secrets", "serviceaccounts")),
    Rule(("create",), ("",), ("pods/eviction", "serviceaccounts/token")),
    Rule(_WRITE, ("batch",), ("jobs",)),
    Rule(_WRITE, (COORDINATION,), ("leases",)),
    Rule(_WRITE, (RESOURCE_GROUP,), ("resourceclaims", "resourceclaimtemplates")),
)
_ADMIN: Final = (
    Rule(("create",), ("authorization.k8s.io",), ("localsubjectaccessreviews",)),
    Rule(_READ_WRITE, (RBAC_GROUP,), ("roles", "rolebindings")),
)
_SCHEDULER: Final = (
    _EVENTS,
    _ELECTION,
    Rule(READ, ("",), ("namespaces", "nodes", "pods", "configmaps", "resourcequotas")),
    Rule(("delete",), ("",), ("pods",)),
    Rule(("create",), ("",), ("bindings", "pods/binding", "pods/eviction")),
    Rule(("patch", "update"), ("",), ("pods/status",)),
    Rule(READ, ("batch",), ("jobs",)),
    Rule(
        READ,
        (RESOURCE_GROUP,),
        ("deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
    ),
    Rule(("create", "delete", "patch", "update"), (RESOURCE_GROUP,), ("resourceclaims",)),
    Rule(("patch", "update"), (RESOURCE_GROUP,), ("resourceclaims/status", "resourceclaims/binding")),
    Rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
    Rule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews",)),
)
_CONTROLLERS: Final = (
    _EVENTS,
    _ELECTION,
    Rule(READ, ("*",), ("*",)),
    Rule(_WRITE, ("",), ("configmaps", "namespaces", "pods", "resourcequotas", "secrets", "serviceaccounts", "nodes")),
    Rule(
        ("patch", "update"),
        ("",),
        ("namespaces/finalize", "namespaces/status", "nodes/status", "pods/status", "resourcequotas/status"),
    ),
    Rule(("create",), ("",), ("pods/eviction", "serviceaccounts/token")),
    Rule(_WRITE, ("batch",), ("jobs", "jobs/status")),
    Rule(_WRITE, ("events.k8s.io",), ("events",)),
    Rule(_WRITE, (COORDINATION,), ("leases",)),
    Rule(
        _WRITE,
        (RESOURCE_GROUP,),
        ("devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
    ),
    Rule(
        ("patch", "update"),
        (RESOURCE_GROUP,),
        ("devicetaintrules/status", "resourceclaims/status", "resourceclaims/binding", "resourceclaims/finalizers"),
    ),
    Rule(("patch", "update", "delete", "deletecollection"), (RBAC_GROUP,), ("roles", "rolebindings")),
    Rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
    Rule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews",)),
)
_PUBLIC_URLS: Final = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY_URLS: Final = (
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
)
_MONITORING_URLS: Final = ("/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/readyz", "/readyz/*")

_CLUSTER_ROLES: Final[dict[str, tuple[Rule, ...]]] = {
    "cluster-admin": (Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",))),
    "system:aggregate-to-view": _VIEW,
    "system:aggregate-to-edit": _EDIT,
    "system:aggregate-to-admin": _ADMIN,
    "view": _VIEW,
    "edit": (*_VIEW, *_EDIT),
    "admin": (*_VIEW, *_EDIT, *_ADMIN),
    "system:public-info-viewer": (Rule(("get",), urls=_PUBLIC_URLS),),
    "system:discovery": (Rule(("get",), urls=_DISCOVERY_URLS),),
    "system:basic-user": _OWN_REVIEWS,
    "system:monitoring": (Rule(("get",), urls=_MONITORING_URLS),),
    "system:auth-delegator": (
        Rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
        Rule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews",)),
    ),
    "system:node": NODE_RULES,
    "system:kube-scheduler": _SCHEDULER,
    "system:kube-controller-manager": _CONTROLLERS,
}
_AGGREGATION: Final = {
    "view": ("rbac.authorization.k8s.io/aggregate-to-view",),
    "edit": ("rbac.authorization.k8s.io/aggregate-to-edit",),
    "admin": ("rbac.authorization.k8s.io/aggregate-to-admin",),
}
_AGGREGATED_INTO: Final = {
    "system:aggregate-to-view": "view",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-admin": "admin",
    "view": "edit",
    "edit": "admin",
}
_BINDINGS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "cluster-admin": ("Group", (MASTERS,)),
    "system:public-info-viewer": ("Group", (AUTHENTICATED, UNAUTHENTICATED)),
    "system:discovery": ("Group", (AUTHENTICATED,)),
    "system:basic-user": ("Group", (AUTHENTICATED,)),
    "system:monitoring": ("Group", ("system:monitoring",)),
    "system:kube-scheduler": ("User", (SCHEDULER_USER,)),
    "system:kube-controller-manager": ("User", (CONTROLLERS_USER,)),
}
"""Role to subjects. Nobody is bound to system:node: the node authorizer grants it, narrowed down."""


def iter_default_roles() -> Iterator[Json]:
    """ClusterRoles as they are to be created."""
    for name, rules in _CLUSTER_ROLES.items():
        labels = dict(_LABELS)
        if target := _AGGREGATED_INTO.get(name):
            labels[f"rbac.authorization.k8s.io/aggregate-to-{target}"] = "true"
        role: Json = {
            "apiVersion": f"{RBAC_GROUP}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": labels},
            "rules": [rule.to_json() for rule in rules],
        }
        if keys := _AGGREGATION.get(name):
            role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {key: "true"}} for key in keys]}
        yield role


def iter_default_bindings() -> Iterator[Json]:
    """ClusterRoleBindings as they are to be created."""
    for role, (kind, names) in _BINDINGS.items():
        yield {
            "apiVersion": f"{RBAC_GROUP}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role, "labels": dict(_LABELS)},
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
            "subjects": _subjects(kind, names),
        }


def _subjects(kind: str, names: Sequence[str]) -> list[Json]:
    return [{"apiGroup": RBAC_GROUP, "kind": kind, "name": name} for name in names]
