"""Node identities may do what their own pods need."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.meta import Json
from dray.apiserver.node_authorizer import NodeAuthorizer
from dray.apiserver.node_graph import NodeGraph
from dray.apiserver.users import Attributes, UserInfo

N1 = UserInfo("system:node:n1", groups=("system:nodes", "system:authenticated"))
DRA = "resource.k8s.io"
LEASES = "coordination.k8s.io"


def asked(verb: str, resource: str, **more: Any) -> Attributes:
    resource, _, subresource = resource.partition("/")
    return Attributes(more.pop("user", N1), verb, resource=resource, subresource=subresource, **more)


def make_pod(node: str) -> Json:
    return {
        "spec": {
            "nodeName": node,
            "serviceAccountName": "bot",
            "resourceClaims": [
                {"name": "a", "resourceClaimName": "shared"},
                {"name": "b", "resourceClaimTemplateName": "t"},
            ],
            "imagePullSecrets": [{"name": "pull"}],
            "containers": [
                {
                    "envFrom": [{"configMapRef": {"name": "env"}}],
                    "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}],
                }
            ],
            "volumes": [
                {"name": "v", "secret": {"secretName": "volume"}},
                {"name": "p", "projected": {"sources": [{"configMap": {"name": "projected"}}]}},
            ],
        },
        "status": {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "generated"}]},
    }


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph()
    graph.set_pod("blue", "mine", make_pod("n1"))
    graph.set_pod("red", "theirs", make_pod("n2"))
    graph.set_slice("slice-1", "n1")
    graph.set_slice("slice-2", "n2")
    graph.set_slice("network", "")
    return graph


@pytest.fixture
def authorize(graph: NodeGraph) -> NodeAuthorizer:
    return NodeAuthorizer(graph)


@pytest.mark.parametrize(
    "request_",
    [
        asked("get", "resourceclaims", group=DRA, namespace="blue", name="shared"),
        asked("get", "resourceclaims", group=DRA, namespace="blue", name="generated"),
        asked("get", "secrets", namespace="blue", name="pull"),
        asked("get", "secrets", namespace="blue", name="key"),
        asked("get", "secrets", namespace="blue", name="volume"),
        asked("watch", "configmaps", namespace="blue", name="env"),
        asked("get", "configmaps", namespace="blue", name="projected"),
        asked("create", "serviceaccounts/token", namespace="blue", name="bot"),
        asked("get", "pods", namespace="blue", name="mine"),
        asked("list", "pods", field_selector="spec.nodeName=n1"),
        asked("watch", "pods", field_selector="metadata.namespace=x,spec.nodeName=n1"),
        asked("patch", "pods/status", namespace="blue", name="mine"),
        asked("get", "nodes", name="n1"),
        asked("watch", "nodes", name="n1"),
        asked("patch", "nodes/status", name="n1"),
        asked("update", "leases", group=LEASES, namespace="kube-node-lease", name="n1"),
        asked("create", "leases", group=LEASES, namespace="kube-node-lease"),
        asked("create", "events", namespace="blue"),
        asked("create", "resourceslices", group=DRA),
        asked("update", "resourceslices", group=DRA, name="slice-1"),
        asked("delete", "resourceslices", group=DRA, name="slice-1"),
        asked("list", "resourceslices", group=DRA, field_selector="spec.nodeName=n1"),
        asked("deletecollection", "resourceslices", group=DRA, field_selector="spec.driver=d,spec.nodeName=n1"),
    ],
    ids=str,
)
def test_a_node_may(authorize: NodeAuthorizer, request_: Attributes) -> None:
    assert authorize(request_).allowed


@pytest.mark.parametrize(
    "request_",
    [
        asked("get", "resourceclaims", group=DRA, namespace="red", name="shared"),
        asked("list", "resourceclaims", group=DRA, namespace="blue"),
        asked("update", "resourceclaims", group=DRA, namespace="blue", name="shared"),
        asked("update", "resourceclaims/status", group=DRA, namespace="blue", name="shared"),
        asked("patch", "resourceclaims/status", group=DRA, namespace="blue", name="shared"),
        asked("create", "resourceclaims", group=DRA, namespace="blue"),
        asked("delete", "resourceclaims", group=DRA, namespace="blue", name="shared"),
        asked("update", "resourceclaims/binding", group=DRA),
        asked("get", "secrets", namespace="red", name="pull"),
        asked("list", "secrets", namespace="blue"),
        asked("update", "secrets", namespace="blue", name="pull"),
        asked("create", "serviceaccounts/token", namespace="blue", name="admin"),
        asked("get", "serviceaccounts", namespace="blue", name="bot"),
        asked("get", "pods", namespace="red", name="theirs"),
        asked("list", "pods"),
        asked("list", "pods", field_selector="spec.nodeName=n2"),
        asked("list", "pods", field_selector="spec.nodeName!=n1"),
        asked("list", "pods", field_selector="nonsense"),
        asked("create", "pods/binding", namespace="blue", name="mine"),
        asked("get", "nodes", name="n2"),
        asked("list", "nodes"),
        asked("delete", "nodes", name="n1"),
        asked("update", "leases", group=LEASES, namespace="kube-node-lease", name="n2"),
        asked("get", "leases", group=LEASES, namespace="kube-system", name="n1"),
        asked("list", "leases", group=LEASES, namespace="kube-node-lease"),
        asked("update", "resourceslices", group=DRA, name="slice-2"),
        asked("delete", "resourceslices", group=DRA, name="network"),
        asked("get", "resourceslices", group=DRA, name="missing"),
        asked("list", "resourceslices", group=DRA),
        asked("deletecollection", "resourceslices", group=DRA, field_selector="spec.nodeName=n2"),
        asked("create", "deviceclasses", group=DRA),
        asked("create", "clusterrolebindings", group="rbac.authorization.k8s.io"),
        asked("get", "pods", namespace="blue", name="mine", user=UserInfo("system:node:n1")),
        asked("get", "pods", namespace="blue", name="mine", user=UserInfo("n1", groups=("system:nodes",))),
    ],
    ids=str,
)
def test_a_node_may_not(authorize: NodeAuthorizer, request_: Attributes) -> None:
    assert not authorize(request_).allowed


def test_rights_follow_the_pods(graph: NodeGraph, authorize: NodeAuthorizer) -> None:
    request = asked("get", "secrets", namespace="blue", name="pull")
    graph.set_pod("blue", "other", make_pod("n1"))
    graph.set_pod("blue", "mine", None)
    assert authorize(request).allowed
    graph.set_pod("blue", "other", make_pod("n2"))
    assert not authorize(request).allowed
    graph.set_pod("blue", "other", None)
    graph.set_pod("blue", "other", None)
    assert not authorize(request).allowed
