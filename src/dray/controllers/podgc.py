"""Pods that nobody will ever finish: their node is gone, is out of service, or was never chosen.

- A pod bound to a node that doesn't exist is marked Failed and deleted at once. The node is asked for at the API
  server first, because a pod may be seen before its new node is.
- A pod that is being deleted on a node with the taint `node.kubernetes.io/out-of-service` will not be stopped by an
  agent any more: the admin has said so. It is deleted at once, which frees its claims (KEP-4381, non-graceful node
  shutdown).
- A pod that is being deleted and was never scheduled has no agent to finish it.
"""

from __future__ import annotations

from dray.api.errors import NotFound
from dray.api.meta import Json, ObjectKey
from dray.api.resources import NODES, PODS
from dray.api.times import format_time
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue
from dray.runtime.reflector import key_of

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
NODE_QUARANTINE = 2.0
"""Seconds to wait before a missing node is believed in: creates of node and pod may arrive in any order."""


class PodGarbageCollector:
    def __init__(
        self, client: Client, clock: Clock, pods: Informer[Json], nodes: Informer[Json], queue: WorkQueue[ObjectKey]
    ) -> None:
        self._client = client
        self._clock = clock
        self._pods = pods
        self._nodes = nodes
        self._missing_since: dict[ObjectKey, float] = {}
        pods.add_index("node", lambda pod: filter(None, (pod["spec"].get("nodeName"),)))

        def pod_changed(old: Json | None, new: Json | None) -> None:
            if new is not None and self._may_be_garbage(old, new):
                queue.add(key_of(new))

        def node_changed(old: Json | None, new: Json | None) -> None:
            node = new or old or {}
            if new is None or _is_out_of_service(node):
                for pod in pods.by_index("node", node["metadata"]["name"]):
                    queue.add(key_of(pod))

        pods.add_handler(pod_changed)
        nodes.add_handler(node_changed)

    def _may_be_garbage(self, old: Json | None, new: Json) -> bool:
        """Whether a change of a pod can make it one that nobody finishes."""
        if "deletionTimestamp" in new["metadata"]:
            return True
        node = new["spec"].get("nodeName", "")
        is_new = old is None or old["spec"].get("nodeName") != node
        return is_new and bool(node) and self._nodes.get(ObjectKey("", node)) is None

    async def reconcile(self, key: ObjectKey) -> float | None:
        pod = self._pods.get(key)
        if pod is None:
            self._missing_since.pop(key, None)
            return None
        node_name = pod["spec"].get("nodeName", "")
        is_terminating = "deletionTimestamp" in pod["metadata"]
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

    async def _collect_orphan(self, key: ObjectKey, pod: Json, node_name: str) -> float | None:
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

    async def _fail(self, pod: Json, message: str) -> None:
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return
        now = format_time(self._clock.now())
        conditions = [c for c in (pod.get("status") or {}).get("conditions") or [] if c["type"] != "DisruptionTarget"]
        conditions.append(
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": message,
                "lastTransitionTime": now,
            }
        )
        patch: Json = {
            "metadata": {"uid": pod["metadata"]["uid"]},
            "status": {"phase": "Failed", "conditions": conditions},
        }
        try:
            await self._client.patch(
                PODS, pod["metadata"]["name"], patch, pod["metadata"]["namespace"], subresource="status"
            )
        except NotFound:
            return

    async def _delete(self, pod: Json) -> None:
        metadata = pod["metadata"]
        try:
            await self._client.delete(
                PODS, metadata["name"], metadata["namespace"], uid=metadata["uid"], grace_period_seconds=0
            )
        except NotFound:
            return


def _is_out_of_service(node: Json) -> bool:
    return any(taint.get("key") == OUT_OF_SERVICE for taint in (node.get("spec") or {}).get("taints") or ())
