"""The claim controller: one claim per entry of a pod, and nothing kept that nobody uses."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dray.api.claims import CLAIM_FINALIZER
from dray.api.meta import Json
from dray.api.pods import view_pod
from dray.api.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from dray.controllers.claims import ClaimController
from dray.controllers.metrics import ClaimMetrics
from dray.runtime.decoding import decode_claim, decode_template
from dray.runtime.informers import Informers
from dray.runtime.queue import Reconcile, WorkQueue
from dray.testing.builders import make_claim, make_pod, make_template
from tests.integration.world import World


@pytest.fixture
async def world() -> World:
    return await World.make()


def at_work(world: World, *, first: Resource = PODS) -> AbstractAsyncContextManager[None]:
    """`first` is what the controller gets to see before anything else."""
    world.metrics = CollectorRegistry()

    def make(informers: Informers, queue: WorkQueue[Any]) -> Reconcile[Any]:
        informers.of(first)
        controller = ClaimController(
            world.client,
            informers.typed(PODS, view_pod),
            informers.typed(RESOURCE_CLAIMS, decode_claim),
            informers.typed(RESOURCE_CLAIM_TEMPLATES, decode_template),
            world.recorder,
            ClaimMetrics(world.metrics),
            queue,
        )
        return controller.reconcile

    return world.controlling(make)


def owner_of(pod: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
        "controller": True,
    }


async def claim_names(world: World, pod: str) -> list[str]:
    status = (await world.get(PODS, pod)).get("status", {})
    return [entry["resourceClaimName"] for entry in status.get("resourceClaimStatuses", [])]


async def test_a_pod_gets_a_claim_from_its_template_and_its_name_in_the_status(world: World) -> None:
    async with at_work(world):
        template = make_template("t")
        template["spec"]["metadata"] = {"labels": {"team": "ml"}, "annotations": {"why": "test"}}
        await world.create(template, make_pod("p", template="t"))
        await world.settle()
    (claim,) = await world.all(RESOURCE_CLAIMS)
    metadata = claim["metadata"]
    assert metadata["name"].startswith("p-gpu-")
    assert metadata["labels"] == {"team": "ml"}
    assert metadata["annotations"] == {"why": "test", "resource.kubernetes.io/pod-claim-name": "gpu"}
    assert await claim_names(world, "p") == [metadata["name"]]
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "p", True)


async def test_a_pod_that_came_before_its_template_gets_its_claim_when_that_comes(world: World) -> None:
    async with at_work(world):
        await world.create(make_pod("p", template="t"))
        await world.settle()
        (message,) = await world.events("FailedResourceClaimCreation")
        assert 'PodResourceClaim gpu: resource claim template "t"' in message
        await world.create(make_template("t"))
        await world.settle()
    assert len(await claim_names(world, "p")) == 1


async def test_a_claim_made_before_a_crash_is_used_after_it(world: World) -> None:
    pod = await world.create(make_template("t"), make_pod("p", template="t"))
    claim = make_claim("p-gpu-abcde")
    claim["metadata"] |= {
        "ownerReferences": [owner_of(pod)],
        "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"},
    }
    await world.create(claim)
    async with at_work(world):
        pass
    assert await world.names(RESOURCE_CLAIMS) == ["p-gpu-abcde"]
    assert await claim_names(world, "p") == ["p-gpu-abcde"]


@pytest.mark.parametrize("first", [PODS, RESOURCE_CLAIMS], ids=["pods", "claims"])
async def test_of_two_claims_that_were_made_for_one_entry_the_noted_one_stays(world: World, first: Resource) -> None:
    pod = await world.create(make_template("t"), make_pod("p", template="t"))
    for name in ("p-gpu-aaaaa", "p-gpu-bbbbb"):
        claim = make_claim(name)
        annotations = {"resource.kubernetes.io/pod-claim-name": "gpu"}
        claim["metadata"] |= {"ownerReferences": [owner_of(pod)], "annotations": annotations}
        await world.create(claim)
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-bbbbb"}]}
    await world.client.patch(PODS, "p", {"status": status}, "default", subresource="status")
    async with at_work(world, first=first):
        pass
    assert await claim_names(world, "p") == ["p-gpu-bbbbb"]
    assert await world.names(RESOURCE_CLAIMS) == ["p-gpu-bbbbb"]


async def test_a_restart_makes_nothing_new(world: World) -> None:
    async with at_work(world):
        await world.create(make_template("t"), make_pod("p", template="t"))
        await world.settle()
    revision = world.registry.store.current_revision
    async with at_work(world):
        pass
    assert world.registry.store.current_revision == revision


async def test_a_deleted_claim_of_a_waiting_pod_is_made_again(world: World) -> None:
    async with at_work(world):
        await world.create(make_template("t"), make_pod("p", template="t"))
        await world.settle()
        (first,) = await claim_names(world, "p")
        await world.delete(RESOURCE_CLAIMS, first)
        await world.settle()
        (second,) = await claim_names(world, "p")
    assert first != second
    assert await world.names(RESOURCE_CLAIMS) == [second]


async def test_a_claim_that_belongs_to_another_is_not_taken(world: World) -> None:
    await world.create(make_template("t"), make_pod("p", template="t"), make_claim("foreign"))
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "foreign"}]}
    await world.client.patch(PODS, "p", {"status": status}, "default", subresource="status")
    async with at_work(world):
        (message,) = await world.events("FailedResourceClaimCreation")
    assert 'resource claim "foreign" was not created for this pod' in message


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_the_claim_of_a_finished_pod_is_released_and_deleted(world: World, phase: str) -> None:
    async with at_work(world):
        await world.create(make_template("t"), make_pod("p", template="t"))
        await world.settle()
        (name,) = await claim_names(world, "p")
        await world.allocate(name, "gpu-0", "p")
        await world.bind("p", "n1")
        await world.settle()
        assert (await world.get(RESOURCE_CLAIMS, name))["status"]["allocation"]
        await world.set_phase("p", phase)
        await world.settle()
    assert await world.names(RESOURCE_CLAIMS) == []


async def test_a_claim_by_name_is_deallocated_and_kept_when_its_last_pod_is_done(world: World) -> None:
    await world.create(make_claim("shared"), make_pod("a", claim="shared"), make_pod("b", claim="shared"))
    await world.allocate("shared", "gpu-0", "a", "b")
    async with at_work(world):
        await world.bind("a", "n1")
        await world.bind("b", "n1")
        await world.set_phase("a", "Succeeded")
        await world.settle()
        claim = await world.get(RESOURCE_CLAIMS, "shared")
        assert [user["name"] for user in claim["status"]["reservedFor"]] == ["b"]
        assert claim["status"]["allocation"]
        assert claim["metadata"]["finalizers"] == [CLAIM_FINALIZER]
        await world.set_phase("b", "Failed")
        await world.settle()
        claim = await world.get(RESOURCE_CLAIMS, "shared")
    assert claim["status"] == {}
    assert "finalizers" not in claim["metadata"]


async def test_the_reservation_of_a_pod_that_vanished_while_nobody_looked_is_removed(world: World) -> None:
    await world.create(make_claim("c"), make_pod("p", claim="c"))
    await world.allocate("c", "gpu-0", "p")
    await world.delete(PODS, "p", grace_period_seconds=0)
    async with at_work(world):
        pass
    assert (await world.get(RESOURCE_CLAIMS, "c"))["status"] == {}


async def test_the_reservation_of_another_pod_of_the_same_name_is_removed(world: World) -> None:
    await world.create(make_claim("c"), make_pod("p", claim="c"))
    await world.allocate("c", "gpu-0", "p")
    await world.delete(PODS, "p", grace_period_seconds=0)
    await world.create(make_pod("p", claim="c"))
    async with at_work(world):
        pass
    assert (await world.get(RESOURCE_CLAIMS, "c"))["status"] == {}


@pytest.mark.parametrize("claim", ["c", ""], ids=["same claim", "no claim"])
async def test_a_pod_that_was_replaced_unseen_gives_up_its_claim(world: World, claim: str) -> None:
    await world.create(make_claim("c"), make_pod("p", claim="c"))
    await world.allocate("c", "gpu-0", "p")
    async with at_work(world):
        await world.delete(PODS, "p", grace_period_seconds=0)
        await world.create(make_pod("p", claim=claim))
        await world.registry.store.compact(world.registry.store.current_revision)  # pods are listed again
        await world.settle()
        await world.advance(1)
    assert (await world.get(RESOURCE_CLAIMS, "c"))["status"] == {}


async def test_a_finished_pod_gives_up_the_claim_for_its_extended_resources(world: World) -> None:
    await world.create(make_claim("c"), make_pod("p"))
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "gpu"}
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": [mapping]}}
    await world.client.patch(PODS, "p", {"status": status}, "default", subresource="status")
    await world.allocate("c", "gpu-0", "p")
    async with at_work(world):
        await world.set_phase("p", "Succeeded")
        await world.settle()
    assert (await world.get(RESOURCE_CLAIMS, "c"))["status"] == {}


async def test_reservations_of_consumers_that_are_no_pods_are_left_alone(world: World) -> None:
    await world.create(make_claim("c"))
    await world.allocate("c", "gpu-0")
    user = {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "u"}
    await world.client.patch(RESOURCE_CLAIMS, "c", {"status": {"reservedFor": [user]}}, "default", subresource="status")
    async with at_work(world):
        pass
    claim = await world.get(RESOURCE_CLAIMS, "c")
    assert claim["status"]["reservedFor"] == [user]
    assert claim["status"]["allocation"]


async def test_an_allocated_claim_that_nobody_uses_stays_allocated(world: World) -> None:
    await world.create(make_claim("c"))
    await world.allocate("c", "gpu-0")
    async with at_work(world):
        pass
    assert (await world.get(RESOURCE_CLAIMS, "c"))["status"]["allocation"]


async def test_a_deleted_claim_goes_when_it_is_no_longer_used(world: World) -> None:
    await world.create(make_claim("c"), make_pod("p", claim="c"))
    await world.allocate("c", "gpu-0", "p")
    async with at_work(world):
        await world.bind("p", "n1")
        await world.delete(RESOURCE_CLAIMS, "c")
        await world.settle()
        assert (await world.get(RESOURCE_CLAIMS, "c"))["status"]["allocation"]
        await world.set_phase("p", "Succeeded")
        await world.settle()
    assert not await world.exists(RESOURCE_CLAIMS, "c")


async def test_a_deleted_claim_that_was_never_used_goes_at_once(world: World) -> None:
    await world.create(make_claim("c"))
    await world.allocate("c", "gpu-0")
    async with at_work(world):
        await world.delete(RESOURCE_CLAIMS, "c")
        await world.settle()
    assert not await world.exists(RESOURCE_CLAIMS, "c")


async def test_a_pod_that_is_deleted_before_it_had_a_node_gives_up_its_claim(world: World) -> None:
    async with at_work(world):
        pod = make_pod("p", template="t")
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(make_template("t"), pod)
        await world.settle()
        (name,) = await claim_names(world, "p")
        await world.allocate(name, "gpu-0", "p")
        await world.delete(PODS, "p")
        await world.settle()
    assert await world.names(RESOURCE_CLAIMS) == []


async def test_the_claim_of_a_pod_that_was_replaced_is_deleted(world: World) -> None:
    pod = await world.create(make_pod("p"))
    claim = make_claim("p-gpu-abcde")
    claim["metadata"]["ownerReferences"] = [owner_of(pod)]
    await world.create(claim)
    await world.delete(PODS, "p", grace_period_seconds=0)
    await world.create(make_pod("p"))
    async with at_work(world):
        pass
    assert await world.names(RESOURCE_CLAIMS) == []


async def test_a_pod_that_was_scheduled_by_hand_gets_its_allocated_claim_reserved(world: World) -> None:
    await world.create(make_claim("c"))
    await world.allocate("c", "gpu-0")
    async with at_work(world):
        await world.create(make_pod("p", claim="c", nodeName="n1"))
        await world.settle()
    claim = await world.get(RESOURCE_CLAIMS, "c")
    assert [user["name"] for user in claim["status"]["reservedFor"]] == ["p"]


async def test_the_numbers_that_the_kep_asks_for_are_kept(world: World) -> None:
    async with at_work(world):
        constraint = {"matchAttribute": "gpu.example.com/root"}
        await world.create(make_template("t"), make_pod("p", template="t"), make_claim("c", constraints=[constraint]))
        await world.settle()
        await world.allocate("c", "gpu-0")
        await world.settle()

    def value(name: str, **labels: str) -> float | None:
        return world.metrics.get_sample_value(name, labels)

    assert value("resourceclaim_controller_create_total") == 1
    assert value("resourceclaim_controller_allocated_resource_claims") == 1
    assert value("resourceclaim_controller_resource_claims", allocated="true", admin_access="false", source="") == 1
    assert value("resourceclaim_controller_with_match_attribute_constraint") == 1
    assert value("resourceclaim_controller_with_cel_constraint") == 0
    generated = {"allocated": "false", "admin_access": "false", "source": "resource_claim_template"}
    assert value("resourceclaim_controller_resource_claims", **generated) == 1


async def test_a_claim_that_changes_its_source_is_counted_once(world: World) -> None:
    await world.create(make_claim("c"))
    async with at_work(world):
        annotations = {"resource.kubernetes.io/pod-claim-name": "gpu"}
        await world.client.patch(RESOURCE_CLAIMS, "c", {"metadata": {"annotations": annotations}}, "default")
        await world.settle()
        await world.delete(RESOURCE_CLAIMS, "c")
        await world.settle()
    counts = [metric.samples for metric in world.metrics.collect() if metric.name.endswith("_resource_claims")]
    assert {sample.value for samples in counts for sample in samples} == {0}
