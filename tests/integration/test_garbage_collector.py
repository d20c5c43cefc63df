"""The garbage collector: objects go when all their owners are gone, in the way that was asked for."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from dray.api.errors import NotFound
from dray.api.meta import Json
from dray.api.resources import CONFIG_MAPS, NODES, OWNABLE_RESOURCES, RESOURCE_SLICES, SECRETS
from dray.api.views import view_meta
from dray.controllers.garbage import GarbageCollector
from dray.runtime.informers import Informers
from dray.runtime.queue import Reconcile, WorkQueue
from dray.testing.builders import make_node, make_slice
from tests.integration.world import World


@pytest.fixture
async def world() -> World:
    return await World.make()


def at_work(world: World) -> AbstractAsyncContextManager[None]:
    def make(informers: Informers, queue: WorkQueue[Any]) -> Reconcile[Any]:
        return GarbageCollector(
            world.client, [informers.typed(resource, view_meta) for resource in OWNABLE_RESOURCES], queue
        ).reconcile

    return world.controlling(make)


async def make_map(world: World, name: str, *owners: Json, blocking: bool = False, **metadata: Any) -> Json:
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **({"blockOwnerDeletion": True} if blocking else {}),
        }
        for owner in owners
    ]
    body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    body["metadata"] |= {"ownerReferences": references, **metadata}
    return await world.create(body)


async def maps(world: World) -> set[str]:
    return set(await world.names(CONFIG_MAPS, "default")) - {"kube-root-ca.crt"}


async def test_dependents_follow_their_owner_into_the_grave_generation_by_generation(world: World) -> None:
    async with at_work(world):
        owner = await make_map(world, "owner")
        child = await make_map(world, "child", owner)
        await make_map(world, "grandchild", child)
        await make_map(world, "stranger")
        await world.settle()
        await world.delete(CONFIG_MAPS, "owner")
        await world.settle()
    assert await maps(world) == {"stranger"}


async def test_who_has_another_owner_stays_and_loses_the_reference_to_the_one_that_is_gone(world: World) -> None:
    async with at_work(world):
        one, two = await make_map(world, "one"), await make_map(world, "two")
        await make_map(world, "child", one, two)
        await world.delete(CONFIG_MAPS, "one")
        await world.settle()
        child = await world.get(CONFIG_MAPS, "child")
        assert [owner["name"] for owner in child["metadata"]["ownerReferences"]] == ["two"]
        await world.delete(CONFIG_MAPS, "two")
        await world.settle()
    assert await maps(world) == set()


async def test_an_owner_of_the_same_name_but_another_life_is_no_owner(world: World) -> None:
    old = await make_map(world, "owner")
    await make_map(world, "child", old)
    await world.delete(CONFIG_MAPS, "owner")
    await make_map(world, "owner")
    async with at_work(world):
        pass
    assert await maps(world) == {"owner"}


async def test_what_was_orphaned_while_nobody_looked_is_found_at_the_start(world: World) -> None:
    owner = await make_map(world, "owner")
    await make_map(world, "child", owner)
    await world.delete(CONFIG_MAPS, "owner")
    async with at_work(world):
        pass
    assert await maps(world) == set()


async def test_orphans_live_on_without_their_owner(world: World) -> None:
    async with at_work(world):
        owner = await make_map(world, "owner")
        await make_map(world, "child", owner)
        await world.settle()
        await world.delete(CONFIG_MAPS, "owner", propagation_policy="Orphan")
        await world.settle()
    assert await maps(world) == {"child"}
    assert "ownerReferences" not in (await world.get(CONFIG_MAPS, "child"))["metadata"]


async def test_in_foreground_the_owner_waits_for_dependents_that_block_it(world: World) -> None:
    async with at_work(world):
        owner = await make_map(world, "owner")
        await make_map(world, "child", owner, blocking=True, finalizers=["example.com/hold"])
        await world.settle()
        await world.delete(CONFIG_MAPS, "owner", propagation_policy="Foreground")
        await world.settle()
        assert await maps(world) == {"owner", "child"}
        assert "deletionTimestamp" in (await world.get(CONFIG_MAPS, "child"))["metadata"]
        await world.client.patch(CONFIG_MAPS, "child", {"metadata": {"finalizers": None}}, "default")
        await world.settle()
    assert await maps(world) == set()


async def test_in_foreground_dependents_that_do_not_block_do_not_hold_the_owner(world: World) -> None:
    async with at_work(world):
        owner = await make_map(world, "owner")
        await make_map(world, "child", owner, finalizers=["example.com/hold"])
        await world.settle()
        await world.delete(CONFIG_MAPS, "owner", propagation_policy="Foreground")
        await world.settle()
    assert await maps(world) == {"child"}


async def test_in_foreground_a_dependent_that_has_another_owner_holds_nobody(world: World) -> None:
    async with at_work(world):
        owner, other = await make_map(world, "owner"), await make_map(world, "other")
        await make_map(world, "child", owner, other, blocking=True)
        await world.settle()
        await world.delete(CONFIG_MAPS, "owner", propagation_policy="Foreground")
        await world.settle()
    assert await maps(world) == {"other", "child"}


async def test_in_foreground_grandchildren_go_before_children(world: World) -> None:
    async with at_work(world):
        owner = await make_map(world, "owner")
        child = await make_map(world, "child", owner, blocking=True)
        await make_map(world, "grandchild", child, blocking=True, finalizers=["example.com/hold"])
        await world.settle()
        await world.delete(CONFIG_MAPS, "owner", propagation_policy="Foreground")
        await world.settle()
        assert await maps(world) == {"owner", "child", "grandchild"}
        await world.client.patch(CONFIG_MAPS, "grandchild", {"metadata": {"finalizers": None}}, "default")
        await world.settle()
    assert await maps(world) == set()


async def test_owners_of_kinds_that_nobody_knows_are_believed_in(world: World) -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "u"}}
    await make_map(world, "child", owner)
    async with at_work(world):
        pass
    assert await maps(world) == {"child"}


async def test_owners_without_namespace_own_across_kinds(world: World) -> None:
    node = await world.create(make_node("n1"))
    item = make_slice("n1", ["gpu-0"])
    item["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node["metadata"]["uid"]}
    ]
    async with at_work(world):
        await world.create(item)
        await world.settle()
        await world.delete(NODES, "n1")
        await world.settle()
    assert await world.names(RESOURCE_SLICES) == []


async def test_an_owner_that_the_collector_does_not_see_yet_is_asked_for_at_the_server(world: World) -> None:
    secret = await world.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    )
    await make_map(world, "child", secret)

    def blind(informers: Informers, queue: WorkQueue[Any]) -> Reconcile[Any]:
        return GarbageCollector(world.client, [informers.typed(CONFIG_MAPS, view_meta)], queue).reconcile

    async with world.controlling(blind):
        assert await maps(world) == {"child"}
    await world.delete(SECRETS, "s")
    async with world.controlling(blind):
        pass
    with pytest.raises(NotFound):
        await world.get(CONFIG_MAPS, "child")
