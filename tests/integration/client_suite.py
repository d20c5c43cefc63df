"""What every `Client` does, whatever it talks to. Subclasses provide the `client` fixture."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dray.api.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
)
from dray.api.meta import Json
from dray.api.resources import (
    CONFIG_MAPS,
    DEVICE_CLASSES,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dray.runtime.client import Client, EventType, PatchStep, PatchType

SLICES_V1BETA1 = Resource("resource.k8s.io", "v1beta1", "resourceslices", "ResourceSlice", False)
EVENTS_NEW = Resource("events.k8s.io", "v1", "events", "Event", True)


def make_config_map(name: str, **data: str) -> Json:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


def make_claim(name: str, *, labels: dict[str, str] | None = None) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
    }


def make_result() -> Json:
    return {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}


def make_slice(name: str, node: str) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "A100"}}}],
        },
    }


def make_pod(name: str) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }


async def names(client: Client, resource: Resource, **options: Any) -> list[str]:
    page = await client.list(resource, **options)
    return [item["metadata"]["name"] for item in page["items"]]


class ClientSuite:
    async def test_created_objects_can_be_read_back(self, client: Client) -> None:
        created = await client.create(RESOURCE_CLAIMS, make_claim("c1"))
        assert created["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
        read = await client.get(RESOURCE_CLAIMS, "c1", "default")
        assert read == created
        assert read["kind"] == "ResourceClaim"
        assert read["apiVersion"] == "resource.k8s.io/v1"

    async def test_generated_names_differ(self, client: Client) -> None:
        body = {"metadata": {"generateName": "x-", "namespace": "default"}}
        first = await client.create(CONFIG_MAPS, body)
        second = await client.create(CONFIG_MAPS, body)
        assert first["metadata"]["name"] != second["metadata"]["name"]
        assert first["metadata"]["name"].startswith("x-")

    async def test_a_name_is_taken_once(self, client: Client) -> None:
        await client.create(CONFIG_MAPS, make_config_map("taken"))
        with pytest.raises(AlreadyExists, match='configmaps "taken" already exists'):
            await client.create(CONFIG_MAPS, make_config_map("taken"))

    async def test_what_does_not_exist_is_not_found(self, client: Client) -> None:
        with pytest.raises(NotFound, match='configmaps "nope" not found'):
            await client.get(CONFIG_MAPS, "nope", "default")
        with pytest.raises(NotFound):
            await client.delete(CONFIG_MAPS, "nope", "default")
        with pytest.raises(NotFound):
            await client.patch(CONFIG_MAPS, "nope", {"data": {"a": "b"}}, "default")

    async def test_nothing_is_created_in_a_namespace_that_does_not_exist(self, client: Client) -> None:
        with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
            await client.create(CONFIG_MAPS, {"metadata": {"name": "x", "namespace": "nowhere"}})

    async def test_invalid_objects_are_refused_with_causes(self, client: Client) -> None:
        with pytest.raises(Invalid) as caught:
            await client.create(DEVICE_CLASSES, {"metadata": {"name": "Bad_Name"}, "spec": {}})
        causes = caught.value.details["causes"]
        assert [cause["field"] for cause in causes] == ["metadata.name"]

    async def test_stale_updates_conflict(self, client: Client) -> None:
        created = await client.create(CONFIG_MAPS, make_config_map("cas", value="1"))
        await client.update(CONFIG_MAPS, {**created, "data": {"value": "2"}})
        with pytest.raises(Conflict, match="the object has been modified"):
            await client.update(CONFIG_MAPS, {**created, "data": {"value": "3"}})
        assert (await client.get(CONFIG_MAPS, "cas", "default"))["data"] == {"value": "2"}

    async def test_an_update_that_changes_nothing_keeps_the_revision(self, client: Client) -> None:
        created = await client.create(CONFIG_MAPS, make_config_map("same", value="1"))
        again = await client.update(CONFIG_MAPS, created)
        assert again["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]

    async def test_status_is_written_through_its_subresource_only(self, client: Client) -> None:
        claim = await client.create(RESOURCE_CLAIMS, make_claim("st"))
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
        wanted = {**claim, "status": {"allocation": {"devices": {"results": [result]}}}}
        ignored = await client.update(RESOURCE_CLAIMS, wanted)
        assert ignored["status"] == {}
        written = await client.update(RESOURCE_CLAIMS, wanted, subresource="status")
        assert written["status"]["allocation"]["devices"]["results"] == [result]

    @pytest.mark.parametrize(
        ("patch_type", "patch"),
        [
            (PatchType.MERGE, {"data": {"a": None, "c": "3"}}),
            (PatchType.STRATEGIC, {"data": {"a": None, "c": "3"}}),
            (
                PatchType.JSON,
                [{"op": "remove", "path": "/data/a"}, {"op": "add", "path": "/data/c", "value": "3"}],
            ),
        ],
    )
    async def test_patches_change_what_they_name(self, client: Client, patch_type: PatchType, patch: Any) -> None:
        await client.create(CONFIG_MAPS, make_config_map("patched", a="1", b="2"))
        patched = await client.patch(CONFIG_MAPS, "patched", patch, "default", patch_type=patch_type)
        assert patched["data"] == {"b": "2", "c": "3"}

    async def test_steps_build_on_each_other(self, client: Client) -> None:
        claim = await client.create(RESOURCE_CLAIMS, make_claim("c"))
        uid, revision = claim["metadata"]["uid"], claim["metadata"]["resourceVersion"]
        finalizer = PatchStep({"metadata": {"finalizers": ["example.com/held"]}})
        allocation = PatchStep({"status": {"allocation": {"devices": {"results": [make_result()]}}}}, "status")
        steps = [finalizer.provided(uid, revision), allocation]
        written = await client.patch_steps(RESOURCE_CLAIMS, "c", steps, "default")
        assert written["metadata"]["finalizers"] == ["example.com/held"]
        assert written["status"]["allocation"]["devices"]["results"] == [make_result()]
        assert await client.get(RESOURCE_CLAIMS, "c", "default") == written
        with pytest.raises(Conflict):
            await client.patch_steps(RESOURCE_CLAIMS, "c", steps, "default")

    async def test_steps_that_are_joined_all_fail_with_one(self, client: Client) -> None:
        await client.create(RESOURCE_CLAIMS, make_claim("c"))
        label = PatchStep({"metadata": {"labels": {"a": "b"}}})
        reserved = PatchStep({"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}, "status")
        with pytest.raises(Invalid):
            await client.patch_steps(RESOURCE_CLAIMS, "c", [label, reserved], "default")
        claim = await client.get(RESOURCE_CLAIMS, "c", "default")
        assert ("labels" in claim["metadata"]) is not client.joins_steps

    async def test_the_last_finalizer_in_a_step_lets_the_object_go(self, client: Client) -> None:
        claim = make_claim("c")
        claim["metadata"]["finalizers"] = ["example.com/held"]
        await client.create(RESOURCE_CLAIMS, claim)
        await client.delete(RESOURCE_CLAIMS, "c", "default")
        steps = [PatchStep({"status": {}}, "status"), PatchStep({"metadata": {"finalizers": None}})]
        await client.patch_steps(RESOURCE_CLAIMS, "c", steps, "default")
        with pytest.raises(NotFound):
            await client.get(RESOURCE_CLAIMS, "c", "default")

    async def test_apply_creates_then_merges_and_knows_its_owners(self, client: Client) -> None:
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "applied", "namespace": "default"},
            "data": {"a": "1", "b": "1"},
        }

        async def apply(data: dict[str, str], manager: str, force: bool = False) -> Json:
            return await client.patch(
                CONFIG_MAPS,
                "applied",
                {**config, "data": data},
                "default",
                patch_type=PatchType.APPLY,
                field_manager=manager,
                force=force,
            )

        await apply({"a": "1", "b": "1"}, "alice")
        with pytest.raises(Conflict, match=r'conflict with "alice": \.data\.a'):
            await apply({"a": "2"}, "bob")
        taken = await apply({"a": "2"}, "bob", force=True)
        assert taken["data"] == {"a": "2", "b": "1"}
        dropped = await apply({}, "alice")
        assert dropped["data"] == {"a": "2"}

    async def test_finalizers_hold_an_object_until_they_are_gone(self, client: Client) -> None:
        body = make_config_map("held")
        body["metadata"]["finalizers"] = ["example.com/hold"]
        await client.create(CONFIG_MAPS, body)
        marked = await client.delete(CONFIG_MAPS, "held", "default")
        assert marked["metadata"]["deletionTimestamp"]
        await client.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, "default")
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, "held", "default")

    async def test_a_delete_can_insist_on_the_object_it_means(self, client: Client) -> None:
        created = await client.create(CONFIG_MAPS, make_config_map("precise"))
        with pytest.raises(Conflict, match="the UID in the precondition"):
            await client.delete(CONFIG_MAPS, "precise", "default", uid="other")
        with pytest.raises(Conflict, match="the ResourceVersion in the precondition"):
            await client.delete(CONFIG_MAPS, "precise", "default", resource_version="1")
        await client.delete(CONFIG_MAPS, "precise", "default", uid=created["metadata"]["uid"])
        assert "precise" not in await names(client, CONFIG_MAPS, namespace="default")

    async def test_lists_come_in_pages_of_one_revision(self, client: Client) -> None:
        for number in range(5):
            await client.create(RESOURCE_CLAIMS, make_claim(f"p{number}"))
        page = await client.list(RESOURCE_CLAIMS, "default", limit=2)
        found = [item["metadata"]["name"] for item in page["items"]]
        assert page["metadata"]["remainingItemCount"] == 3
        await client.create(RESOURCE_CLAIMS, make_claim("p9"))
        while token := page["metadata"].get("continue"):
            page = await client.list(RESOURCE_CLAIMS, "default", limit=2, continue_token=token)
            found += [item["metadata"]["name"] for item in page["items"]]
        assert found == ["p0", "p1", "p2", "p3", "p4"]

    async def test_selectors_pick_objects(self, client: Client) -> None:
        await client.create(RESOURCE_CLAIMS, make_claim("a", labels={"app": "x", "tier": "1"}))
        await client.create(RESOURCE_CLAIMS, make_claim("b", labels={"app": "x"}))
        await client.create(RESOURCE_SLICES, make_slice("s1", "n1"))
        await client.create(RESOURCE_SLICES, make_slice("s2", "n2"))
        assert await names(client, RESOURCE_CLAIMS, label_selector="app=x,tier") == ["a"]
        assert await names(client, RESOURCE_CLAIMS, label_selector="app in (x),!tier") == ["b"]
        assert await names(client, RESOURCE_CLAIMS, field_selector="metadata.name=b") == ["b"]
        assert await names(client, RESOURCE_SLICES, field_selector="spec.nodeName=n2") == ["s2"]
        with pytest.raises(BadRequest, match="not a known field selector"):
            await client.list(RESOURCE_CLAIMS, field_selector="spec.nope=1")
        with pytest.raises(BadRequest, match="unable to parse requirement"):
            await client.list(RESOURCE_CLAIMS, label_selector="a b c")

    async def test_a_watch_goes_on_where_a_list_ended(self, client: Client) -> None:
        listed = await client.list(RESOURCE_CLAIMS, "default")
        await client.create(RESOURCE_CLAIMS, make_claim("w", labels={"w": "1"}))
        await client.patch(RESOURCE_CLAIMS, "w", {"metadata": {"labels": {"w": "2"}}}, "default")
        await client.delete(RESOURCE_CLAIMS, "w", "default")
        revision = listed["metadata"]["resourceVersion"]
        seen = await self._watch(client, 3, resource_version=revision)
        assert seen == [(EventType.ADDED, "1"), (EventType.MODIFIED, "2"), (EventType.DELETED, "2")]
        selected = await self._watch(client, 2, resource_version=revision, label_selector="w=1")
        assert selected == [(EventType.ADDED, "1"), (EventType.DELETED, "1")]

    async def _watch(self, client: Client, count: int, **options: Any) -> list[tuple[EventType, str]]:
        seen = []
        async with asyncio.timeout(10), client.watch(RESOURCE_CLAIMS, "default", **options) as events:
            async for event in events:
                seen.append((event.type, event.object["metadata"]["labels"]["w"]))
                if len(seen) == count:
                    break
        return seen

    async def test_a_watch_sees_what_happens_while_it_waits(self, client: Client) -> None:
        listed = await client.list(CONFIG_MAPS, "default")
        revision = listed["metadata"]["resourceVersion"]
        async with asyncio.timeout(10), client.watch(CONFIG_MAPS, "default", resource_version=revision) as events:
            waiting = asyncio.ensure_future(anext(events))
            await client.create(CONFIG_MAPS, make_config_map("live"))
            event = await waiting
        assert (event.type, event.object["metadata"]["name"]) == (EventType.ADDED, "live")

    async def test_a_watch_without_revision_begins_with_what_is_there(self, client: Client) -> None:
        await client.create(CONFIG_MAPS, make_config_map("there"))
        async with (
            asyncio.timeout(10),
            client.watch(CONFIG_MAPS, "default", field_selector="metadata.name=there") as events,
        ):
            event = await anext(events)
        assert (event.type, event.object["metadata"]["name"]) == (EventType.ADDED, "there")

    async def test_a_watch_ends_at_its_timeout(self, client: Client) -> None:
        async with asyncio.timeout(10), client.watch(CONFIG_MAPS, "default", timeout_seconds=1) as events:
            async for _ in events:
                pass

    async def test_other_versions_show_the_same_object_in_their_shape(self, client: Client) -> None:
        await client.create(RESOURCE_SLICES, make_slice("s1", "n1"))
        old = await client.get(SLICES_V1BETA1, "s1")
        assert old["apiVersion"] == "resource.k8s.io/v1beta1"
        assert old["spec"]["devices"][0]["basic"]["attributes"] == {"model": {"string": "A100"}}

    async def test_events_are_one_thing_in_both_their_groups(self, client: Client) -> None:
        event = {
            "metadata": {"name": "e1", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "reason": "Because",
            "message": "it happened",
            "type": "Normal",
        }
        await client.create(EVENTS, event)
        new = await client.get(EVENTS_NEW, "e1", "default")
        assert (new["note"], new["regarding"]["name"], new["apiVersion"]) == ("it happened", "p", "events.k8s.io/v1")
        assert await names(client, EVENTS, field_selector="involvedObject.name=p") == ["e1"]

    async def test_a_pod_is_bound_once(self, client: Client) -> None:
        await client.create(PODS, make_pod("p1"))
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p1"}, "target": {"name": "n1"}}
        await client.create(PODS, binding, "default", subresource="binding", name="p1")
        bound = await client.get(PODS, "p1", "default")
        assert bound["spec"]["nodeName"] == "n1"
        assert bound["status"]["conditions"][0]["type"] == "PodScheduled"
        with pytest.raises(Conflict, match='already assigned to node "n1"'):
            await client.create(PODS, binding, "default", subresource="binding", name="p1")

    async def test_a_running_pod_is_deleted_gracefully(self, client: Client) -> None:
        await client.create(PODS, make_pod("p1"))
        binding = {"metadata": {"name": "p1"}, "target": {"name": "n1"}}
        await client.create(PODS, binding, "default", subresource="binding", name="p1")
        marked = await client.delete(PODS, "p1", "default")
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
        await client.delete(PODS, "p1", "default", grace_period_seconds=0)
        with pytest.raises(NotFound):
            await client.get(PODS, "p1", "default")

    async def test_an_eviction_deletes_the_pod(self, client: Client) -> None:
        await client.create(PODS, make_pod("p1"))
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p1"}}
        await client.create(PODS, eviction, "default", subresource="eviction", name="p1")
        assert await names(client, PODS) == []

    async def test_a_collection_is_deleted_by_selector(self, client: Client) -> None:
        await client.create(RESOURCE_SLICES, make_slice("s1", "n1"))
        await client.create(RESOURCE_SLICES, make_slice("s2", "n2"))
        await client.delete_collection(RESOURCE_SLICES, field_selector="spec.nodeName=n1")
        assert await names(client, RESOURCE_SLICES) == ["s2"]

    async def test_a_namespace_comes_with_an_account_and_the_root_certificate(self, client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "team"}})
        assert "kube-root-ca.crt" in await names(client, CONFIG_MAPS, namespace="team")
        with pytest.raises(Forbidden, match="this namespace may not be deleted"):
            await client.delete(NAMESPACES, "default")

    async def test_a_deleted_namespace_takes_nothing_new_and_goes_when_finalized(self, client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "team"}})
        deleted = await client.delete(NAMESPACES, "team")
        assert deleted["status"]["phase"] == "Terminating"
        with pytest.raises(Forbidden, match="because it is being terminated"):
            await client.create(CONFIG_MAPS, {"metadata": {"name": "x", "namespace": "team"}})
        current = await client.get(NAMESPACES, "team")
        await client.update(NAMESPACES, {**current, "spec": {"finalizers": []}}, subresource="finalize")
        with pytest.raises(NotFound):
            await client.get(NAMESPACES, "team")

    async def test_a_revision_from_before_the_history_is_expired(self, client: Client) -> None:
        await self.forget_history(client)
        with pytest.raises(Expired):
            async with asyncio.timeout(10), client.watch(CONFIG_MAPS, resource_version="1") as events:
                await anext(events)

    async def forget_history(self, client: Client) -> None:
        raise NotImplementedError

    async def test_nodes_keep_the_status_they_register_with(self, client: Client) -> None:
        node = {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "4000m"}}}
        created = await client.create(NODES, node)
        assert created["status"]["capacity"] == {"cpu": "4"}
