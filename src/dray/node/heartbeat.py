"""This node in the API: its Node object, and a Lease that says every few seconds that the agent lives."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field

from dray.api.errors import AlreadyExists, Conflict, NotFound
from dray.api.meta import Json
from dray.api.resources import LEASES, NODES
from dray.api.times import format_micro_time, format_time
from dray.runtime.client import Client
from dray.runtime.clock import Clock

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW_INTERVAL = 10.0
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Kubernetes' names for what the system calls itself."""
STATUS_INTERVAL = 300.0
"""The Node object itself is written rarely: every write wakes everyone who watches nodes."""


@dataclass(frozen=True)
class NodeFacts:
    """What the Node object says."""

    name: str
    version: str
    runtime: str
    capacity: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    address: str = "127.0.0.1"
    log_port: int = 0


class Heartbeat:
    def __init__(self, client: Client, clock: Clock, facts: NodeFacts) -> None:
        self._client = client
        self._clock = clock
        self._facts = facts
        self._name = facts.name

    def _metadata(self) -> Json:
        labels = {
            "kubernetes.io/hostname": self._name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": ARCHITECTURES.get(platform.machine(), platform.machine()),
            **self._facts.labels,
        }
        return {"labels": labels, "annotations": dict(self._facts.annotations)}

    async def register(self) -> Json:
        """Make the Node object, or bring an old one up to date. Labels that others set stay."""
        node: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self._name, **self._metadata()}}
        try:
            await self._client.create(NODES, node)
        except AlreadyExists:
            await self._client.patch(NODES, self._name, {"metadata": self._metadata()})
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
            "capacity": dict(self._facts.capacity),
            "allocatable": dict(self._facts.capacity),
            "addresses": [
                {"type": "InternalIP", "address": self._facts.address},
                {"type": "Hostname", "address": self._name},
            ],
            "conditions": [ready],
            "nodeInfo": {
                "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
                "operatingSystem": "linux",
                "kubeletVersion": self._facts.version,
                "kernelVersion": platform.release(),
                "osImage": platform.system(),
                "containerRuntimeVersion": f"{self._facts.runtime}://1",
                "kubeProxyVersion": "",
                "bootID": "",
                "machineID": "",
                "systemUUID": "",
            },
        }
        if self._facts.log_port:
            status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": self._facts.log_port}}
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
