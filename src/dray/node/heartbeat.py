"""This node in the API: its Node object, and a Lease that says every few seconds that the agent lives."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from dray.api.errors import AlreadyExists, Conflict, NotFound
from dray.api.meta import Json
from dray.api.resources import LEASES, NODES
from dray.api.times import format_micro_time, format_time
from dray.runtime.client import Client
from dray.runtime.clock import Clock

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW_INTERVAL = 10.0
STATUS_INTERVAL = 300.0
"""The Node object itself is written rarely: every write wakes everyone who watches nodes."""


class Heartbeat:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        node_name: str,
        labels: Mapping[str, str],
        capacity: Mapping[str, str],
        version: str,
    ) -> None:
        self._client = client
        self._clock = clock
        self._name = node_name
        self._labels = {"kubernetes.io/hostname": node_name, "kubernetes.io/os": "linux", **labels}
        self._capacity = dict(capacity)
        self._version = version

    async def register(self) -> Json:
        """Make the Node object, or bring an old one up to date. Labels that others set stay."""
        node: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self._name, "labels": self._labels}}
        try:
            await self._client.create(NODES, node)
        except AlreadyExists:
            await self._client.patch(NODES, self._name, {"metadata": {"labels": self._labels}})
        return await self._report_status()

    async def run(self) -> None:
        reported = self._clock.monotonic()
        while True:
            await self._renew()
            if self._clock.monotonic() - reported >= STATUS_INTERVAL:
                await self._report_status()
                reported = self._clock.monotonic()
            await self._clock.sleep(RENEW_INTERVAL)

    async def _report_status(self) -> Json:
        now = format_time(self._clock.now())
        ready: Json = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "the node agent is ready",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        status: Json = {
            "capacity": self._capacity,
            "allocatable": self._capacity,
            "conditions": [ready],
            "nodeInfo": {
                "architecture": platform.machine(),
                "operatingSystem": "linux",
                "kubeletVersion": self._version,
                "kernelVersion": platform.release(),
                "osImage": platform.system(),
                "containerRuntimeVersion": "dray://1",
                "kubeProxyVersion": "",
                "bootID": "",
                "machineID": "",
                "systemUUID": "",
            },
        }
        return await self._client.patch(NODES, self._name, {"status": status}, subresource="status")

    async def _renew(self) -> None:
        now = format_micro_time(self._clock.now())
        spec: Json = {"holderIdentity": self._name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now}
        try:
            await self._client.patch(LEASES, self._name, {"spec": spec}, LEASE_NAMESPACE)
        except NotFound:
            lease: Json = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"name": self._name, "namespace": LEASE_NAMESPACE},
                "spec": spec,
            }
            try:
                await self._client.create(LEASES, lease, LEASE_NAMESPACE)
            except (AlreadyExists, Conflict):
                return
