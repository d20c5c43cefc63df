"""Pods that nobody will ever finish: their node is gone, is out of service, or was never chosen.

- A pod bound to a node that doesn't exist is marked Failed and deleted at once. The node is asked for at the API
  server first, because a pod may be seen before its new node is.
- A pod that is being deleted on a node with the taint `node.kubernetes.io/out-of-service` will not be stopped by an
  agent any more: the admin has said so. It is deleted at once, which frees its claims (KEP-4381, non-graceful node
  shutdown).
- A pod that is being deleted and was never scheduled has no agent to finish it.
"""

from __future__ import annotations

from contextlib import suppress

from dray.api.errors import NotFound
from dray.api.meta import ObjectKey
from dray.api.nodes import Node
from dray.api.pods import Pod, is_terminal
from dray.api.resources import NODES, PODS
from dray.controllers.disruption import mark_disrupted
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
NODE_QUARANTINE = 2.0
"""Seconds to wait before a missing node is believed in: creates of node and pod may arrive in any order."""


class PodGarbageCollector:
    def __init__(
        self, client: Client, clock: Clock, pods: Informer[Pod], nodes: Informer[Node], queue: WorkQueue[ObjectKey]
    ) -> None:
        self._client = client
        self._clock = clock
        self._pods = pods
        self._nodes = nodes
        self._missing_since: dict[ObjectKey, float] = {}
        pods.add_index("node", lambda pod: filter(None, (pod.spec.node_name,)))

        def pod_changed(old: Pod | None, new: Pod | None) -> None:
            if new is not None and self._may_be_garbage(old, new):
                queue.add(new.metadata.key)

        def node_changed(old: Node | None, new: Node | None) -> None:
            node = new or old
            assert node is not None
            if new is None or _is_out_of_service(node):
                for pod in pods.by_index("node", node.metadata.name):
                    queue.add(pod.metadata.key)

        pods.add_handler(pod_changed)
        nodes.add_handler(node_changed)

    def _may_be_garbage(self, old: Pod | None, new: Pod) -> bool:
        """Whether a change of a pod can make it one that nobody finishes."""
        if new.metadata.deletion_timestamp is not None:
            return True
        node = new.spec.node_name
        is_new = old is None or old.spec.node_name != node
        return is_new and bool(node) and self._nodes.get(ObjectKey("", node)) is None

    async def reconcile(self, key: ObjectKey) -> float | None:
        pod = self._pods.get(key)
        if pod is None:
            self._missing_since.pop(key, None)
            return None
        node_name = pod.spec.node_name
        is_terminating = pod.metadata.deletion_timestamp is not None
        if not node_name:
            if is_terminating:
                await self._delete(pod)
            return None
        node = self._nodes.get(ObjectKey("", node_name))
        if node is None:
            return await self._collect_orphan(key, pod, node_name)
        self._missing_since.pop(key, None)
        if is_terminating and _is_out_of_service(node):
            await self._fail(pod, "PodGC: node is out of service")
            await self._delete(pod)
        return None

    async def _collect_orphan(self, key: ObjectKey, pod: Pod, node_name: str) -> float | None:
        since = self._missing_since.setdefault(key, self._clock.monotonic())
        left = since + NODE_QUARANTINE - self._clock.monotonic()
        if left > 0:
            return left
        try:
            await self._client.get(NODES, node_name)
            return NODE_QUARANTINE  # the informer will know it soon
        except NotFound:
            pass
        self._missing_since.pop(key, None)
        await self._fail(pod, "PodGC: node no longer exists")
        await self._delete(pod)
        return None

    async def _fail(self, pod: Pod, message: str) -> None:
        if not is_terminal(pod):
            with suppress(NotFound):
                await mark_disrupted(self._client, self._clock, pod, "DeletionByPodGC", message, phase="Failed")

    async def _delete(self, pod: Pod) -> None:
        metadata = pod.metadata
        with suppress(NotFound):
            await self._client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid, grace_period_seconds=0)


def _is_out_of_service(node: Node) -> bool:
    return any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
