"""The kubelet's side of the plugin protocol, call by call: for tests and checks of drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from dray.api.meta import Json
from dray.node.plugins import SERVICE_VERSIONS, ServiceVersion
from dray.proto import pluginregistration_pb2, pluginregistration_pb2_grpc

CALL_TIMEOUT = 30.0
START_TIMEOUT = 30.0
"""A driver may take its time to start, however quickly it has to answer."""
LOOK_INTERVAL = 0.05


class Exchange(NamedTuple):
    """One call and what came of it, as tests compare it."""

    method: str
    claims: tuple[str, ...] = ()
    """Names of the claims in the call."""
    outcome: str = "OK"
    """The gRPC code."""


class Call(NamedTuple):
    """What a driver answered for one claim."""

    devices: tuple[Any, ...]
    error: str


class FakeKubelet:
    """Registers one driver, as the kubelet does, and calls it. Keeps a record of what was said."""

    def __init__(self, registry_socket: Path, *, call_timeout: float = CALL_TIMEOUT) -> None:
        self._registry_socket = registry_socket
        self._call_timeout = call_timeout
        self._channel: Any = None
        self._service: ServiceVersion = SERVICE_VERSIONS[0]
        self.info: Any = None
        self.record: list[Exchange] = []

    @property
    def call_timeout(self) -> float:
        return self._call_timeout

    async def wait_for_socket(self) -> None:
        """Raises TimeoutError."""
        async with asyncio.timeout(START_TIMEOUT):
            while not self._registry_socket.is_socket():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(LOOK_INTERVAL)

    async def register(self, *, accept: bool = True, error: str = "", version: str = "") -> Any:
        """The plugin's own description; `version` picks a service version other than the best."""
        await self.wait_for_socket()
        async with grpc.aio.insecure_channel(f"unix:{self._registry_socket}") as channel:
            stub = pluginregistration_pb2_grpc.RegistrationStub(channel)
            self.info = await stub.GetInfo(
                pluginregistration_pb2.InfoRequest(), timeout=self._call_timeout, wait_for_ready=True
            )
            self.record.append(Exchange("GetInfo"))
            status = pluginregistration_pb2.RegistrationStatus(plugin_registered=accept, error=error)
            await stub.NotifyRegistrationStatus(status, timeout=self._call_timeout)
            self.record.append(Exchange("NotifyRegistrationStatus"))
        offered = [item for item in SERVICE_VERSIONS if item.name in self.info.supported_versions]
        self._service = next((item for item in offered if item.name == version), (offered or SERVICE_VERSIONS)[0])
        await self.close()
        self._channel = grpc.aio.insecure_channel(f"unix:{self.info.endpoint}")
        return self.info

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def prepare(self, *claims: Json, seconds: float | None = None) -> dict[str, Call]:
        """Answers by claim UID. Raises grpc.aio.AioRpcError."""
        response = await self._call("NodePrepareResources", claims, seconds)
        return {uid: Call(tuple(answer.devices), answer.error) for uid, answer in response.claims.items()}

    async def unprepare(self, *claims: Json, seconds: float | None = None) -> dict[str, str]:
        """Errors by claim UID, empty where all went well. Raises grpc.aio.AioRpcError."""
        response = await self._call("NodeUnprepareResources", claims, seconds)
        return {uid: answer.error for uid, answer in response.claims.items()}

    async def _call(self, method: str, claims: Sequence[Json], seconds: float | None) -> Any:
        messages = self._service.messages
        metadata = [claim["metadata"] for claim in claims]
        request = getattr(messages, f"{method}Request")(
            claims=[
                messages.Claim(namespace=item["namespace"], uid=item["uid"], name=item["name"]) for item in metadata
            ]
        )
        names = tuple(item["name"] for item in metadata)
        try:
            response = await getattr(self._service.stub(self._channel), method)(
                request, timeout=seconds or self._call_timeout, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            self.record.append(Exchange(method, names, error.code().name))
            raise
        self.record.append(Exchange(method, names))
        return response
