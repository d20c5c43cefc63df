"""The gRPC service that tells the node agent how the devices are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from dray.driver.base import DeviceHealth, Driver
from dray.proto import dra_health_v1_pb2

REPEAT_SECONDS = 10.0
"""A report counts for a limited time; it is repeated well before that is over."""
VALID_SECONDS = 30


class HealthServicer:
    def __init__(self, driver: Driver, node_name: str) -> None:
        self._driver = driver
        self._node_name = node_name

    async def NodeWatchResources(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - the RPC's name
        reports = self._driver.health()
        following = asyncio.ensure_future(anext(reports, None))
        last: Sequence[DeviceHealth] | None = None
        try:
            while True:
                done, _ = await asyncio.wait((following,), timeout=REPEAT_SECONDS)
                if done:
                    report = following.result()
                    if report is None:
                        return
                    last = report
                    following = asyncio.ensure_future(anext(reports, None))
                if last is not None:
                    yield _message(last, self._node_name)
        finally:
            following.cancel()


def _message(devices: Sequence[DeviceHealth], node_name: str) -> Any:
    now = int(time.time())
    return dra_health_v1_pb2.NodeWatchResourcesResponse(
        devices=[
            dra_health_v1_pb2.DeviceHealth(
                device=dra_health_v1_pb2.DeviceIdentifier(pool_name=item.pool or node_name, device_name=item.device),
                health=item.health.upper(),
                last_updated_time=now,
                health_check_timeout_seconds=VALID_SECONDS,
                message=item.message,
            )
            for item in devices
        ]
    )
