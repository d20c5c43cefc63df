"""The cluster as a value that can be forked, changed, asked and dropped.

It is told of every change (nodes, pods, slices, classes, claims, taint rules) at the cost of the change, and holds
decisions that aren't written yet in the same way: a pod assumed on a node, a claim assumed allocated. Forks share
what they don't change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dray.allocator.index import Index
from dray.allocator.layers import Layered
from dray.allocator.nodes import NodeFacts
from dray.api.claims import ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import ObjectKey
from dray.api.nodes import Node
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.placement.eligibility import Eligibility, Eligible
from dray.placement.nodes import NodeState
from dray.placement.pods import PodFacts
from dray.placement.taintrules import apply_rules, is_about


class Picture:
    def __init__(self, gates: FeatureGates = ALL_GATES, *, make_id: Callable[[], str]) -> None:
        self.index = Index(gates, make_id=make_id)
        self._nodes: Layered[str, NodeState] = Layered()
        self._pods: Layered[ObjectKey, PodFacts] = Layered()
        self._homeless: Layered[ObjectKey, PodFacts] = Layered()
        """Pods on nodes that we don't know (yet)."""
        self._slices: Layered[str, ResourceSlice] = Layered()
        self._rules: Layered[str, DeviceTaintRule] = Layered()
        self._eligibility = Eligibility()
        self._shares_eligibility = False

    def fork(self) -> Picture:
        other = Picture.__new__(Picture)
        other.index = self.index.fork()
        other._nodes = self._nodes.fork()
        other._pods = self._pods.fork()
        other._homeless = self._homeless.fork()
        other._slices = self._slices.fork()
        other._rules = self._rules.fork()
        other._eligibility = self._eligibility
        other._shares_eligibility = self._shares_eligibility = True
        return other

    # Nodes and pods

    def apply_node(self, node: Node) -> None:
        name = node.metadata.name
        known = self._nodes.get(name)
        if known is None:
            state = NodeState.empty(node)
            for key, pod in list(self._homeless.items()):
                if pod.node_name == name:
                    state = state.with_pod(pod)
                    self._homeless.discard(key)
            self._nodes[name] = state
        else:
            self._nodes[name] = known.with_node(node)
        if known is None or _looks_different(known.node, node):
            self._node_changed(name)
            facts = NodeFacts(name, node.metadata.labels, node.status.declared_features)
            self.index.apply_node(facts)

    def remove_node(self, name: str) -> None:
        state = self._nodes.get(name)
        if state is None:
            return
        for key in state.pods:
            self._homeless[key] = self._pods[key]
        self._nodes.discard(name)
        self._node_changed(name)
        self.index.remove_node(name)

    def apply_pod(self, pod: PodFacts) -> None:
        """A pod that takes room on its node; also one that is only assumed there."""
        self.remove_pod(pod.key)
        self._pods[pod.key] = pod
        state = self._nodes.get(pod.node_name)
        if state is None:
            self._homeless[pod.key] = pod
        else:
            self._nodes[pod.node_name] = state.with_pod(pod)

    def remove_pod(self, key: ObjectKey) -> None:
        pod = self._pods.get(key)
        if pod is None:
            return
        self._pods.discard(key)
        self._homeless.discard(key)
        state = self._nodes.get(pod.node_name)
        if state is not None:
            self._nodes[pod.node_name] = state.without_pod(pod)

    def node(self, name: str) -> NodeState | None:
        return self._nodes.get(name)

    @property
    def node_count(self) -> int:
        return len(self._nodes)

    def nodes(self) -> Iterator[NodeState]:
        return (state for _, state in self._nodes.items())

    def eligible(self, pod: PodFacts) -> Eligible:
        """Where labels and taints let the pod go."""
        return self._eligibility.find(pod, self._nodes, self._node_view)

    def _node_view(self, name: str) -> Node | None:
        state = self._nodes.get(name)
        return None if state is None else state.node

    def _node_changed(self, name: str) -> None:
        if self._shares_eligibility:
            self._eligibility = Eligibility()
            self._shares_eligibility = False
        self._eligibility.node_changed(name)

    # Devices

    def apply_slice(self, slice_: ResourceSlice) -> None:
        self._slices[slice_.metadata.name] = slice_
        self.index.apply_slice(apply_rules(slice_, dict(self._rules.items())))

    def remove_slice(self, name: str) -> None:
        self._slices.discard(name)
        self.index.remove_slice(name)

    def apply_rule(self, rule: DeviceTaintRule) -> None:
        old = self._rules.get(rule.metadata.name)
        self._rules[rule.metadata.name] = rule
        self._apply_again(old, rule)

    def remove_rule(self, name: str) -> None:
        old = self._rules.get(name)
        self._rules.discard(name)
        self._apply_again(old, None)

    def _apply_again(self, *rules: DeviceTaintRule | None) -> None:
        current = dict(self._rules.items())
        for _, slice_ in list(self._slices.items()):
            if any(rule is not None and is_about(rule, slice_) for rule in rules):
                self.index.apply_slice(apply_rules(slice_, current))

    def apply_class(self, device_class: DeviceClass) -> None:
        self.index.apply_class(device_class)

    def remove_class(self, name: str) -> None:
        self.index.remove_class(name)

    def apply_claim(self, claim: ResourceClaim) -> None:
        self.index.apply_claim(claim)

    def remove_claim(self, key: ObjectKey) -> None:
        self.index.remove_claim(key)

    def free_devices(self, node: str) -> int:
        """How many devices of pools of the node alone are not in use; what packing and spreading look at."""
        free = 0
        for reached in self.index.inventory.reach(node).pools:
            if reached.pool.home:
                use = self.index.usage.of(reached.pool)
                free += len(reached.pool.devices) - len(use.devices)
        return free


def _looks_different(old: Node, new: Node) -> bool:
    """Heartbeats change a node all the time; this is what questions about it depend on."""
    return (
        old.metadata.labels != new.metadata.labels
        or old.spec != new.spec
        or old.status.declared_features != new.status.declared_features
    )
