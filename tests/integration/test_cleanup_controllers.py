"""Namespaces, pods and slices that nobody else would remove; and what every namespace starts with."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.meta import Json
from dray.api.nodes import view_node
from dray.api.pods import view_pod
from dray.api.resources import (
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
)
from dray.controllers.namespaces import NamespaceController
from dray.controllers.podgc import PodGarbageCollector
from dray.controllers.serviceaccounts import ServiceAccountController
from dray.controllers.slices import SliceCleanup
from dray.runtime.decoding import decode_slice
from dray.runtime.informers import Informers
from dray.runtime.queue import Reconcile, WorkQueue
from dray.testing.builders import make_claim, make_node, make_pod, make_slice
from tests.integration.world import World


@pytest.fixture
async def world() -> World:
    return await World.make()


def make_namespace(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


class TestNamespaces:
    @staticmethod
    def at_work(world: World) -> Any:
        def make(informers: Informers, queue: WorkQueue[Any]) -> Reconcile[Any]:
            return NamespaceController(world.client, informers.of(NAMESPACES), queue).reconcile

        return world.controlling(make)

    async def test_a_deleted_namespace_goes_with_everything_in_it(self, world: World) -> None:
        await world.create(make_namespace("team"), make_claim("c", namespace="team"), make_pod("p", namespace="team"))
        async with self.at_work(world):
            await world.delete(NAMESPACES, "team")
            await world.settle()
            await world.advance(1)
        assert not await world.exists(NAMESPACES, "team")
        assert await world.names(RESOURCE_CLAIMS, "team") == []
        assert await world.exists(NAMESPACES, "default")

    async def test_what_has_finalizers_holds_the_namespace_until_they_are_gone(self, world: World) -> None:
        claim = make_claim("c", namespace="team")
        claim["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(make_namespace("team"), claim)
        async with self.at_work(world):
            await world.delete(NAMESPACES, "team")
            await world.advance(10)
            assert (await world.get(NAMESPACES, "team"))["status"]["phase"] == "Terminating"
            await world.client.patch(RESOURCE_CLAIMS, "c", {"metadata": {"finalizers": None}}, "team")
            await world.advance(1)
            await world.advance(1)
        assert not await world.exists(NAMESPACES, "team")


class TestServiceAccounts:
    @staticmethod
    def at_work(world: World, root_ca: str) -> Any:
        def make(informers: Informers, queue: WorkQueue[Any]) -> Reconcile[Any]:
            of = informers.of
            return ServiceAccountController(
                world.client, of(NAMESPACES), of(SERVICE_ACCOUNTS), of(CONFIG_MAPS), queue, root_ca=root_ca
            ).reconcile

        return world.controlling(make)

    async def test_what_every_namespace_has_is_made_again_when_it_is_deleted(self, world: World) -> None:
        async with self.at_work(world, "PEM"):
            await world.delete(SERVICE_ACCOUNTS, "default")
            await world.delete(CONFIG_MAPS, "kube-root-ca.crt")
            await world.settle()
        assert await world.exists(SERVICE_ACCOUNTS, "default")
        assert (await world.get(CONFIG_MAPS, "kube-root-ca.crt"))["data"] == {"ca.crt": "PEM"}

    async def test_a_root_certificate_that_somebody_changed_is_put_right(self, world: World) -> None:
        async with self.at_work(world, "PEM"):
            await world.client.patch(CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "evil"}}, "default")
            await world.settle()
        assert (await world.get(CONFIG_MAPS, "kube-root-ca.crt"))["data"] == {"ca.crt": "PEM"}

    async def test_nothing_is_made_in_a_namespace_that_goes(self, world: World) -> None:
        await world.create(make_namespace("team"))
        await world.delete(NAMESPACES, "team")
        await world.delete(SERVICE_ACCOUNTS, "default", "team")
        async with self.at_work(world, "PEM"):
            pass
        assert not await world.exists(SERVICE_ACCOUNTS, "default", "team")


class TestPods:
    @staticmethod
    def at_work(world: World) -> Any:
        def make(informers: Informers, queue: WorkQueue[Any]) -> Reconcile[Any]:
            return PodGarbageCollector(
                world.client, world.clock, informers.typed(PODS, view_pod), informers.typed(NODES, view_node), queue
            ).reconcile

        return world.controlling(make)

    async def test_pods_of_a_deleted_node_fail_and_go_after_a_moment(self, world: World) -> None:
        await world.create(make_node("n1"), make_pod("p", nodeName="n1"))
        async with self.at_work(world):
            await world.delete(NODES, "n1")
            await world.advance(1)
            assert await world.exists(PODS, "p")
            await world.advance(2)
        assert not await world.exists(PODS, "p")

    async def test_a_node_that_comes_in_time_keeps_its_pods(self, world: World) -> None:
        async with self.at_work(world):
            await world.create(make_pod("p", nodeName="n1"))
            await world.settle()
            await world.create(make_node("n1"))
            await world.advance(60)
        assert await world.exists(PODS, "p")

    async def test_a_finished_pod_keeps_its_phase(self, world: World) -> None:
        pod = make_pod("p", nodeName="gone")
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(pod)
        await world.set_phase("p", "Succeeded")
        async with self.at_work(world):
            await world.advance(5)
        assert (await world.get(PODS, "p"))["status"]["phase"] == "Succeeded"

    async def test_a_pod_that_loses_its_node_says_so(self, world: World) -> None:
        pod = make_pod("p", nodeName="gone")
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(pod)
        async with self.at_work(world):
            await world.advance(5)
        status = (await world.get(PODS, "p"))["status"]
        assert status["phase"] == "Failed"
        (condition,) = [c for c in status["conditions"] if c["type"] == "DisruptionTarget"]
        assert (condition["reason"], condition["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")

    async def test_a_pod_that_is_deleted_on_a_node_out_of_service_goes_without_an_agent(self, world: World) -> None:
        node = make_node("n1")
        await world.create(node, make_pod("p", nodeName="n1"), make_pod("stays", nodeName="n1"))
        async with self.at_work(world):
            await world.delete(PODS, "p")
            await world.advance(100)
            assert await world.exists(PODS, "p")
            taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
            await world.client.patch(NODES, "n1", {"spec": {"taints": [taint]}})
            await world.settle()
        assert await world.names(PODS) == ["stays"]

    async def test_a_pod_that_is_deleted_and_had_no_node_goes(self, world: World) -> None:
        pod = make_pod("p")
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(pod)
        async with self.at_work(world):
            await world.delete(PODS, "p")
            await world.client.patch(PODS, "p", {"metadata": {"finalizers": None}}, "default")
            await world.settle()
        assert not await world.exists(PODS, "p")


class TestSlices:
    @staticmethod
    def at_work(world: World) -> Any:
        def make(informers: Informers, queue: WorkQueue[Any]) -> Reconcile[Any]:
            return SliceCleanup(
                world.client, informers.typed(NODES, view_node), informers.typed(RESOURCE_SLICES, decode_slice), queue
            ).reconcile

        return world.controlling(make)

    async def test_the_slices_of_a_deleted_node_go(self, world: World) -> None:
        await world.create(make_node("n1"), make_node("n2"), make_slice("n1", ["a"]), make_slice("n2", ["a"]))
        async with self.at_work(world):
            await world.delete(NODES, "n1")
            await world.settle()
        assert await world.names(RESOURCE_SLICES) == ["n2-gpu.example.com"]

    async def test_slices_that_come_before_their_node_stay(self, world: World) -> None:
        async with self.at_work(world):
            await world.create(make_slice("n1", ["a"]))
            await world.settle()
        assert await world.names(RESOURCE_SLICES) == ["n1-gpu.example.com"]
