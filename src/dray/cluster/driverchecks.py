"""What every DRA driver must do, whoever wrote it: checks that talk to it as a kubelet would.

They need the cluster that the driver reads its claims from, and write claims there that were "allocated" by hand.
Whatever a check leaves behind is unprepared and deleted before the next one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import grpc

from dray.api.codec import decode_as
from dray.api.devices import Device
from dray.api.errors import NotFound
from dray.api.meta import Json
from dray.api.names import check_dns_subdomain
from dray.api.resources import RESOURCE_CLAIMS, RESOURCE_SLICES
from dray.api.slices import ResourceSlice
from dray.cluster.kubelets import Call, FakeKubelet
from dray.cluster.memory import add_allocated_claim, share_of
from dray.node.plugins import LONGEST_NAME, PLUGIN_TYPE, SERVICE_VERSIONS
from dray.runtime.client import Client

CDI_NAME = re.compile(r"[a-zA-Z][\w.-]*/[a-zA-Z][\w-]*=[a-zA-Z0-9][\w.:-]*")
PUBLISH_SECONDS = 15.0
CLEANING_SECONDS = 5.0
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

    async def find_end(self) -> str:
        """How it ended, if it ended by itself; else empty."""
        ...

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


class _Published(NamedTuple):
    pool: str
    device: Device

    @property
    def key(self) -> tuple[str, str]:
        return self.pool, self.device.name


@dataclass
class Checks:
    """Run them with `run`, in order: later ones need what the first find out."""

    subject: Subject

    def __post_init__(self) -> None:
        self._devices: list[_Published] = []
        self._claims: list[Json] = []
        """What the check that runs now has made."""
        self._is_registered = False

    @property
    def driver(self) -> str:
        return str(self.subject.kubelet.info.name)

    async def run(self) -> AsyncIterator[Result]:
        """The results as they come. Raises StatusError, OSError if the cluster doesn't play along."""
        for name, check in self.all_checks():
            result = await self._run_one(name, check)
            if result.outcome == "failed" and (end := await self.subject.find_end()):
                yield result._replace(detail=f"{end} ({result.detail})")
                return
            yield result
            if not self._is_registered:
                return
            await self._clean_up()

    async def _run_one(self, name: str, check: Callable[[], Awaitable[None]]) -> Result:
        try:
            await check()
        except CheckSkipped as reason:
            return Result(name, "skipped", str(reason))
        except CheckFailed as failure:
            return Result(name, "failed", str(failure))
        except (grpc.aio.AioRpcError, TimeoutError) as error:
            return Result(name, "failed", self._describe(error))
        return Result(name, "passed")

    def _describe(self, error: Exception) -> str:
        if not isinstance(error, grpc.aio.AioRpcError) or error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"no answer within {self.subject.kubelet.call_timeout:g}s"
        if error.code() is grpc.StatusCode.UNIMPLEMENTED and self.subject.kubelet.info is None:
            return "nobody there knows GetInfo: is it the registration socket, not the driver's own?"
        return f"{error.code().name}: {error.details()}"

    def all_checks(self) -> Sequence[tuple[str, Callable[[], Awaitable[None]]]]:
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
        self._is_registered = True
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
        try:
            async with asyncio.timeout(PUBLISH_SECONDS):
                while not self._devices:
                    self._devices = await self._find_devices()
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise CheckFailed(
                f"no complete pool of {self.driver} that node {self.subject.node_name} can use within "
                f"{PUBLISH_SECONDS:g}s; if its devices belong to no node, what publishes them must run, too"
            ) from None

    async def _find_devices(self) -> list[_Published]:
        """Of complete pools that this node can reach by name."""
        found = await self.subject.client.list(RESOURCE_SLICES, field_selector=f"spec.driver={self.driver}")
        specs = [decode_as(ResourceSlice, item).spec for item in found["items"]]
        reachable = [spec for spec in specs if spec.node_name in (None, "", self.subject.node_name)]
        newest: dict[str, int] = {}
        for spec in reachable:
            newest[spec.pool.name] = max(newest.get(spec.pool.name, 0), spec.pool.generation)
        current = [spec for spec in reachable if spec.pool.generation == newest[spec.pool.name]]
        return [
            _Published(spec.pool.name, device)
            for spec in current
            if sum(other.pool == spec.pool for other in current) == spec.pool.resource_slice_count
            for device in spec.devices
        ]

    # Prepare and unprepare

    async def check_prepare(self) -> None:
        claim = await self._claim(0)
        await self._prepare(claim)
        await self._unprepare(claim)

    async def check_idempotence(self) -> None:
        claim = await self._claim(0)
        first, second = await self._prepare(claim), await self._prepare(claim)
        if first != second:
            raise CheckFailed(f"the second answer differs: {_tell(second)}, first it was {_tell(first)}")
        await self._unprepare(claim)
        try:
            await self._unprepare(claim)
        except CheckFailed as failure:
            raise CheckFailed(f"the second unprepare must be no error: {failure}") from None

    async def check_unprepare_unknown(self) -> None:
        unknown: Json = {"metadata": {"namespace": "default", "name": "never-seen", "uid": "never-seen"}}
        await self._unprepare(unknown)

    async def check_unknown_claim(self) -> None:
        await self._expect_refusal({"metadata": {"namespace": "default", "name": "never-seen", "uid": "no-such-uid"}})

    async def check_wrong_uid(self) -> None:
        claim = await self._claim(0)
        await self._expect_refusal({"metadata": {**claim["metadata"], "uid": "another-uid"}})

    async def check_two_claims(self) -> None:
        if len(self._devices) == 1:
            raise CheckSkipped("the driver published only one device")
        first, second = await self._claim(0), await self._claim(1)
        answers = await self.subject.kubelet.prepare(first, second)
        for number, claim in enumerate((first, second)):
            self._judge(answers.get(claim["metadata"]["uid"]), number)
        await asyncio.gather(self._unprepare(first), self._unprepare(second))

    async def check_same_claim_at_once(self) -> None:
        claim = await self._claim(0)
        first, second = await asyncio.gather(self._prepare(claim), self._prepare(claim))
        if first != second:
            raise CheckFailed(f"two calls at once got different answers: {_tell(first)} and {_tell(second)}")
        await self._unprepare(claim)

    # Restarts

    async def check_restart_after_prepare(self) -> None:
        claim = await self._claim(0)
        before = await self._prepare(claim)
        await self._restart()
        after = await self._prepare(claim)
        if before != after:
            raise CheckFailed(f"after a restart the answer differs: {_tell(after)}, before it was {_tell(before)}")
        await self._unprepare(claim)

    async def check_restart_in_prepare(self) -> None:
        claim = await self._claim(0)
        under_way = asyncio.ensure_future(self.subject.kubelet.prepare(claim))
        await asyncio.sleep(INTO_PREPARE_SECONDS)
        try:
            await self._restart()
        finally:
            await asyncio.gather(under_way, return_exceptions=True)
        await self._prepare(claim)
        await self._unprepare(claim)

    async def _restart(self) -> None:
        await self.subject.kill()
        await self.subject.start()
        await self.subject.kubelet.register()

    # Claims

    async def _claim(self, number: int) -> Json:
        """A claim that has one of the devices."""
        if not self._devices:
            raise CheckSkipped("the driver published no devices")
        found = self._devices[number]
        shares = {found.key: share_of(found.device)}
        claim = await add_allocated_claim(self.subject.client, self.driver, [found.key], shares=shares)
        self._claims.append(claim)
        return claim

    async def _prepare(self, claim: Json) -> Call:
        """Of a claim for the first device, which must succeed."""
        answers = await self.subject.kubelet.prepare(claim)
        return self._judge(answers.get(claim["metadata"]["uid"]), 0)

    def _judge(self, answer: Call | None, number: int) -> Call:
        if answer is None:
            raise CheckFailed("prepare: the response has no entry for the claim's UID")
        if answer.error:
            raise CheckFailed(f"prepare of a good claim failed: {answer.error}")
        got = [(device.pool_name, device.device_name) for device in answer.devices]
        if got != [self._devices[number].key]:
            raise CheckFailed(f"prepare answered {_tell(answer)}, allocated was {'/'.join(self._devices[number].key)}")
        for device in answer.devices:
            for name in device.cdi_device_ids:
                if not CDI_NAME.fullmatch(name):
                    raise CheckFailed(f"{name!r} is no fully qualified CDI device name (vendor/class=device)")
        return answer

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
                raise CheckFailed(f"{self._describe(error)}; it must be NOT_FOUND, or an error for the claim") from None
            return
        answer = answers.get(claim["metadata"]["uid"])
        if answer is None or not answer.error:
            self._claims.append(claim)
            raise CheckFailed("it was prepared; it must be refused, with NOT_FOUND or an error for the claim")

    async def _clean_up(self) -> None:
        for claim in self._claims:
            with suppress(grpc.aio.AioRpcError):
                await self.subject.kubelet.unprepare(
                    claim, seconds=min(CLEANING_SECONDS, self.subject.kubelet.call_timeout)
                )
            metadata = claim["metadata"]
            with suppress(NotFound):
                current = await self.subject.client.get(RESOURCE_CLAIMS, metadata["name"], metadata["namespace"])
                await self.subject.client.update(RESOURCE_CLAIMS, {**current, "status": {}}, subresource="status")
                await self.subject.client.delete(RESOURCE_CLAIMS, metadata["name"], metadata["namespace"])
        self._claims.clear()


def _is_socket(path: str) -> bool:
    return Path(path).is_socket()


def _tell(answer: Call) -> str:
    """An answer in one line."""
    if answer.error:
        return f"the error {answer.error!r}"
    return (
        ", ".join(
            f"{device.pool_name}/{device.device_name} ({', '.join(device.cdi_device_ids) or 'no CDI devices'})"
            for device in answer.devices
        )
        or "no devices"
    )
