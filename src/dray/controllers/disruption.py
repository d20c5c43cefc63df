"""Says in a pod's status that it is ended by a controller, and why; in the condition that Kubernetes has for this."""

from __future__ import annotations

from dray.api.meta import Json
from dray.api.pods import Pod
from dray.api.resources import PODS
from dray.api.times import format_time
from dray.runtime.client import Client, PatchType
from dray.runtime.clock import Clock


async def mark_disrupted(client: Client, clock: Clock, pod: Pod, reason: str, message: str, **status: str) -> None:
    """`status` are other fields to set, such as the phase. Raises NotFound if the pod is gone."""
    condition: Json = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(clock.now()),
    }
    patch: Json = {"metadata": {"uid": pod.metadata.uid}, "status": {**status, "conditions": [condition]}}
    await client.patch(
        PODS,
        pod.metadata.name,
        patch,
        pod.metadata.namespace,
        patch_type=PatchType.STRATEGIC,
        subresource="status",
    )
