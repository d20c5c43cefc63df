"""Prepares a pod's claims through the drivers before it runs, and gives them back after the last pod that uses them.

One call per driver carries all claims of the pod; drivers are called side by side. The rules of the KEP:

- a pod may only use a claim that exists with the UID it had, is allocated and is reserved for the pod;
- prepare may be repeated until it succeeds; what succeeded for one driver is not asked again;
- unprepare happens once no pod of this node uses the claim, and must succeed before the pod may go.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import grpc
from msgspec.structs import replace

from dray.api.claims import ResourceClaim
from dray.api.codec import decode_as, encode
from dray.api.errors import NotFound
from dray.api.resources import RESOURCE_CLAIMS
from dray.node.checkpoint import Checkpoint, HeldClaim, HeldDevice
from dray.node.metrics import NodeMetrics
from dray.node.plugins import Plugin, PluginRegistry
from dray.runtime.client import Client
from dray.runtime.locks import KeyedLocks

CALL_TIMEOUT = 45.0


class NotUsable(Exception):
    """The pod must not run with this claim as it is; the text is for its event."""


class DriverFailed(Exception):
    """Drivers did not do what they were asked; worth another try."""


class ClaimUse(NamedTuple):
    """A claim that a pod uses, under the name that its containers know it by."""

    entry: str
    namespace: str
    name: str
    must_be_owned: bool = False
    """It was made for the pod, so one of that name that wasn't is another claim."""


