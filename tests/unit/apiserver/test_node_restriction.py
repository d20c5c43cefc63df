"""What a node writes must be its own."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.errors import Forbidden
from dray.api.meta import Json
from dray.apiserver.node_restriction import NodeWrite, check_node_write
from dray.apiserver.users import ADMIN, UserInfo

N1 = UserInfo("system:node:n1", groups=("system:nodes",))
DRA = "resource.k8s.io"
LEASES = "coordination.k8s.io"


def write(verb: str, resource: str, *, new: Json | None = None, old: Json | None = None, **more: Any) -> NodeWrite:
    resource, _, subresource = resource.partition("/")
    return NodeWrite(
        user=more.get("user", N1),
        verb=verb,
        group=more.get("group", ""),
        resource=resource,
        subresource=subresource,
        namespace=more.get("namespace", ""),
        name=more.get("name", "x"),
        new=new,
        old=old,
    )


def on(node: str, **more: Any) -> Json:
    return {"spec": {"nodeName": node}, **more}


def node(labels: Json | None = None, **spec: Any) -> Json:
    return {"metadata": {"labels": labels or {}}, "spec": spec}


def mirror(node_name: str = "n1", **spec: Any) -> Json:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node_name, "controller": True}
    metadata = {"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"nodeName": node_name, **spec}}


@pytest.mark.parametrize(
    "allowed",
    [
        write("create", "resourceslices", group=DRA, new=on("n1")),
        write("update", "resourceslices", group=DRA, new=on("n1"), old=on("n1")),
        write("delete", "resourceslices", group=DRA, old=on("n1")),
        write("update", "pods/status", new=on("n1"), old=on("n1")),
        write("create", "pods/eviction", old=on("n1")),
        write("delete", "pods", old=on("n1")),
        write("create", "pods", new=mirror()),
        write("create", "nodes", name="n1", new=node({"kubernetes.io/hostname": "n1", "example.com/x": "y"})),
        write("update", "nodes", name="n1", new=node({"node.kubernetes.io/x": "y"}), old=node()),
        write("update", "nodes/status", name="n1", new=node(), old=node()),
        write("create", "leases", group=LEASES, namespace="kube-node-lease", name="n1"),
        write("create", "events", namespace="blue"),
        write("update", "nodes", user=ADMIN, name="n2", new=node(taints=[1]), old=node()),
    ],
    ids=lambda case: f"{case.verb} {case.resource} {case.subresource}",
)
def test_a_node_may_write_what_is_its_own(allowed: NodeWrite) -> None:
    check_node_write(allowed)


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (write("create", "resourceslices", group=DRA, new=on("n2")), "same NodeName as the requesting node"),
        (write("create", "resourceslices", group=DRA, new={"spec": {"allNodes": True}}), "same NodeName"),
        (write("delete", "resourceslices", group=DRA, old=on("n2")), "can only delete ResourceSlice"),
        (write("update", "resourceslices", group=DRA, new=on("n1"), old=on("n2")), "can only update"),
        (write("update", "resourceclaims/status", group=DRA), "read-only access to ResourceClaims"),
        (write("update", "pods/status", new=on("n1"), old=on("n2")), "spec.nodeName set to itself"),
        (
            write("update", "pods/status", new=on("n1", metadata={"labels": {"a": "b"}}), old=on("n1")),
            "cannot update labels",
        ),
        (
            write("update", "pods/status", new=on("n1", status={"resourceClaimStatuses": [{}]}), old=on("n1")),
            "cannot update resource claim",
        ),
        (write("create", "pods/eviction", old=on("n2")), "can only evict pods"),
        (write("create", "pods/binding", old=on("n1")), "unexpected pod subresource"),
        (write("delete", "pods", old=on("n2")), "can only delete pods"),
        (write("update", "pods", new=on("n1"), old=on("n1")), "can only create and delete mirror pods"),
        (write("create", "pods", new=on("n1")), "can only create mirror pods"),
        (write("create", "pods", new=mirror("n2")), "spec.nodeName set to itself"),
        (write("create", "pods", new=mirror(serviceAccountName="admin")), "reference a service account"),
        (write("create", "pods", new=mirror(resourceClaims=[{}])), "reference resourceclaims"),
        (write("update", "nodes", name="n2", new=node(), old=node()), 'not allowed to modify node "n2"'),
        (write("update", "nodes", name="n1", new=node(taints=[1]), old=node()), "not allowed to modify taints"),
        (
            write("update", "nodes", name="n1", new=node(), old=node({"node-role.kubernetes.io/x": ""})),
            "not allowed to modify labels: node-role.kubernetes.io/x",
        ),
        (
            write("create", "nodes", name="n1", new=node({"node-restriction.kubernetes.io/a": "b"})),
            "set the following labels",
        ),
        (write("update", "leases", group=LEASES, namespace="kube-node-lease", name="n2"), "same name"),
        (write("update", "leases", group=LEASES, namespace="default", name="n1"), "system namespace"),
        (write("create", "events", user=UserInfo("x", groups=("system:nodes",))), "could not determine node"),
    ],
    ids=lambda case: f"{case.verb} {case.resource} {case.subresource}" if isinstance(case, NodeWrite) else None,
)
def test_a_node_may_not_write_anything_else(refused: NodeWrite, why: str) -> None:
    with pytest.raises(Forbidden, match=why):
        check_node_write(refused)
