"""The pods of many nodes from one watch.

Every node agent follows the pods that are bound to its node. Where hundreds of agents share a process, hundreds of
watches would each look at every change of every pod; here one does, and hands it to the node that it concerns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from dray.api.meta import Json
from dray.api.resources import PODS
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.informer import Handler, Informer

BY_NODE = "node"


def _node_of(pod: Json | None) -> str:
    return "" if pod is None else pod["spec"].get("nodeName", "")


def _index(pod: Json) -> Iterable[str]:
    return (_node_of(pod),)


class SharedPods:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._pods: Informer[Json] = Informer(client, PODS, clock=clock)
        self._pods.add_index(BY_NODE, _index)
        self._pods.add_handler(self._changed)
        self._feeds: dict[str, list[NodePods]] = {}

    async def run(self) -> None:
        await self._pods.run()

    def of(self, node_name: str) -> NodePods:
        return NodePods(self, node_name)

    @property
    def has_synced(self) -> bool:
        return self._pods.has_synced

    async def wait_synced(self) -> None:
        await self._pods.wait_synced()

    def on(self, node_name: str) -> list[Json]:
        return self._pods.by_index(BY_NODE, node_name)

    def join(self, feed: NodePods) -> None:
        self._feeds.setdefault(feed.node_name, []).append(feed)

    def leave(self, feed: NodePods) -> None:
        self._feeds[feed.node_name].remove(feed)

    def _changed(self, old: Json | None, new: Json | None) -> None:
        before, after = _node_of(old), _node_of(new)
        if before == after:
            self._tell(after, old, new)
            return
        self._tell(before, old, None)
        self._tell(after, None, new)

    def _tell(self, node_name: str, old: Json | None, new: Json | None) -> None:
        if node_name and (old is not None or new is not None):
            for feed in self._feeds.get(node_name, ()):
                feed.tell(old, new)


class NodePods:
    """What an agent uses in place of an informer of its own. Nothing is told before `run`."""

    def __init__(self, shared: SharedPods, node_name: str) -> None:
        self._shared = shared
        self._handlers: list[Handler[Json]] = []
        self.node_name = node_name

    def __iter__(self) -> Iterator[Json]:
        return iter(self._shared.on(self.node_name))

    @property
    def has_synced(self) -> bool:
        return self._shared.has_synced

    async def wait_synced(self) -> None:
        await self._shared.wait_synced()

    def add_handler(self, handler: Handler[Json]) -> None:
        self._handlers.append(handler)

    async def run(self) -> None:
        for pod in self:
            self.tell(None, pod)
        self._shared.join(self)
        try:
            await asyncio.get_running_loop().create_future()  # until cancelled
        finally:
            self._shared.leave(self)

    def tell(self, old: Json | None, new: Json | None) -> None:
        for handler in self._handlers:
            handler(old, new)
