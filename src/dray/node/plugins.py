"""Drivers on this node: found by their registration sockets, asked who they are, and kept as gRPC clients.

The registry directory is looked at again and again rather than watched with inotify: it holds a handful of sockets,
and looking works on every system and file system. A socket that was replaced (another inode) is a new registration.
Several instances of a driver may be registered during an upgrade; the newest one is called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from dray.proto import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    pluginregistration_pb2,
    pluginregistration_pb2_grpc,
)
from dray.runtime.clock import Clock

log = logging.getLogger(__name__)

PLUGIN_TYPE = "DRAPlugin"
LOOK_INTERVAL = 0.5
CALL_TIMEOUT = 10.0


class ServiceVersion(NamedTuple):
    """One version of the DRA service: both have the same messages under different names."""

    name: str
    messages: Any
    stub: Any


SERVICE_VERSIONS = (
    ServiceVersion("v1.DRAPlugin", dra_v1_pb2, dra_v1_pb2_grpc.DRAPluginStub),
    ServiceVersion("v1beta1.DRAPlugin", dra_v1beta1_pb2, dra_v1beta1_pb2_grpc.DRAPluginStub),
)
"""In order of preference."""


class RegistrationRefused(Exception):
    """Why a plugin was not accepted, in words for its author."""


@dataclass(frozen=True, eq=False)
class Plugin:
    """A registered driver instance."""

    name: str
    endpoint: str
    service: ServiceVersion
    versions: tuple[str, ...]
    channel: Any

    @property
    def stub(self) -> Any:
        return self.service.stub(self.channel)

    async def close(self) -> None:
        await self.channel.close()


class _Socket(NamedTuple):
    path: Path
    inode: int


class PluginRegistry:
    """`changed(name, is_registered)` is called when a driver appears and when its last instance is gone."""

    def __init__(self, directory: Path, clock: Clock, changed: Callable[[str, bool], None]) -> None:
        self._directory = directory
        self._clock = clock
        self._changed = changed
        self._seen: dict[_Socket, Plugin | None] = {}

    def get(self, driver: str) -> Plugin | None:
        """The newest instance of the driver."""
        instances = [plugin for plugin in self._seen.values() if plugin is not None and plugin.name == driver]
        return instances[-1] if instances else None

    @property
    def drivers(self) -> set[str]:
        return {plugin.name for plugin in self._seen.values() if plugin is not None}

    async def run(self) -> None:
        try:
            while True:
                await self.look()
                await self._clock.sleep(LOOK_INTERVAL)
        finally:
            for plugin in self._seen.values():
                if plugin is not None:
                    await plugin.close()

    async def look(self) -> None:
        """Register what is new in the directory and forget what is gone."""
        present = {_Socket(path, path.stat().st_ino) for path in self._directory.glob("*.sock") if path.is_socket()}
        for socket in self._seen.keys() - present:
            await self._forget(socket)
        for socket in sorted(present - self._seen.keys()):
            await self._register(socket)

    async def _register(self, socket: _Socket) -> None:
        async with grpc.aio.insecure_channel(f"unix:{socket.path}") as channel:
            registration = pluginregistration_pb2_grpc.RegistrationStub(channel)
            try:
                info = await registration.GetInfo(pluginregistration_pb2.InfoRequest(), timeout=CALL_TIMEOUT)
            except grpc.aio.AioRpcError as error:
                if error.code() == grpc.StatusCode.UNAVAILABLE:  # the plugin isn't serving yet: look again
                    return
                log.warning("registration socket %s: %s", socket.path.name, error.details())
                return
            try:
                plugin = self._accept(info)
                status = pluginregistration_pb2.RegistrationStatus(plugin_registered=True)
            except RegistrationRefused as refusal:
                log.warning("driver %s was refused: %s", info.name, refusal)
                plugin = None
                status = pluginregistration_pb2.RegistrationStatus(plugin_registered=False, error=str(refusal))
            await registration.NotifyRegistrationStatus(status, timeout=CALL_TIMEOUT)
        self._seen[socket] = plugin
        if plugin is not None:
            log.info("driver %s registered with %s", plugin.name, plugin.service.name)
            self._changed(plugin.name, True)

    def _accept(self, info: Any) -> Plugin:
        if info.type != PLUGIN_TYPE:
            raise RegistrationRefused(f"plugin type is {info.type!r}, this agent takes {PLUGIN_TYPE!r}")
        if not info.name:
            raise RegistrationRefused("the plugin has no name")
        if not info.endpoint:
            raise RegistrationRefused("the plugin names no endpoint")
        if any(plugin is not None and plugin.endpoint == info.endpoint for plugin in self._seen.values()):
            raise RegistrationRefused(f"endpoint {info.endpoint} is registered already; every instance needs its own")
        service = next((item for item in SERVICE_VERSIONS if item.name in info.supported_versions), None)
        if service is None:
            known = ", ".join(item.name for item in SERVICE_VERSIONS)
            offered = ", ".join(info.supported_versions) or "none"
            raise RegistrationRefused(f"no common service version: the plugin offers {offered}, this agent {known}")
        channel = grpc.aio.insecure_channel(f"unix:{info.endpoint}")
        return Plugin(info.name, info.endpoint, service, tuple(info.supported_versions), channel)

    async def _forget(self, socket: _Socket) -> None:
        plugin = self._seen.pop(socket)
        if plugin is None:
            return
        await plugin.close()
        if self.get(plugin.name) is None:
            log.info("driver %s is gone", plugin.name)
            self._changed(plugin.name, False)
