"""What every DRA driver must do, whoever wrote it: checks that talk to it as a kubelet would.

They need the cluster that the driver reads its claims from, and write claims there that were "allocated" by hand.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import grpc

from dray.api.errors import NotFound
from dray.api.meta import Json
from dray.api.names import check_dns_subdomain
from dray.api.resources import RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.cluster.kubelets import Call, FakeKubelet
from dray.cluster.memory import add_allocated_claim
from dray.node.plugins import LONGEST_NAME, PLUGIN_TYPE, SERVICE_VERSIONS
from dray.runtime.client import Client

CDI_NAME = re.compile(r"[a-zA-Z][\w.-]*/[a-zA-Z][\w-]*=[a-zA-Z0-9][\w.:-]*")
PUBLISH_SECONDS = 15.0
INTO_PREPARE_SECONDS = 0.05
"""How long a prepare has run when the driver is killed."""


class CheckFailed(Exception):
    """What the driver did, and what it should have done."""


class CheckSkipped(Exception):
    """Why a check could not be made."""


class Subject(Protocol):
    """A running driver."""

    @property
    def client(self) -> Client: ...

    @property
    def node_name(self) -> str: ...

    @property
    def kubelet(self) -> FakeKubelet: ...

    async def kill(self) -> None:
        """End it without warning. Raises CheckSkipped if that can't be done."""
        ...

    async def start(self) -> None:
        """Start it again after `kill`."""
        ...


class Result(NamedTuple):
    name: str
    outcome: str
    """"passed", "failed" or "skipped"."""
    detail: str = ""


