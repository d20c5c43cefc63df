"""A driver without the SDK, straight on the protocol, as others might write one; with a flaw if the test wants one.

    python -m tests.e2e.plain_driver FLAW --root DIRECTORY

Its cluster and node are in $KUBECONFIG and $NODE_NAME.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from pathlib import Path
from typing import Any

import grpc

from dray.api.errors import AlreadyExists, NotFound
from dray.api.resources import RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.proto import dra_v1_pb2, dra_v1_pb2_grpc, pluginregistration_pb2, pluginregistration_pb2_grpc
from dray.runtime.http_client import HttpClient
from dray.runtime.kubeconfig import find_access
from dray.testing.builders import make_slice

NAME = "plain.example.com"


class PlainDriver:
    """`flaw` is one of none, careless, hangs, crashes."""

    def __init__(self, client: HttpClient, flaw: str) -> None:
        self._client = client
        self._flaw = flaw
        self._numbers = itertools.count()

    async def NodePrepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        if self._flaw == "hangs":
            await asyncio.Event().wait()
        if self._flaw == "crashes":
            os._exit(7)
        return dra_v1_pb2.NodePrepareResourcesResponse(
            claims={claim.uid: await self._prepare(claim) for claim in request.claims}
        )

    async def _prepare(self, claim: Any) -> Any:
        try:
            found = await self._client.get(RESOURCE_CLAIMS, claim.name, claim.namespace)
        except NotFound as error:
            return dra_v1_pb2.NodePrepareResourceResponse(error=str(error))
        if found["metadata"]["uid"] != claim.uid and self._flaw != "careless":
            return dra_v1_pb2.NodePrepareResourceResponse(error="it is another claim")
        name = f"{claim.uid}-{next(self._numbers)}" if self._flaw == "careless" else claim.uid
        return dra_v1_pb2.NodePrepareResourceResponse(
            devices=[
                dra_v1_pb2.Device(
                    request_names=[result["request"]],
                    pool_name=result["pool"],
                    device_name=result["device"],
                    cdi_device_ids=[f"{NAME}/device={name}"],
                )
                for result in found["status"]["allocation"]["devices"]["results"]
            ]
        )

    async def NodeUnprepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        answer = dra_v1_pb2.NodeUnprepareResourceResponse()
        return dra_v1_pb2.NodeUnprepareResourcesResponse(claims={claim.uid: answer for claim in request.claims})


class Registration:
    def __init__(self, endpoint: Path) -> None:
        self._info = pluginregistration_pb2.PluginInfo(
            type="DRAPlugin", name=NAME, endpoint=str(endpoint), supported_versions=["v1.DRAPlugin"]
        )

    async def GetInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        return self._info

    async def NotifyRegistrationStatus(self, request: Any, context: Any) -> Any:  # noqa: N802 - the RPC's name
        return pluginregistration_pb2.RegistrationStatusResponse()


async def main(flaw: str, root: Path) -> None:
    async with HttpClient(find_access(None), agent=NAME) as client:
        try:
            devices = make_slice(os.environ["NODE_NAME"], ["device-0", "device-1"], driver=NAME)
            await client.create(RESOURCE_SLICES, devices)
        except AlreadyExists:
            pass
        plugin, registration = grpc.aio.server(), grpc.aio.server()
        endpoint = root / "dra.sock"
        dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(PlainDriver(client, flaw), plugin)
        pluginregistration_pb2_grpc.add_RegistrationServicer_to_server(Registration(endpoint), registration)
        for server, socket in ((plugin, endpoint), (registration, root / f"{NAME}-reg.sock")):
            socket.unlink(missing_ok=True)
            server.add_insecure_port(f"unix:{socket}")
            await server.start()
        await plugin.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[3])))