class Preparation:
    def __init__(
        self,
        client: Client,
        plugins: PluginRegistry,
        checkpoint: Checkpoint,
        metrics: NodeMetrics,
        *,
        call_timeout: float = CALL_TIMEOUT,
    ) -> None:
        self._client = client
        self._plugins = plugins
        self._checkpoint = checkpoint
        self._metrics = metrics
        self._call_timeout = call_timeout
        self._locks = KeyedLocks()
        metrics.watch_claims_in_use(lambda: checkpoint.claims)

    async def prepare(self, pod_uid: str, uses: Sequence[ClaimUse]) -> dict[str, HeldClaim]:
        """The claims by entry, all prepared. Raises NotUsable, DriverFailed, StatusError."""
        known = [self._checkpoint.find(use.namespace, use.name, pod_uid) for use in uses]
        ready = {
            use.entry: held for use, held in zip(uses, known, strict=True) if held is not None and held.is_prepared
        }
        if len(ready) == len(uses):
            return ready  # by an earlier agent, or before a hiccup: the pod may go on without asking anyone
        claims = {use.entry: await self._fetch(use, pod_uid) for use in uses}
        for claim in claims.values():
            for driver in _drivers_to_call(claim):
                self._plugin(driver)  # before anything is recorded: what no driver heard of needs no unprepare
        async with self._locks.hold(*(claim.metadata.uid for claim in claims.values())):
            for claim in claims.values():
                self._hold(claim, pod_uid)
            await self._ask_drivers({claim.metadata.uid for claim in claims.values()})
            return {entry: self._held(claim.metadata.uid) for entry, claim in claims.items()}

    async def release(self, pod_uid: str) -> None:
        """The pod is done: unprepare what nobody else on this node uses. Raises DriverFailed."""
        uids = [claim.uid for claim in self._checkpoint.used_by(pod_uid)]
        async with self._locks.hold(*uids):
            last: list[HeldClaim] = []
            for claim in self._checkpoint.used_by(pod_uid):
                others = claim.pods - {pod_uid}
                if others:
                    self._checkpoint.put(replace(claim, pods=others))
                else:
                    last.append(claim)
            await self._let_go(last)

    async def _fetch(self, use: ClaimUse, pod_uid: str) -> ResourceClaim:
        where = f"ResourceClaim {use.namespace}/{use.name}"
        try:
            claim = decode_as(ResourceClaim, await self._client.get(RESOURCE_CLAIMS, use.name, use.namespace))
        except NotFound as error:
            raise NotUsable(f"{where} does not exist") from error
        owners = claim.metadata.owner_references
        if use.must_be_owned and not any(owner.uid == pod_uid and owner.controller for owner in owners):
            raise NotUsable(f"{where} was not created for the pod (the pod is not its owner)")
        if claim.status.allocation is None:
            raise NotUsable(f"{where} is not allocated")
        if not any(user.uid == pod_uid for user in claim.status.reserved_for):
            raise NotUsable(f"{where} is not reserved for the pod")
        return claim

    def _hold(self, claim: ResourceClaim, pod_uid: str) -> None:
        held = self._checkpoint.get(claim.metadata.uid)
        allocation = _fingerprint(claim)
        if held is None:
            held = HeldClaim(
                namespace=claim.metadata.namespace,
                name=claim.metadata.name,
                uid=claim.metadata.uid,
                pods=frozenset({pod_uid}),
                drivers=_drivers_to_call(claim),
                allocation=allocation,
            )
        elif held.allocation != allocation:
            raise NotUsable(f"ResourceClaim {held.namespace}/{held.name} is still prepared for an earlier allocation")
        self._checkpoint.put(replace(held, pods=held.pods | {pod_uid}))

    def _held(self, uid: str) -> HeldClaim:
        held = self._checkpoint.get(uid)
        assert held is not None  # put by `_hold` under the same lock
        return held

    async def _ask_drivers(self, uids: Iterable[str]) -> None:
        work: dict[str, list[HeldClaim]] = {}
        for held in map(self._held, uids):
            for driver in held.drivers:
                if driver not in held.prepared:
                    work.setdefault(driver, []).append(held)
        failures = await asyncio.gather(*(self._prepare_with(driver, claims) for driver, claims in work.items()))
        if problems := [problem for part in failures for problem in part]:
            raise DriverFailed("; ".join(problems))

    async def _prepare_with(self, driver: str, claims: list[HeldClaim]) -> list[str]:
        """Problems, in words; what went well is recorded even if something else did not."""
        try:
            plugin = self._plugin(driver)
            response = await self._call(plugin, "NodePrepareResources", claims)
        except DriverFailed as error:
            return [str(error)]
        problems: list[str] = []
        for claim in claims:
            answer = response.claims.get(claim.uid)
            if answer is None:
                problems.append(f"driver {driver} did not answer for claim {claim.namespace}/{claim.name}")
            elif answer.error:
                problems.append(f"driver {driver}, claim {claim.namespace}/{claim.name}: {answer.error}")
            else:
                devices = tuple(
                    HeldDevice(
                        driver=driver,
                        requests=tuple(device.request_names),
                        pool=device.pool_name,
                        device=device.device_name,
                        cdi_device_ids=tuple(device.cdi_device_ids),
                    )
                    for device in answer.devices
                )
                held = self._held(claim.uid)
                self._checkpoint.put(replace(held, prepared=held.prepared | {driver}, devices=held.devices + devices))
        return problems

    async def _let_go(self, claims: list[HeldClaim]) -> None:
        work: dict[str, list[HeldClaim]] = {}
        for claim in claims:
            for driver in claim.drivers:
                work.setdefault(driver, []).append(claim)
        failures = await asyncio.gather(*(self._unprepare_with(driver, part) for driver, part in work.items()))
        failed = {uid for part in failures for uid in part}
        for claim in claims:
            if claim.uid not in failed:
                self._checkpoint.remove(claim.uid)
        if problems := [problem for part in failures for problem in part.values()]:
            raise DriverFailed("; ".join(problems))

    async def _unprepare_with(self, driver: str, claims: list[HeldClaim]) -> dict[str, str]:
        """Problems by claim UID."""
        try:
            plugin = self._plugin(driver)
            response = await self._call(plugin, "NodeUnprepareResources", claims)
        except DriverFailed as error:
            return {claim.uid: str(error) for claim in claims}
        problems = {}
        for claim in claims:
            answer = response.claims.get(claim.uid)
            if answer is None:
                problems[claim.uid] = f"driver {driver} did not answer for claim {claim.namespace}/{claim.name}"
            elif answer.error:
                problems[claim.uid] = f"driver {driver}, claim {claim.namespace}/{claim.name}: {answer.error}"
        return problems

    def _plugin(self, driver: str) -> Plugin:
        plugin = self._plugins.get(driver)
        if plugin is None:
            raise DriverFailed(f"DRA driver {driver} is not registered")
        return plugin

    async def _call(self, plugin: Plugin, method: str, claims: list[HeldClaim]) -> Any:
        messages = plugin.service.messages
        request = getattr(messages, f"{method}Request")(
            claims=[messages.Claim(namespace=claim.namespace, uid=claim.uid, name=claim.name) for claim in claims]
        )
        start, code = time.perf_counter(), "OK"
        try:
            return await getattr(plugin.stub, method)(request, timeout=self._call_timeout)
        except grpc.aio.AioRpcError as error:
            code = error.code().name
            raise DriverFailed(f"driver {plugin.name}: {method}: {code}: {error.details()}") from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled us: the driver unregistered, and its connection was closed under the call.
            code = grpc.StatusCode.CANCELLED.name
            raise DriverFailed(f"driver {plugin.name}: {method}: it unregistered before it answered") from None
        finally:
            self._metrics.observe_operation(plugin.name, method, code, time.perf_counter() - start)


def _fingerprint(claim: ResourceClaim) -> str:
    allocation = claim.status.allocation
    assert allocation is not None  # the caller checked
    return hashlib.sha256(encode(allocation.devices)).hexdigest()


def _drivers_to_call(claim: ResourceClaim) -> tuple[str, ...]:
    """Drivers with at least one device that needs node operations."""
    allocation = claim.status.allocation
    assert allocation is not None  # the caller checked
    skipping = {"*", "NodePrepareResources"}
    return tuple(
        sorted({r.driver for r in allocation.devices.results if not skipping.intersection(r.skip_node_operations)})
    )
