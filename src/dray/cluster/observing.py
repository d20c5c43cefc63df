"""A picture of a cluster that keeps up with it, for status lines."""

from __future__ import annotations

import asyncio

from dray.api.claims import ResourceClaim
from dray.api.codec import decode_as
from dray.api.meta import Json
from dray.api.resources import (
    DEVICE_TAINT_RULES,
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.cluster.summary import ClusterObjects, Summary, summarize
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.informer import Informer


def _slice(obj: Json) -> ResourceSlice:
    return decode_as(ResourceSlice, obj)


def _claim(obj: Json) -> ResourceClaim:
    return decode_as(ResourceClaim, obj)


def _rule(obj: Json) -> DeviceTaintRule:
    return decode_as(DeviceTaintRule, obj)


async def read_summary(client: Client) -> Summary:
    """The cluster as it is now."""
    nodes, slices, claims, pods, rules, events = await asyncio.gather(
        *(client.list(item) for item in (NODES, RESOURCE_SLICES, RESOURCE_CLAIMS, PODS, DEVICE_TAINT_RULES)),
        client.list(EVENTS, field_selector="involvedObject.kind=Pod,type=Warning"),
    )
    return summarize(
        ClusterObjects(
            nodes=nodes["items"],
            slices=[_slice(item) for item in slices["items"]],
            claims=[_claim(item) for item in claims["items"]],
            pods=pods["items"],
            rules=[_rule(item) for item in rules["items"]],
            events=events["items"],
        )
    )


class Observer:
    """Follows a cluster; `summary` is made anew only if something has changed."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._nodes: Informer[Json] = Informer(client, NODES, clock=clock)
        self._slices = Informer(client, RESOURCE_SLICES, decode=_slice, clock=clock)
        self._claims = Informer(client, RESOURCE_CLAIMS, decode=_claim, clock=clock)
        self._pods: Informer[Json] = Informer(client, PODS, clock=clock)
        self._rules = Informer(client, DEVICE_TAINT_RULES, decode=_rule, clock=clock)
        self._is_stale = True
        self._summary = Summary()
        for informer in (self._nodes, self._slices, self._claims, self._pods, self._rules):
            informer.add_handler(self._changed)

    def _changed(self, old: object, new: object) -> None:
        self._is_stale = True

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in (self._nodes, self._slices, self._claims, self._pods, self._rules):
                group.create_task(informer.run())

    async def wait_synced(self) -> None:
        for informer in (self._nodes, self._slices, self._claims, self._pods, self._rules):
            await informer.wait_synced()

    @property
    def summary(self) -> Summary:
        if self._is_stale:
            self._is_stale = False
            self._summary = summarize(
                ClusterObjects(
                    nodes=list(self._nodes),
                    slices=list(self._slices),
                    claims=list(self._claims),
                    pods=list(self._pods),
                    rules=list(self._rules),
                )
            )
        return self._summary
