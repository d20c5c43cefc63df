"""What goes over the sockets between a node agent and a driver, byte by byte, in every version of the services.

Messages are put together here by hand, with the field numbers of KEP-4381 and of the kubelet's plugin API, so that
nothing depends on dray's own .proto files: a kubelet and the drivers written in Go are on the other end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from examples.drivers.shared_gpu import SharedGpus

from dray.api.resources import RESOURCE_CLAIMS
from dray.driver import healthservice
from dray.node import plugins, podworker
from dray.testing.drivers import DriverUnderTest, run_driver
from dray.testing.waiting import eventually
from tests.integration.nodes import DRIVER, NODE, running_node
from tests.integration.sample_drivers import WatchedGpus

REGISTRATION = "/pluginregistration.Registration"
DRA = "/k8s.io.kubelet.pkg.apis.dra.{}.DRAPlugin"
HEALTH = "/v1.DRAResourceHealth/NodeWatchResources"
HEALTHY, UNHEALTHY = 1, 2
NOW = 1_800_000_000


def message(*fields: tuple[int, str | bytes | int]) -> bytes:
    """Protocol buffers: a number is a varint, everything else has a length."""
    data = b""
    for number, value in fields:
        if isinstance(value, int):
            data += varint(number << 3) + varint(value)
        else:
            content = value.encode() if isinstance(value, str) else value
            data += varint(number << 3 | 2) + varint(len(content)) + content
    return data


def varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*data, number))


def claims_request(uid: str, name: str) -> bytes:
    return message((1, message((1, "default"), (2, uid), (3, name))))


def claims_response(uid: str, answer: bytes) -> bytes:
    """A map from UID to answer."""
    return message((1, message((1, uid), (2, answer))))


# Our drivers, and a kubelet of bytes


async def call(socket: str | Path, path: str, request: bytes) -> bytes:
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        answer: bytes = await channel.unary_unary(path)(request)
        return answer


async def share_a_gpu(node: DriverUnderTest) -> tuple[str, str, str]:
    """UID, name and share of a claim."""
    claim = await node.allocate("gpu-1", consumed={"memory": "20Gi"})
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    return claim["metadata"]["uid"], claim["metadata"]["name"], result["shareID"]


async def test_a_driver_says_who_it_is() -> None:
    async with run_driver(WatchedGpus()) as node:
        endpoint = node.kubelet.info.endpoint
        socket = Path(endpoint).parents[2] / "plugins_registry" / f"{DRIVER}-reg.sock"
        info = message((1, "DRAPlugin"), (2, DRIVER), (3, endpoint))
        versions = message((4, "v1.DRAPlugin"), (4, "v1beta1.DRAPlugin"), (4, "v1.DRAResourceHealth"))
        assert await call(socket, f"{REGISTRATION}/GetInfo", b"") == info + versions
        accepted = message((1, True))
        assert await call(socket, f"{REGISTRATION}/NotifyRegistrationStatus", accepted) == b""


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_driver_prepares_and_unprepares(version: str) -> None:
    async with run_driver(SharedGpus()) as node:
        uid, name, share = await share_a_gpu(node)
        service, endpoint = DRA.format(version), node.kubelet.info.endpoint
        device = message(
            (1, "devices"),
            (2, "node-1"),
            (3, "gpu-1"),
            (4, f"shared-gpu.example.com/device={uid}-devices-node-1-gpu-1"),
        )
        if version == "v1":
            device += message((5, share))
        prepared = await call(endpoint, f"{service}/NodePrepareResources", claims_request(uid, name))
        assert prepared == claims_response(uid, message((1, device)))
        released = await call(endpoint, f"{service}/NodeUnprepareResources", claims_request(uid, name))
        assert released == claims_response(uid, b"")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_driver_reports_errors_per_claim_and_unknown_claims_as_a_status(version: str) -> None:
    async with run_driver(SharedGpus()) as node:
        path = f"{DRA.format(version)}/NodePrepareResources"
        claim = await node.allocate("gpu-9")
        uid, name = claim["metadata"]["uid"], claim["metadata"]["name"]
        error = f"claim default/{name}: allocated devices are gone: node-1/gpu-9"
        answer = await call(node.kubelet.info.endpoint, path, claims_request(uid, name))
        assert answer == claims_response(uid, message((2, error)))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(node.kubelet.info.endpoint, path, claims_request("another", name))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_driver_streams_the_health_of_its_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healthservice, "time", SimpleNamespace(time=lambda: NOW))
    driver = WatchedGpus(1)
    async with (
        run_driver(driver) as node,
        grpc.aio.insecure_channel(f"unix:{node.kubelet.info.endpoint}") as channel,
    ):
        stream = channel.unary_stream(HEALTH)(b"")
        identity = (1, message((1, "node-1"), (2, "gpu-0")))
        assert await stream.read() == message((1, message(identity, (2, HEALTHY), (3, NOW), (4, 30))))
        driver.break_device("gpu-0")
        broken = message(identity, (2, UNHEALTHY), (3, NOW), (4, 30), (5, "it smokes"))
        assert await stream.read() == message((1, broken))
        stream.cancel()


# Our agent, and drivers of bytes


class RawPlugin(grpc.GenericRpcHandler):
    """Keeps every call as it came, and answers from a script: by method, what it makes of the request."""

    def __init__(self, root: Path, *versions: str) -> None:
        self.calls: list[tuple[str, bytes]] = []
        self._sockets = (root / "plugins" / "raw.sock", root / "plugins_registry" / "raw-reg.sock")
        info = message((1, "DRAPlugin"), (2, DRIVER), (3, str(self._sockets[0])), *((4, name) for name in versions))
        self._script: dict[str, Callable[[bytes], bytes]] = {
            "GetInfo": lambda request: info,
            "NotifyRegistrationStatus": lambda request: b"",
            "NodePrepareResources": lambda request: claims_response(_uid(request), message((1, _device()))),
            "NodeUnprepareResources": lambda request: claims_response(_uid(request), b""),
        }
        self._servers: list[Any] = []

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method

        async def answer(request: bytes, context: Any) -> bytes:
            self.calls.append((method, request))
            return self._script[method.rpartition("/")[2]](request)

        async def stream(request: bytes, context: Any) -> AsyncIterator[bytes]:
            self.calls.append((method, request))
            identity = message((1, NODE), (2, "gpu-0"))
            yield message((1, message((1, identity), (2, UNHEALTHY), (3, NOW), (4, 1000), (5, "it smokes"))))
            await asyncio.Event().wait()  # as long as somebody listens

        if method == HEALTH:
            return grpc.unary_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(answer)

    async def __aenter__(self) -> RawPlugin:
        for socket in self._sockets:
            socket.parent.mkdir(parents=True, exist_ok=True)
            server = grpc.aio.server()
            server.add_generic_rpc_handlers((self,))
            server.add_insecure_port(f"unix:{socket}")
            await server.start()
            self._servers.append(server)
        return self

    async def __aexit__(self, *exception: object) -> None:
        for server in self._servers:
            await server.stop(None)


def _uid(request: bytes) -> str:
    """Of the only claim in a request: its second field, after that of the namespace."""
    start = request.index(message((1, "default"))) + len(message((1, "default"))) + 2
    return request[start : start + 36].decode()


def _device() -> bytes:
    return message((1, "devices"), (2, NODE), (3, "gpu-0"))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podworker, "FIRST_RETRY", 0.02)
    monkeypatch.setattr(plugins, "LOOK_INTERVAL", 0.02)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_the_agent_registers_a_driver_and_calls_it_for_a_pod(version: str) -> None:
    async with running_node() as node, RawPlugin(node.root, f"{version}.DRAPlugin") as plugin:
        await node.wait_up()
        await node.add_pod()
        claim = await node.client.get(RESOURCE_CLAIMS, "pod-claim", "default")
        await node.wait_phase("Running")
        await node.delete_pod()
        await node.wait_gone()
        request = claims_request(claim["metadata"]["uid"], "pod-claim")
        assert plugin.calls == [
            (f"{REGISTRATION}/GetInfo", b""),
            (f"{REGISTRATION}/NotifyRegistrationStatus", message((1, True))),
            (f"{DRA.format(version)}/NodePrepareResources", request),
            (f"{DRA.format(version)}/NodeUnprepareResources", request),
        ]


@pytest.mark.usefixtures("impatient")
async def test_the_agent_follows_the_health_of_devices() -> None:
    async with running_node() as node, RawPlugin(node.root, "v1.DRAPlugin", "v1.DRAResourceHealth") as plugin:
        await node.wait_up()
        await node.add_pod()

        async def told() -> Any:
            pod = await node.pod()
            statuses = (pod or {}).get("status", {}).get("containerStatuses") or [{}]
            return statuses[0].get("allocatedResourcesStatus")

        (status,) = await eventually(told, "the pod's status shows health")
        assert (HEALTH, b"") in plugin.calls
        (resource,) = status["resources"]
        assert resource == {"resourceID": f"{DRIVER}/{NODE}/gpu-0", "health": "Unhealthy", "message": "it smokes"}
