"""Prepares and unprepares claims: reads the allocation, calls the driver, keeps the checkpoint and the CDI files.

Order of a prepare: record `preparing` → driver → CDI file → record `prepared`. Killed at any point, the next call
for the claim finds out how far it came: a `prepared` record is answered from the checkpoint, a `preparing` one is
undone first. Calls for one claim never overlap, not even between two instances of the driver; calls for different
claims run side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, TypeVar, cast

import msgspec

from dray.api.cdi import ContainerEdits
from dray.api.claims import ResourceClaim
from dray.api.codec import decode_as
from dray.api.errors import NotFound
from dray.api.resources import RESOURCE_CLAIMS
from dray.driver.base import AllocatedDevice, ClaimRef, DeviceConfig, Driver, Prepared, PrepareError
from dray.driver.cdi import CdiFiles
from dray.driver.checkpoint import Checkpoint, PreparedDevice, Record
from dray.runtime.client import Client
from dray.runtime.locks import KeyedLocks

T = TypeVar("T")


class ClaimNotFound(PrepareError):
    """The claim, or the incarnation of it that the node agent means, doesn't exist."""


class ClaimPreparer:
    """`has_device(pool, name)` says whether the driver still has a device that was allocated a while ago."""

    def __init__(
        self,
        driver: Driver,
        client: Client,
        checkpoint: Checkpoint,
        cdi: CdiFiles,
        *,
        has_device: Callable[[str, str], bool],
    ) -> None:
        self._driver = driver
        self._client = client
        self._checkpoint = checkpoint
        self._cdi = cdi
        self._has_device = has_device
        self._locks = KeyedLocks()
        self._under_way: set[asyncio.Task[Any]] = set()

    @property
    def in_use(self) -> int:
        return len(self._checkpoint)

    async def prepare(self, ref: ClaimRef) -> tuple[PreparedDevice, ...]:
        return await self._see_through(self._prepare(ref))

    async def unprepare(self, ref: ClaimRef) -> None:
        await self._see_through(self._unprepare(ref))

    async def _see_through(self, work: Coroutine[Any, Any, T]) -> T:
        """A caller that gives up waiting doesn't stop the work half-way: its next call finds it done."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def drain(self, seconds: float) -> None:
        """Let what is under way end, or end it."""
        if not self._under_way:
            return
        _, late = await asyncio.wait(self._under_way, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def abort(self) -> None:
        """End what is under way at once, wherever it is."""
        await self.drain(0)

    async def _prepare(self, ref: ClaimRef) -> tuple[PreparedDevice, ...]:
        async with self._locks.hold(ref.uid), self._checkpoint.lock(ref.uid):
            record = self._checkpoint.get(ref.uid)
            if record is not None and record.state == "prepared":
                return record.devices
            claim = await self._fetch(ref)
            if record is not None:
                await self._undo(ref)
            devices, config = self._read_allocation(claim)
            if not devices:
                return ()
            self._check_devices(ref, devices)
            self._checkpoint.put(Record(claim=ref, state="preparing"))
            prepared = await self._driver.prepare(ref, devices, config)
            record = Record(claim=ref, state="prepared", devices=self._publish(ref, devices, prepared))
            self._checkpoint.put(record)
            return record.devices

    async def _unprepare(self, ref: ClaimRef) -> None:
        async with self._locks.hold(ref.uid), self._checkpoint.lock(ref.uid):
            if self._checkpoint.get(ref.uid) is not None:
                await self._undo(ref)

    def _check_devices(self, ref: ClaimRef, devices: Sequence[AllocatedDevice]) -> None:
        """Devices may go after they were allocated; the KEP makes the driver look again before it prepares them."""
        if gone := [
            f"{device.pool}/{device.name}" for device in devices if not self._has_device(device.pool, device.name)
        ]:
            raise PrepareError(f"claim {ref}: allocated devices are gone: {', '.join(gone)}")

    async def _undo(self, ref: ClaimRef) -> None:
        await self._driver.unprepare(ref)
        self._cdi.remove(ref.uid)
        self._checkpoint.remove(ref.uid)

    async def _fetch(self, ref: ClaimRef) -> ResourceClaim:
        try:
            obj = await self._client.get(RESOURCE_CLAIMS, ref.name, ref.namespace)
        except NotFound as error:
            raise ClaimNotFound(f"claim {ref}: {error}") from error
        claim = decode_as(ResourceClaim, obj)
        if claim.metadata.uid != ref.uid:
            raise ClaimNotFound(f"claim {ref} was replaced: its UID is {claim.metadata.uid}, asked for {ref.uid}")
        if claim.status.allocation is None:
            raise PrepareError(f"claim {ref} is not allocated")
        return claim

    def _read_allocation(self, claim: ResourceClaim) -> tuple[list[AllocatedDevice], list[DeviceConfig]]:
        allocation = claim.status.allocation
        assert allocation is not None  # checked when it was fetched
        devices = [
            AllocatedDevice(
                request=result.request,
                pool=result.pool,
                name=result.device,
                share_id=result.share_id,
                admin_access=bool(result.admin_access),
                consumed_capacity=tuple(sorted(result.consumed_capacity.items(), key=lambda item: item[0])),
            )
            for result in allocation.devices.results
            if result.driver == self._driver.name
        ]
        config = [
            DeviceConfig(
                source=cast(Literal["FromClass", "FromClaim"], entry.source),
                requests=entry.requests,
                parameters=msgspec.json.decode(entry.opaque.parameters) or {},
            )
            for entry in allocation.devices.config
            if entry.opaque is not None and entry.opaque.driver == self._driver.name
        ]
        config.sort(key=lambda entry: entry.source != "FromClass")  # stable: the order within each source stays
        return devices, config

    def _publish(
        self, ref: ClaimRef, devices: Sequence[AllocatedDevice], prepared: Prepared
    ) -> tuple[PreparedDevice, ...]:
        if missing := [device.name for device in devices if device not in prepared]:
            raise PrepareError(f"claim {ref}: the driver did not prepare {', '.join(missing)}")
        edits: dict[str, ContainerEdits] = {}
        cdi_ids: dict[AllocatedDevice, tuple[str, ...]] = {}
        for device in devices:
            outcome = prepared[device]
            if not isinstance(outcome, ContainerEdits):
                cdi_ids[device] = tuple(outcome)
            elif outcome.is_empty:
                cdi_ids[device] = ()
            else:
                name = _cdi_name(ref, device)
                edits[name] = outcome
                cdi_ids[device] = (self._cdi.qualified_name(name),)
        if edits:
            self._cdi.write(ref.uid, edits)
        return tuple(
            PreparedDevice(
                requests=(device.request.split("/", 1)[0],),  # containers name requests, never subrequests
                pool=device.pool,
                device=device.name,
                cdi_device_ids=cdi_ids[device],
                share_id=device.share_id,
            )
            for device in devices
        )


def _cdi_name(ref: ClaimRef, device: AllocatedDevice) -> str:
    """Unique per claim and request, because CDI names share one space and two requests may share a device."""
    return "-".join((ref.uid, device.request.replace("/", "-"), device.pool.replace("/", "-"), device.name))
