"""What a node identity may do: as much as running its own pods needs, and nothing to anybody else's objects.

ResourceClaims are read-only for it, as KEP-4381 ("Compromised node") asks, and only those that its own pods use.
What can't be told from the request alone (the content of a new object) is left to `dray.apiserver.node_restriction`.
"""

from __future__ import annotations

from typing import Final

from dray.api.fieldselectors import InvalidFieldSelector, parse_field_selector
from dray.api.meta import RESOURCE_GROUP
from dray.apiserver.node_graph import NodeGraph, ObjectRef
from dray.apiserver.rbac import Rule
from dray.apiserver.tokens import NODE_PREFIX, NODES
from dray.apiserver.users import Attributes, Decision, UserInfo

NODE_LEASES: Final = "kube-node-lease"
COORDINATION: Final = "coordination.k8s.io"

READ: Final = ("get", "list", "watch")

NODE_RULES: Final = (
    Rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
    Rule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews", "localsubjectaccessreviews")),
    Rule(("create", "get", "list", "watch"), ("",), ("nodes",)),
    Rule(("update", "patch"), ("",), ("nodes", "nodes/status")),
    Rule(("create", "update", "patch"), ("", "events.k8s.io"), ("events",)),
    Rule(READ, ("",), ("pods",)),
    Rule(("create", "delete"), ("",), ("pods",)),
    Rule(("update", "patch"), ("",), ("pods/status",)),
    Rule(("create",), ("",), ("pods/eviction",)),
    Rule(READ, ("",), ("secrets", "configmaps")),
    Rule(("create",), ("",), ("serviceaccounts/token",)),
    Rule(("get", "create", "update", "patch", "delete"), (COORDINATION,), ("leases",)),
    Rule(("get",), (RESOURCE_GROUP,), ("resourceclaims",)),
    Rule((*READ, "create", "update", "patch", "delete", "deletecollection"), (RESOURCE_GROUP,), ("resourceslices",)),
)
"""The role system:node: the most that any node can have. The authorizer narrows it down to the node that asks."""


def node_name(user: UserInfo) -> str | None:
    """The node that this identity is; empty if it claims to be one but doesn't say which; None: no node."""
    if NODES not in user.groups:
        return None
    return user.name.removeprefix(NODE_PREFIX) if user.name.startswith(NODE_PREFIX) else ""


class NodeAuthorizer:
    """Has an opinion on nodes only."""

    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph

    def __call__(self, asked: Attributes) -> Decision:
        node = node_name(asked.user)
        if node is None:
            return Decision(False)
        if not node:
            return Decision(False, f'unknown node for user "{asked.user.name}"')
        refusal = self._refusal(node, asked)
        if refusal is not None:
            return Decision(False, refusal)
        return Decision(any(rule.allows(asked) for rule in NODE_RULES))

    def _refusal(self, node: str, asked: Attributes) -> str | None:
        """Why this node may not do what some nodes may; None: nothing speaks against it."""
        match asked.group, asked.resource, asked.subresource:
            case "", "secrets" | "configmaps", _:
                return self._read_related(node, asked, READ)
            case resource_group, "resourceclaims", _ if resource_group == RESOURCE_GROUP:
                return self._read_related(node, asked, ("get",))
            case resource_group, "resourceslices", _ if resource_group == RESOURCE_GROUP:
                return self._refuse_slice(node, asked)
            case "", "pods", "":
                return self._refuse_pod(node, asked)
            case "", "nodes", "" if asked.verb in READ and asked.name != node:
                what = f"'{asked.name}'" if asked.name else "all nodes"
                return f"node '{node}' cannot read {what}, only its own Node object"
            case "", "serviceaccounts", _:
                if asked.verb != "create" or asked.subresource != "token" or not asked.name:
                    return "can only create tokens for individual service accounts"
                return self._unrelated(node, asked)
            case group, "leases", _ if group == COORDINATION:
                return _refuse_lease(node, asked)
            case _:
                return None

    def _read_related(self, node: str, asked: Attributes, verbs: tuple[str, ...]) -> str | None:
        if asked.verb not in verbs:
            only_get = verbs == ("get",)
            return (
                "can only get individual resources of this type" if only_get else "can only read resources of this type"
            )
        if asked.subresource:
            return "cannot read subresource"
        return self._unrelated(node, asked)

    def _refuse_slice(self, node: str, asked: Attributes) -> str | None:
        if asked.subresource:
            return "cannot authorize ResourceSlice subresources"
        match asked.verb:
            case "list" | "watch" | "deletecollection":
                if _selected_node(asked) == node:
                    return None
                return "can only list/watch/deletecollection resourceslices with spec.nodeName field selector"
            case "get" | "update" | "patch" | "delete":
                return self._unrelated(node, asked)
            case _:
                return None

    def _refuse_pod(self, node: str, asked: Attributes) -> str | None:
        match asked.verb:
            case "get":
                return self._unrelated(node, asked)
            case "list" | "watch":
                if _selected_node(asked) == node:
                    return None
                if asked.name:
                    return self._unrelated(node, asked)
                return "can only list/watch pods with spec.nodeName field selector"
            case _:
                return None

    def _unrelated(self, node: str, asked: Attributes) -> str | None:
        if not asked.name:
            return "No Object name found"
        if self._graph.relates(node, ObjectRef(asked.resource, asked.namespace, asked.name)):
            return None
        return f"no relationship found between node '{node}' and this object"


def _refuse_lease(node: str, asked: Attributes) -> str | None:
    if asked.verb not in ("get", "create", "update", "patch", "delete"):
        return "can only get, create, update, patch, or delete a node lease"
    if asked.namespace != NODE_LEASES:
        return f'can only access leases in the "{NODE_LEASES}" system namespace'
    if asked.verb != "create" and asked.name != node:
        return "can only access node lease with the same name as the requesting node"
    return None


def _selected_node(asked: Attributes) -> str | None:
    try:
        return parse_field_selector(asked.field_selector).exact_value("spec.nodeName")
    except InvalidFieldSelector:
        return None
