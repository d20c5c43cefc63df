"""Health of devices, as drivers report it, for the status of the pods that use them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from dray.api.meta import Json
from dray.node.checkpoint import HeldClaim, HeldDevice
from dray.node.plugins import Plugin
from dray.proto import dra_health_v1_pb2, dra_health_v1_pb2_grpc
from dray.runtime.clock import Clock

log = logging.getLogger(__name__)

HEALTH_SERVICE = "v1.DRAResourceHealth"
RETRY_SECONDS = 5.0
DEFAULT_TIMEOUT = 30.0
LONGEST_MESSAGE = 256


@dataclass(frozen=True, slots=True)
class Health:
    state: str
    message: str
    valid_until: float


class HealthBook:
    """`changed(driver)` is called when something about a driver's devices is new."""

    def __init__(self, clock: Clock, changed: Callable[[str], None]) -> None:
        self._clock = clock
        self._changed = changed
        self._devices: dict[tuple[str, str, str], Health] = {}

    def follow(self, plugin: Plugin) -> None:
        """Read the instance's reports for as long as it is registered, if it makes any."""
        if HEALTH_SERVICE in plugin.versions:
            plugin.tasks.append(asyncio.create_task(self._follow(plugin)))

    async def _follow(self, plugin: Plugin) -> None:
        stub = dra_health_v1_pb2_grpc.DRAResourceHealthStub(plugin.channel)
        while True:
            try:
                async for report in stub.NodeWatchResources(dra_health_v1_pb2.NodeWatchResourcesRequest()):
                    self._take(plugin.name, report.devices)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    return
                log.info("health of driver %s: %s %s", plugin.name, error.code().name, error.details())
            self._forget(plugin.name)  # what nobody watches over is unknown
            await self._clock.sleep(RETRY_SECONDS)

    def _take(self, driver: str, devices: Iterable[Any]) -> None:
        now = self._clock.monotonic()
        is_new = False
        for item in devices:
            key = (driver, item.device.pool_name, item.device.device_name)
            seconds = item.health_check_timeout_seconds
            health = Health(
                dra_health_v1_pb2.HealthStatus.Name(item.health).capitalize(),
                item.message[:LONGEST_MESSAGE],
                now + (seconds if seconds > 0 else DEFAULT_TIMEOUT),
            )
            known = self._devices.get(key)
            is_new |= known is None or (known.state, known.message) != (health.state, health.message)
            self._devices[key] = health
        if is_new:
            self._changed(driver)

    def _forget(self, driver: str) -> None:
        keys = [key for key in self._devices if key[0] == driver]
        for key in keys:
            del self._devices[key]
        if keys:
            self._changed(driver)

    def container_status(self, container: Json, claims: Mapping[str, HeldClaim]) -> list[Json]:
        """`allocatedResourcesStatus` of a container. Empty if no driver of its devices ever said a word."""
        result: list[Json] = []
        for use in (container.get("resources") or {}).get("claims") or ():
            held, request = claims.get(use["name"]), use.get("request", "")
            if held is None:
                continue
            resources: dict[str, Json] = {}
            for device in held.iter_devices(request):
                name = device.cdi_device_ids[0] if device.cdi_device_ids else "/".join(device.key)
                resources.setdefault(name, self._entry(name, device))
            if any(device.key in self._devices for device in held.devices):
                title = f"claim:{use['name']}/{request}" if request else f"claim:{use['name']}"
                result.append({"name": title, "resources": list(resources.values())})
        return result

    def _entry(self, name: str, device: HeldDevice) -> Json:
        health = self._devices.get(device.key)
        if health is None or health.valid_until < self._clock.monotonic():
            return {"resourceID": name, "health": "Unknown"}
        entry: Json = {"resourceID": name, "health": health.state}
        return {**entry, "message": health.message} if health.message else entry
