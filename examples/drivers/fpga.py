"""FPGAs in a box of their own, which nodes reach over a fabric.

No node owns them: one controller publishes them for the cluster (`PoolController`, or `--controller` on the command
line). An FPGA must be attached to a node before a pod can start there, so the devices have binding conditions: the
scheduler reserves one, waits until the controller says `FabricDeviceReady`, and only then binds the pod.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from dray.api.errors import StatusError
from dray.api.meta import Json
from dray.api.resources import RESOURCE_CLAIMS
from dray.api.times import format_time
from dray.cluster.accelerators import fpga_pool
from dray.driver import AllocatedDevice, ClaimRef, ContainerEdits, DeviceConfig, Driver, Pool, Prepared
from dray.runtime.client import Client
from dray.runtime.informer import Informer

READY, FAILED = "FabricDeviceReady", "FabricDeviceFailed"


class FabricFpgas(Driver):
    name = "fpga.example.com"

    def cluster_pools(self) -> Iterable[Pool]:
        pool = fpga_pool("fabric-1")
        conditions = {"binding_conditions": (READY,), "binding_failure_conditions": (FAILED,)}
        yield Pool(
            name=pool.name,
            node_selector=pool.node_selector,
            devices=tuple(replace(device, **conditions) for device in pool.devices),
        )

    def pools(self, node_name: str) -> Iterable[Pool]:
        return ()

    async def prepare(
        self, claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]
    ) -> Prepared:
        return {device: ContainerEdits(env=(f"FPGA={device.pool}/{device.name}",)) for device in devices}

    async def unprepare(self, claim: ClaimRef) -> None:
        """The controller detaches it when the claim is deallocated."""


class FabricController:
    """Attaches what was reserved, and says so in the claim's status. Runs once per cluster, beside `PoolController`."""

    def __init__(self, client: Client, *, unreachable: Iterable[str] = ()) -> None:
        self._client = client
        self._unreachable = frozenset(unreachable)
        self._claims: Informer[Json] = Informer(client, RESOURCE_CLAIMS)
        self._work: set[asyncio.Task[None]] = set()
        self._claims.add_handler(self._claim_changed)

    async def run(self) -> None:
        await self._claims.run()

    def _claim_changed(self, old: Json | None, new: Json | None) -> None:
        if new is not None and (waiting := self._waiting(new)):
            task = asyncio.create_task(self._attach(new, waiting))
            self._work.add(task)
            task.add_done_callback(self._work.discard)

    def _waiting(self, claim: Json) -> list[Json]:
        """Our devices in the claim that nothing has been said about."""
        status = claim.get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        known = {(item["pool"], item["device"]) for item in status.get("devices") or () if item.get("conditions")}
        return [
            result
            for result in results
            if result["driver"] == FabricFpgas.name and (result["pool"], result["device"]) not in known
        ]

    async def _attach(self, claim: Json, results: Sequence[Json]) -> None:
        now = format_time(datetime.now(UTC))
        devices = [
            {
                "driver": result["driver"],
                "pool": result["pool"],
                "device": result["device"],
                "conditions": [
                    {
                        "type": FAILED if result["device"] in self._unreachable else READY,
                        "status": "True",
                        "reason": "CableMissing" if result["device"] in self._unreachable else "Attached",
                        "message": "",
                        "lastTransitionTime": now,
                    }
                ],
            }
            for result in results
        ]
        status = {**claim["status"], "devices": [*(claim["status"].get("devices") or ()), *devices]}
        try:
            await self._client.update(RESOURCE_CLAIMS, {**claim, "status": status}, subresource="status")
        except StatusError:
            return  # the claim has changed: its next version comes by, too
