"""The gRPC face of a driver: the kubelet's DRA service in v1 and v1beta1, and its registration.

Both versions have the same messages, so one servicer serves both; only the message classes differ.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import grpc

from dray.driver.base import ClaimRef, Driver, PrepareError
from dray.driver.checkpoint import PreparedDevice
from dray.driver.claims import ClaimNotFound, ClaimPreparer
from dray.driver.healthservice import HealthServicer
from dray.driver.metrics import DriverMetrics
from dray.proto import (
    dra_health_v1_pb2_grpc,
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    pluginregistration_pb2,
    pluginregistration_pb2_grpc,
)

log = logging.getLogger(__name__)

LONGEST_SOCKET_PATH = 103 if sys.platform == "darwin" else 107


class PluginServicer:
    """`messages` is the module with the message classes of one version."""

    def __init__(self, preparer: ClaimPreparer, messages: Any, metrics: DriverMetrics) -> None:
        self._preparer = preparer
        self._messages = messages
        self._metrics = metrics

    async def NodePrepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        refs = [ClaimRef(claim.namespace, claim.name, claim.uid) for claim in request.claims]
        unknown: list[str] = []
        outcomes = await asyncio.gather(*(self._prepare_one(ref, unknown) for ref in refs))
        if unknown and len(unknown) == len(refs):  # the KEP's table; with others in the call each has its own error
            await context.abort(grpc.StatusCode.NOT_FOUND, "; ".join(unknown))
        claims = {ref.uid: outcome for ref, outcome in zip(refs, outcomes, strict=True)}
        return self._messages.NodePrepareResourcesResponse(claims=claims)

    async def NodeUnprepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        refs = [ClaimRef(claim.namespace, claim.name, claim.uid) for claim in request.claims]
        outcomes = await asyncio.gather(*(self._unprepare_one(ref) for ref in refs))
        claims = {ref.uid: outcome for ref, outcome in zip(refs, outcomes, strict=True)}
        return self._messages.NodeUnprepareResourcesResponse(claims=claims)

    async def _prepare_one(self, ref: ClaimRef, unknown: list[str]) -> Any:
        """One claim's failure is its own: the others of the call go on."""
        answer = self._messages.NodePrepareResourceResponse
        with self._metrics.timed("prepare") as outcome:
            try:
                devices = await self._preparer.prepare(ref)
            except Exception as error:  # noqa: BLE001 - the driver author's code may fail in any way
                outcome.failed()
                if isinstance(error, ClaimNotFound):
                    unknown.append(str(error))
                return answer(error=_describe(ref, "prepare", error))
        return answer(devices=list(self._devices(devices)))

    async def _unprepare_one(self, ref: ClaimRef) -> Any:
        answer = self._messages.NodeUnprepareResourceResponse
        with self._metrics.timed("unprepare") as outcome:
            try:
                await self._preparer.unprepare(ref)
            except Exception as error:  # noqa: BLE001 - the driver author's code may fail in any way
                outcome.failed()
                return answer(error=_describe(ref, "unprepare", error))
        return answer()

    def _devices(self, devices: Iterable[PreparedDevice]) -> Iterable[Any]:
        has_share_id = "share_id" in self._messages.Device.DESCRIPTOR.fields_by_name
        for device in devices:
            message = self._messages.Device(
                request_names=device.requests,
                pool_name=device.pool,
                device_name=device.device,
                cdi_device_ids=device.cdi_device_ids,
            )
            if has_share_id and device.share_id:
                message.share_id = device.share_id
            yield message


class SocketPathTooLong(ValueError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"socket path {path} has {len(os.fsencode(path))} bytes; the system allows {LONGEST_SOCKET_PATH}. "
            "Choose a directory with a shorter path."
        )


def check_socket_path(path: Path) -> None:
    """Raises SocketPathTooLong; the system's own error wouldn't say so."""
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise SocketPathTooLong(path)


class RegistrationServicer:
    """Tells the node agent where the plugin is, and remembers what the agent thought of it.

    `registered_again` is called for every acceptance: an agent that was restarted registers the driver anew.
    """

    def __init__(
        self, driver_name: str, endpoint: Path, versions: Iterable[str], registered_again: Callable[[], None]
    ) -> None:
        self._registered_again = registered_again
        self._info = pluginregistration_pb2.PluginInfo(
            type="DRAPlugin", name=driver_name, endpoint=str(endpoint), supported_versions=list(versions)
        )
        self.registered = asyncio.Event()
        self.error = ""

    async def GetInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        return self._info

    async def NotifyRegistrationStatus(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        if request.plugin_registered:
            self.error = ""
            self.registered.set()
            self._registered_again()
        else:
            self.error = request.error
            log.error("%s: the node agent refused the registration: %s", self._info.name, request.error)
        return pluginregistration_pb2.RegistrationStatusResponse()


def plugin_server(driver: Driver, node_name: str, preparer: ClaimPreparer, metrics: DriverMetrics, socket: Path) -> Any:
    """An unstarted gRPC server with the DRA services on a Unix socket."""
    server = grpc.aio.server()
    dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(PluginServicer(preparer, dra_v1_pb2, metrics), server)
    dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server(PluginServicer(preparer, dra_v1beta1_pb2, metrics), server)
    if driver.reports_health:
        dra_health_v1_pb2_grpc.add_DRAResourceHealthServicer_to_server(HealthServicer(driver, node_name), server)
    _listen(server, socket)
    return server


def registration_server(registration: RegistrationServicer, socket: Path) -> Any:
    server = grpc.aio.server()
    pluginregistration_pb2_grpc.add_RegistrationServicer_to_server(registration, server)
    _listen(server, socket)
    return server


def supported_versions(driver: Driver) -> list[str]:
    versions = ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
    return [*versions, "v1.DRAResourceHealth"] if driver.reports_health else versions


def _listen(server: Any, socket: Path) -> None:
    """A socket left by a killed process is in the way; a socket is no data, so it is replaced."""
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)
    server.add_insecure_port(f"unix:{socket}")


def _describe(ref: ClaimRef, what: str, error: Exception) -> str:
    if isinstance(error, PrepareError):
        return str(error)
    log.error("%s of claim %s failed", what, ref, exc_info=error)
    return f"{what} of claim {ref}: {type(error).__name__}: {error}"
