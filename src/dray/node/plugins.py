"""Drivers on this node: found by their registration sockets, asked who they are, and kept as gRPC clients.

The registry directory is looked at again and again rather than watched with inotify: it holds a handful of sockets,
and looking works on every system and file system. A socket that was made anew is a new registration.

Several instances of a driver may be registered during an upgrade, each with an endpoint of its own. The newest that
is connected is called; the newest of all if none is. A driver is *up* while an instance is registered and connected.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from dray.api.names import check_dns_subdomain
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
FIRST_RETRY = 1.0
LONGEST_RETRY = 60.0
SETTLED_NANOSECONDS = 2_000_000_000
"""File systems tell times in coarse steps: two changes may look like one if they are close."""
CALL_TIMEOUT = 10.0
LONGEST_NAME = 63
_RECONNECT = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 2000))


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


@dataclass(eq=False)
class Plugin:
    """A registered driver instance."""

    name: str
    endpoint: str
    service: ServiceVersion
    versions: tuple[str, ...]
    channel: Any
    is_connected: bool = False
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    """What follows this instance; ends with it."""

    @property
    def stub(self) -> Any:
        return self.service.stub(self.channel)

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.channel.close()


class _Socket(NamedTuple):
    path: Path
    inode: int
    made: int
    """A number of a removed file is soon used again; together with the time it is not."""


@dataclass
class _Attempt:
    """A socket whose plugin could not be registered so far."""

    due: float
    delay: float


class PluginRegistry:
    """`changed(name, is_up)` is called when a driver comes up or goes down; `joined` for every new instance."""

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        changed: Callable[[str, bool], None],
        joined: Callable[[Plugin], None] = lambda plugin: None,
    ) -> None:
        self._directory = directory
        self._clock = clock
        self._changed = changed
        self._joined = joined
        self._plugins: dict[_Socket, Plugin] = {}
        self._failed: dict[_Socket, _Attempt] = {}
        self._registering: dict[_Socket, asyncio.Task[None]] = {}
        self._up: set[str] = set()
        self._last_change = -1

    def get(self, driver: str) -> Plugin | None:
        """The instance to call."""
        instances = list(self._instances(driver))
        connected = [plugin for plugin in instances if plugin.is_connected]
        candidates = connected or instances
        return candidates[-1] if candidates else None

    def _instances(self, driver: str) -> Iterator[Plugin]:
        """Oldest first."""
        return (plugin for plugin in self._plugins.values() if plugin.name == driver)

    @property
    def up(self) -> frozenset[str]:
        return frozenset(self._up)

    async def run(self) -> None:
        try:
            while True:
                await self.look()
                await self._clock.sleep(LOOK_INTERVAL)
        finally:
            for task in self._registering.values():
                task.cancel()
            await asyncio.gather(*(plugin.close() for plugin in self._plugins.values()))

    async def look(self) -> None:
        """Forget what is gone from the directory and register what is new, each on its own."""
        if self._is_unchanged() and not self._failed:
            return
        present = set(self._sockets())
        for socket in self._plugins.keys() - present:
            await self._forget(socket)
        for socket in self._failed.keys() - present:
            del self._failed[socket]
        now = self._clock.monotonic()
        for socket in sorted(present - self._plugins.keys() - self._registering.keys()):
            attempt = self._failed.get(socket)
            if attempt is None or attempt.due <= now:
                task = asyncio.create_task(self._register(socket))
                self._registering[socket] = task
                task.add_done_callback(lambda _, socket=socket: self._registering.pop(socket, None))  # type: ignore[misc]

    def _is_unchanged(self) -> bool:
        """Whether the directory is as it was at the last look. One that changed just now may do so again unseen."""
        changed = os.stat(self._directory).st_mtime_ns
        is_same, self._last_change = changed == self._last_change, changed
        return is_same and time.time_ns() - changed > SETTLED_NANOSECONDS

    def _sockets(self) -> Iterator[_Socket]:
        for entry in os.scandir(self._directory):
            if not entry.name.endswith(".sock"):
                continue
            try:
                found = entry.stat()
            except FileNotFoundError:
                continue  # it went away while we looked
            if stat.S_ISSOCK(found.st_mode):
                yield _Socket(Path(entry.path), found.st_ino, found.st_ctime_ns)

    async def _register(self, socket: _Socket) -> None:
        async with grpc.aio.insecure_channel(f"unix:{socket.path}") as channel:
            registration = pluginregistration_pb2_grpc.RegistrationStub(channel)
            try:
                info = await registration.GetInfo(pluginregistration_pb2.InfoRequest(), timeout=CALL_TIMEOUT)
                try:
                    plugin = self._accept(info)
                except RegistrationRefused as refusal:
                    log.warning("driver %s (%s) was refused: %s", info.name, socket.path.name, refusal)
                    self._try_again(socket)
                    status = pluginregistration_pb2.RegistrationStatus(plugin_registered=False, error=str(refusal))
                    await registration.NotifyRegistrationStatus(status, timeout=CALL_TIMEOUT)
                    return
                self._add(socket, plugin)
                status = pluginregistration_pb2.RegistrationStatus(plugin_registered=True)
                await registration.NotifyRegistrationStatus(status, timeout=CALL_TIMEOUT)
            except grpc.aio.AioRpcError as error:
                log.info("registration socket %s: %s %s", socket.path.name, error.code().name, error.details())
                self._try_again(socket)

    def _try_again(self, socket: _Socket) -> None:
        if socket in self._plugins:
            return
        last = self._failed.get(socket)
        delay = FIRST_RETRY if last is None else min(last.delay * 2, LONGEST_RETRY)
        self._failed[socket] = _Attempt(self._clock.monotonic() + delay, delay)

    def _accept(self, info: Any) -> Plugin:
        if info.type != PLUGIN_TYPE:
            raise RegistrationRefused(f"plugin type is {info.type!r}, this agent takes {PLUGIN_TYPE!r}")
        problems = check_dns_subdomain(info.name)
        if problems or len(info.name) > LONGEST_NAME:
            problem = problems[0] if problems else f"must be no more than {LONGEST_NAME} bytes"
            raise RegistrationRefused(f"{info.name!r} can't be a driver's name: {problem}")
        if not info.endpoint:
            raise RegistrationRefused("the plugin names no endpoint")
        if any(plugin.endpoint == info.endpoint for plugin in self._plugins.values()):
            raise RegistrationRefused(
                f"endpoint {info.endpoint} already registered for DRA driver plugin {info.name}; "
                "every instance needs an endpoint of its own"
            )
        service = next((item for item in SERVICE_VERSIONS if item.name in info.supported_versions), None)
        if service is None:
            known = ", ".join(item.name for item in SERVICE_VERSIONS)
            offered = ", ".join(info.supported_versions) or "none"
            raise RegistrationRefused(f"no common service version: the plugin offers {offered}, this agent {known}")
        channel = grpc.aio.insecure_channel(f"unix:{info.endpoint}", options=_RECONNECT)
        return Plugin(info.name, info.endpoint, service, tuple(info.supported_versions), channel)

    def _add(self, socket: _Socket, plugin: Plugin) -> None:
        self._failed.pop(socket, None)
        self._plugins[socket] = plugin
        log.info("driver %s registered with %s at %s", plugin.name, plugin.service.name, plugin.endpoint)
        plugin.tasks.append(asyncio.create_task(self._follow_connection(plugin)))
        self._joined(plugin)

    async def _follow_connection(self, plugin: Plugin) -> None:
        """A killed driver leaves its sockets behind; that nobody answers there any more shows in the connection."""
        while True:
            state = plugin.channel.get_state(try_to_connect=True)
            is_connected = state is grpc.ChannelConnectivity.READY
            if is_connected != plugin.is_connected:
                plugin.is_connected = is_connected
                self._update(plugin.name)
            await plugin.channel.wait_for_state_change(state)

    async def _forget(self, socket: _Socket) -> None:
        plugin = self._plugins.pop(socket)
        log.info("driver %s at %s unregistered", plugin.name, plugin.endpoint)
        await plugin.close()
        self._update(plugin.name)

    def _update(self, driver: str) -> None:
        is_up = any(plugin.is_connected for plugin in self._instances(driver))
        if is_up == (driver in self._up):
            return
        (self._up.add if is_up else self._up.discard)(driver)
        log.info("driver %s is %s", driver, "up" if is_up else "down")
        self._changed(driver, is_up)
