"""A driver that does what a test scripts, straight on the protocol: slow, failing, old, or not there at all."""

from __future__ import annotations

import asyncio
import socket as sockets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

from dray.cluster.kubelets import Exchange
from dray.proto import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    pluginregistration_pb2,
    pluginregistration_pb2_grpc,
)

BOTH_VERSIONS = ("v1.DRAPlugin", "v1beta1.DRAPlugin")


class ScriptedPlugin:
    """`root` is the node's directory. What it heard is in `record`; what it was told at registration in `statuses`."""

    def __init__(
        self,
        root: Path,
        name: str,
        *,
        versions: Sequence[str] = BOTH_VERSIONS,
        plugin_type: str = "DRAPlugin",
        instance: str = "",
        endpoint: Path | None = None,
    ) -> None:
        suffix = f"-{instance}" if instance else ""
        self.name = name
        self.record: list[Exchange] = []
        self.statuses: list[tuple[bool, str]] = []
        self.failures: list[grpc.StatusCode | str] = []
        """What the next calls end with: a gRPC code, or an error for every claim. Then all is well again."""
        self.gate: asyncio.Event | None = None
        """If set, calls wait for it."""
        self.prepared: set[str] = set()
        self.most_at_once = 0
        self._at_once = 0
        self._endpoint = endpoint or root / "plugins" / name / f"dra{suffix}.sock"
        self._registry_socket = root / "plugins_registry" / f"{name}{suffix}-reg.sock"
        self._info = pluginregistration_pb2.PluginInfo(
            type=plugin_type, name=name, endpoint=str(self._endpoint), supported_versions=list(versions)
        )
        self._servers: list[Any] = []

    async def start(self, *, serve_endpoint: bool = True) -> None:
        if serve_endpoint:
            server = grpc.aio.server()
            dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(_Service(self, dra_v1_pb2), server)
            dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server(_Service(self, dra_v1beta1_pb2), server)
            await self._listen(server, self._endpoint)
        registration = grpc.aio.server()
        pluginregistration_pb2_grpc.add_RegistrationServicer_to_server(_Registration(self), registration)
        await self._listen(registration, self._registry_socket)

    async def _listen(self, server: Any, socket: Path) -> None:
        _make_room(socket)
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        self._servers.append(server)

    async def stop(self, *, keep_sockets: bool = False) -> None:
        """`keep_sockets`: as if it was killed."""
        await asyncio.gather(*(server.stop(None) for server in self._servers))
        self._servers.clear()
        if keep_sockets:
            _leave_sockets(self._endpoint, self._registry_socket)
        else:
            self._registry_socket.unlink(missing_ok=True)

    @property
    def is_busy(self) -> bool:
        """Whether a call waits for its answer."""
        return self._at_once > 0

    @property
    def info(self) -> Any:
        return self._info

    async def answer(self, method: str, request: Any, context: Any) -> str:
        """The error for every claim; empty if all is well."""
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        names = tuple(claim.name for claim in request.claims)
        try:
            if self.gate is not None:
                await self.gate.wait()
            failure = self.failures.pop(0) if self.failures else ""
            if isinstance(failure, grpc.StatusCode):
                self.record.append(Exchange(method, names, failure.name))
                await context.abort(failure, "scripted")
            self.record.append(Exchange(method, names, str(failure) or "OK"))
            return str(failure)
        finally:
            self._at_once -= 1


class _Service:
    def __init__(self, plugin: ScriptedPlugin, messages: Any) -> None:
        self._plugin = plugin
        self._messages = messages

    async def NodePrepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        error = await self._plugin.answer("NodePrepareResources", request, context)
        if not error:
            self._plugin.prepared |= {claim.uid for claim in request.claims}
        one = self._messages.NodePrepareResourceResponse(error=error)
        return self._messages.NodePrepareResourcesResponse(claims={claim.uid: one for claim in request.claims})

    async def NodeUnprepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        error = await self._plugin.answer("NodeUnprepareResources", request, context)
        if not error:
            self._plugin.prepared -= {claim.uid for claim in request.claims}
        one = self._messages.NodeUnprepareResourceResponse(error=error)
        return self._messages.NodeUnprepareResourcesResponse(claims={claim.uid: one for claim in request.claims})


class _Registration:
    def __init__(self, plugin: ScriptedPlugin) -> None:
        self._plugin = plugin

    async def GetInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        self._plugin.record.append(Exchange("GetInfo"))
        return self._plugin.info

    async def NotifyRegistrationStatus(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        self._plugin.record.append(Exchange("NotifyRegistrationStatus"))
        self._plugin.statuses.append((request.plugin_registered, request.error))
        return pluginregistration_pb2.RegistrationStatusResponse()


def _make_room(socket: Path) -> None:
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)


def _leave_sockets(*paths: Path) -> None:
    """gRPC removes its sockets when it stops; a killed process leaves them, with nobody behind."""
    for path in paths:
        if not path.exists():
            left = sockets.socket(sockets.AF_UNIX)
            left.bind(str(path))
            left.close()