@dataclass
class Checks:
    """Run them with `run_all`, in order: later ones need what the first find out."""

    subject: Subject

    def __post_init__(self) -> None:
        self._devices: list[tuple[str, str]] = []

    @property
    def driver(self) -> str:
        return str(self.subject.kubelet.info.name)

    async def run_all(self) -> list[Result]:
        results: list[Result] = []
        for name, check in self._all():
            try:
                await check()
                results.append(Result(name, "passed"))
            except CheckSkipped as reason:
                results.append(Result(name, "skipped", str(reason)))
            except CheckFailed as failure:
                results.append(Result(name, "failed", str(failure)))
            except (grpc.aio.AioRpcError, TimeoutError, OSError) as error:
                results.append(Result(name, "failed", _describe(error)))
                if name == "registration":
                    break
        return results

    def _all(self) -> Sequence[tuple[str, Callable[[], Awaitable[None]]]]:
        return (
            ("registration", self.check_registration),
            ("published devices", self.check_published),
            ("prepare and unprepare", self.check_prepare),
            ("prepare twice", self.check_idempotence),
            ("unprepare of an unknown claim", self.check_unprepare_unknown),
            ("prepare of an unknown claim", self.check_unknown_claim),
            ("prepare with the wrong UID", self.check_wrong_uid),
            ("two claims at once", self.check_two_claims),
            ("one claim twice at once", self.check_same_claim_at_once),
            ("prepared claims survive a restart", self.check_restart_after_prepare),
            ("restart in the middle of prepare", self.check_restart_in_prepare),
        )

    # Registration and publishing

    async def check_registration(self) -> None:
        info = await self.subject.kubelet.register()
        if info.type != PLUGIN_TYPE:
            raise CheckFailed(f"GetInfo: type is {info.type!r}, must be {PLUGIN_TYPE!r}")
        if check_dns_subdomain(info.name) or len(info.name) > LONGEST_NAME:
            raise CheckFailed(f"GetInfo: {info.name!r} is no DNS subdomain of at most {LONGEST_NAME} characters")
        if not _is_socket(info.endpoint):
            raise CheckFailed(f"GetInfo: endpoint {info.endpoint!r} is no Unix socket")
        known = [version.name for version in SERVICE_VERSIONS]
        if not set(known) & set(info.supported_versions):
            raise CheckFailed(f"GetInfo: supported_versions {list(info.supported_versions)} has none of {known}")

    async def check_published(self) -> None:
        async with asyncio.timeout(PUBLISH_SECONDS):
            while not self._devices:
                self._devices = await self._find_devices()
                await asyncio.sleep(0.1)

    async def _find_devices(self) -> list[tuple[str, str]]:
        """Of complete pools that this node can reach by name."""
        found = await self.subject.client.list(RESOURCE_SLICES, field_selector=f"spec.driver={self.driver}")
        slices = [
            item["spec"]
            for item in found["items"]
            if item["spec"].get("nodeName") in (None, "", self.subject.node_name)
        ]
        newest: dict[str, int] = {}
        for spec in slices:
            newest[spec["pool"]["name"]] = max(newest.get(spec["pool"]["name"], 0), spec["pool"]["generation"])
        current = [spec for spec in slices if spec["pool"]["generation"] == newest[spec["pool"]["name"]]]
        return [
            (spec["pool"]["name"], device["name"])
            for spec in current
            if sum(other["pool"] == spec["pool"] for other in current) == spec["pool"]["resourceSliceCount"]
            for device in spec.get("devices") or ()
        ]

    # Prepare and unprepare

    async def check_prepare(self) -> None:
        claim = await self._claim(0)
        self._judge(claim, await self._prepare(claim), self._devices[:1])
        await self._let_go(claim)

    async def check_idempotence(self) -> None:
        claim = await self._claim(0)
        first, second = await self._prepare(claim), await self._prepare(claim)
        if first != second:
            raise CheckFailed(f"the second answer differs from the first: {second} after {first}")
        await self._unprepare(claim)
        await self._let_go(claim)  # unprepares again: that must be no error

    async def check_unprepare_unknown(self) -> None:
        unknown: Json = {"metadata": {"namespace": "default", "name": "never-seen", "uid": "never-seen"}}
        await self._unprepare(unknown)

    async def check_unknown_claim(self) -> None:
        await self._expect_refusal({"metadata": {"namespace": "default", "name": "never-seen", "uid": "no-such-uid"}})

    async def check_wrong_uid(self) -> None:
        claim = await self._claim(0)
        await self._expect_refusal({"metadata": {**claim["metadata"], "uid": "another-uid"}})
        await self._let_go(claim)

    async def check_two_claims(self) -> None:
        if len(self._devices) < 2:
            raise CheckSkipped("the driver published only one device")
        first, second = await self._claim(0), await self._claim(1)
        answers = await self.subject.kubelet.prepare(first, second)
        for claim, device in zip((first, second), self._devices, strict=False):
            answer = answers.get(claim["metadata"]["uid"])
            if answer is None:
                raise CheckFailed("one call with two claims: no answer for one of them")
            self._judge(claim, answer, [device])
        await asyncio.gather(self._let_go(first), self._let_go(second))

    async def check_same_claim_at_once(self) -> None:
        claim = await self._claim(0)
        first, second = await asyncio.gather(self._prepare(claim), self._prepare(claim))
        if first != second:
            raise CheckFailed(f"two calls at once got different answers: {first} and {second}")
        await self._let_go(claim)

    # Restarts

    async def check_restart_after_prepare(self) -> None:
        claim = await self._claim(0)
        before = await self._prepare(claim)
        await self._restart()
        after = await self._prepare(claim)
        if before != after:
            raise CheckFailed(f"after a restart the answer differs: {after}, before {before}")
        await self._let_go(claim)

    async def check_restart_in_prepare(self) -> None:
        claim = await self._claim(0)
        under_way = asyncio.ensure_future(self.subject.kubelet.prepare(claim))
        await asyncio.sleep(INTO_PREPARE_SECONDS)
        try:
            await self._restart()
        finally:
            await asyncio.gather(under_way, return_exceptions=True)
        self._judge(claim, await self._prepare(claim), self._devices[:1])
        await self._let_go(claim)

    async def _restart(self) -> None:
        await self.subject.kill()
        await self.subject.start()
        await self.subject.kubelet.register()

    # Claims

    async def _claim(self, device: int) -> Json:
        if not self._devices:
            raise CheckSkipped("the driver published no devices")
        return await add_allocated_claim(self.subject.client, self.driver, [self._devices[device]])

    async def _prepare(self, claim: Json) -> Call:
        answers = await self.subject.kubelet.prepare(claim)
        answer = answers.get(claim["metadata"]["uid"])
        if answer is None:
            raise CheckFailed("the response has no entry for the claim's UID")
        return answer

    def _judge(self, claim: Json, answer: Call, devices: Sequence[tuple[str, str]]) -> None:
        if answer.error:
            raise CheckFailed(f"prepare of a good claim failed: {answer.error}")
        got = [(device.pool_name, device.device_name) for device in answer.devices]
        if sorted(got) != sorted(devices):
            raise CheckFailed(f"prepare answered with devices {got}, allocated were {list(devices)}")
        for device in answer.devices:
            for name in device.cdi_device_ids:
                if not CDI_NAME.fullmatch(name):
                    raise CheckFailed(f"{name!r} is no fully qualified CDI device name (vendor/class=device)")

    async def _unprepare(self, claim: Json) -> None:
        errors = await self.subject.kubelet.unprepare(claim)
        error = errors.get(claim["metadata"]["uid"])
        if error is None:
            raise CheckFailed("unprepare: the response has no entry for the claim's UID")
        if error:
            raise CheckFailed(f"unprepare failed: {error}")

    async def _expect_refusal(self, claim: Json) -> None:
        try:
            answers = await self.subject.kubelet.prepare(claim)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise CheckFailed(f"the gRPC code is {error.code().name}, should be NOT_FOUND") from error
            return
        answer = answers.get(claim["metadata"]["uid"])
        if answer is None or not answer.error:
            raise CheckFailed("it was prepared; it must be refused, with NOT_FOUND or an error for the claim")

    async def _let_go(self, claim: Json) -> None:
        await self._unprepare(claim)
        metadata = claim["metadata"]
        try:
            await self.subject.client.update(
                RESOURCE_CLAIMS,
                {
                    **await self.subject.client.get(RESOURCE_CLAIMS, metadata["name"], metadata["namespace"]),
                    "status": {},
                },
                subresource="status",
            )
            await self.subject.client.delete(RESOURCE_CLAIMS, metadata["name"], metadata["namespace"])
        except NotFound:
            return


def _is_socket(path: str) -> bool:
    return Path(path).is_socket()


def _describe(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    return str(error) or type(error).__name__
