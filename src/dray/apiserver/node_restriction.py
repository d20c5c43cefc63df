"""What a node may write, judged by the content: only its own Node, Lease and slices, and its own pods' status.

Admission calls `check_node_write` for every write, after authorization (`dray.apiserver.node_authorizer`) and with
the object as it would be stored.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dray.api.errors import Forbidden
from dray.api.meta import RESOURCE_GROUP, Json
from dray.apiserver.node_authorizer import COORDINATION, NODE_LEASES, node_name
from dray.apiserver.users import UserInfo

MIRROR_POD: Final = "kubernetes.io/config.mirror"
_RESTRICTED: Final = "node-restriction.kubernetes.io"
_KUBELET_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
_KUBELET_LABEL_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")


class NodeWrite(NamedTuple):
    """A write to judge. `verb` is create, update (also for patches) or delete."""

    user: UserInfo
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    """Of the object; for a create as given in the body."""
    new: Json | None
    old: Json | None
    """What is stored: the object itself, for subresources without content of their own (eviction) the pod."""


def check_node_write(write: NodeWrite) -> None:
    """Raises Forbidden if a node identity oversteps; everybody else's writes pass."""
    node = node_name(write.user)
    if node is None:
        return
    problem = _problem(node, write) if node else f'could not determine node from user "{write.user.name}"'
    if problem is None:
        return
    resource = f"{write.resource}.{write.group}" if write.group else write.resource
    subject = f'{resource} "{write.name}"' if write.name else resource
    details = {"name": write.name, "group": write.group, "kind": write.resource}
    raise Forbidden(
        f"{subject} is forbidden: {problem}", details={name: value for name, value in details.items() if value}
    )


def _problem(node: str, write: NodeWrite) -> str | None:
    match write.group, write.resource, write.subresource:
        case "", "pods", "":
            return _pod_problem(node, write)
        case "", "pods", "status":
            return _pod_status_problem(node, write)
        case "", "pods", "eviction":
            if _spec(write.old).get("nodeName") != node:
                return f"node {node} can only evict pods with spec.nodeName set to itself"
            return None
        case "", "pods", subresource:
            return f"unexpected pod subresource \"{subresource}\", only 'status' and 'eviction' are allowed"
        case "", "nodes", _:
            return _node_problem(node, write)
        case group, "leases", _ if group == COORDINATION:
            if write.namespace != NODE_LEASES:
                return f'can only access leases in the "{NODE_LEASES}" system namespace'
            if write.name != node:
                return "can only access node lease with the same name as the requesting node"
            return None
        case group, "resourceslices", _ if group == RESOURCE_GROUP:
            return _slice_problem(node, write)
        case group, "resourceclaims", _ if group == RESOURCE_GROUP:
            return f'node "{node}" has read-only access to ResourceClaims'
        case _:
            return None


def _pod_problem(node: str, write: NodeWrite) -> str | None:
    match write.verb:
        case "create":
            return _mirror_pod_problem(node, write.new or {})
        case "delete":
            if _spec(write.old).get("nodeName") != node:
                return f'node "{node}" can only delete pods with spec.nodeName set to itself'
            return None
        case verb:
            return f'unexpected operation "{verb.upper()}", node "{node}" can only create and delete mirror pods'


def _mirror_pod_problem(node: str, pod: Json) -> str | None:
    metadata, spec = pod.get("metadata") or {}, _spec(pod)
    if MIRROR_POD not in (metadata.get("annotations") or {}):
        return f'pod does not have "{MIRROR_POD}" annotation, node "{node}" can only create mirror pods'
    if spec.get("nodeName") != node:
        return f'node "{node}" can only create pods with spec.nodeName set to itself'
    owners = metadata.get("ownerReferences") or []
    if len(owners) != 1 or (owners[0].get("apiVersion"), owners[0].get("kind"), owners[0].get("name")) != (
        "v1",
        "Node",
        node,
    ):
        return f'node "{node}" can only create pods with an owner reference set to itself'
    if not owners[0].get("controller"):
        return f'node "{node}" can only create pods with a controller owner reference set to itself'
    if owners[0].get("blockOwnerDeletion"):
        return f'node "{node}" must not set blockOwnerDeletion on an owner reference'
    if spec.get("serviceAccountName"):
        return f'node "{node}" can not create pods that reference a service account'
    if spec.get("resourceClaims"):
        return f'node "{node}" can not create pods that reference resourceclaims'
    return None


def _pod_status_problem(node: str, write: NodeWrite) -> str | None:
    new, old = write.new or {}, write.old or {}
    if _spec(old).get("nodeName") != node:
        return f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
    if _labels(new) != _labels(old):
        return f'node "{node}" cannot update labels through pod status'
    for field, what in (
        ("resourceClaimStatuses", "resource claim statues"),
        ("extendedResourceClaimStatus", "extended resource claim status"),
    ):
        if (new.get("status") or {}).get(field) != (old.get("status") or {}).get(field):
            return f'node "{node}" cannot update {what}'
    return None


def _node_problem(node: str, write: NodeWrite) -> str | None:
    if write.name != node:
        return f'node "{node}" is not allowed to modify node "{write.name}"'
    if write.verb == "delete":
        return None
    changed = _labels(write.new).items() ^ _labels(write.old).items()
    forbidden = sorted({key for key, _ in changed if _is_forbidden_label(key)})
    if write.verb == "create":
        if forbidden:
            return f'node "{node}" is not allowed to set the following labels: {", ".join(forbidden)}'
        return None
    if (_spec(write.new).get("taints") or []) != (_spec(write.old).get("taints") or []):
        return f'node "{node}" is not allowed to modify taints'
    if ((write.new or {}).get("metadata") or {}).get("ownerReferences") != (
        (write.old or {}).get("metadata") or {}
    ).get("ownerReferences"):
        return f'node "{node}" is not allowed to modify ownerReferences'
    return f"is not allowed to modify labels: {', '.join(forbidden)}" if forbidden else None


def _slice_problem(node: str, write: NodeWrite) -> str | None:
    match write.verb:
        case "create" if _spec(write.new).get("nodeName") != node:
            return "can only create ResourceSlice with the same NodeName as the requesting node"
        case "delete" if _spec(write.old).get("nodeName") != node:
            return "can only delete ResourceSlice with the same NodeName as the requesting node"
        case "update" if _spec(write.old).get("nodeName") != node:
            return "can only update ResourceSlice with the same NodeName as the requesting node"
        case _:
            return None


def _is_forbidden_label(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    if domain == _RESTRICTED or domain.endswith("." + _RESTRICTED):
        return True
    if not any(domain == root or domain.endswith("." + root) for root in ("kubernetes.io", "k8s.io")):
        return False
    allowed = any(domain == root or domain.endswith("." + root) for root in _KUBELET_LABEL_DOMAINS)
    return key not in _KUBELET_LABELS and not allowed


def _spec(obj: Json | None) -> Json:
    return (obj or {}).get("spec") or {}


def _labels(obj: Json | None) -> Json:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}
