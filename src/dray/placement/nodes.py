"""A node with what is left on it, and why a pod can't go there.

Reasons are worded as Kubernetes words them, because people search for these words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from dray.api.meta import ObjectKey
from dray.api.nodes import Node
from dray.api.pods import HostPort
from dray.api.taints import Taint, find_untolerated, tolerates
from dray.placement.pods import Amounts, PodFacts, scale_amount

UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
ANY_ADDRESS: Final = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class NodeState:
    """Immutable: adding a pod gives a new state, so that forks share what they don't change."""

    node: Node
    allocatable: Amounts
    used: Amounts = field(default_factory=dict)
    pods: frozenset[ObjectKey] = frozenset()
    ports: frozenset[HostPort] = frozenset()

    @classmethod
    def empty(cls, node: Node) -> NodeState:
        return cls(node, {name: scale_amount(name, amount) for name, amount in node.status.allocatable.items()})

    @property
    def name(self) -> str:
        return self.node.metadata.name

    def with_node(self, node: Node) -> NodeState:
        fresh = NodeState.empty(node)
        return NodeState(node, fresh.allocatable, self.used, self.pods, self.ports)

    def with_pod(self, pod: PodFacts) -> NodeState:
        used = dict(self.used)
        for name, amount in pod.requests.items():
            used[name] = used.get(name, 0) + amount
        return NodeState(self.node, self.allocatable, used, self.pods | {pod.key}, self.ports.union(pod.ports))

    def without_pod(self, pod: PodFacts) -> NodeState:
        if pod.key not in self.pods:
            return self
        used = dict(self.used)
        for name, amount in pod.requests.items():
            used[name] -= amount
        return NodeState(self.node, self.allocatable, used, self.pods - {pod.key}, self.ports.difference(pod.ports))


def static_problem(pod: PodFacts, node: Node) -> str | None:
    """Why the pod can never go there as long as node and pod stay as they are; usage plays no part."""
    if node.spec.unschedulable and not any(tolerates(t, UNSCHEDULABLE) for t in pod.tolerations):
        return "node(s) were unschedulable"
    taint = find_untolerated(node.spec.taints, pod.tolerations)
    if taint is not None:
        return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    if not pod.node_filter.matches(node.metadata.labels, node.metadata.name):
        return "node(s) didn't match Pod's node affinity/selector"
    return None


def room_problem(pod: PodFacts, state: NodeState) -> str | None:
    """Why the pod doesn't fit beside the pods that are there now."""
    if "pods" in state.allocatable and len(state.pods) >= state.allocatable["pods"]:
        return "Too many pods"
    allocatable, used = state.allocatable, state.used
    for name, amount in pod.requests.items():
        if amount and amount > allocatable.get(name, 0) - used.get(name, 0):
            return f"Insufficient {name}"
    if pod.ports and any(_collide(port, taken) for port in pod.ports for taken in state.ports):
        return "node(s) didn't have free ports for the requested pod ports"
    return None


def _collide(a: HostPort, b: HostPort) -> bool:
    if (a.port, a.protocol) != (b.port, b.protocol):
        return False
    return a.ip == b.ip or ANY_ADDRESS in (a.ip, b.ip)
