"""Decisions follow what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from dray.apiserver.authorization import AccessControl, forbidden
from dray.apiserver.users import Attributes, UserInfo
from dray.store.memory import MemoryStore

ROLES = "/registry/rbac.authorization.k8s.io/clusterroles/"
BINDINGS = "/registry/rbac.authorization.k8s.io/clusterrolebindings/"
ALICE = UserInfo("alice")
NODE = UserInfo("system:node:n1", groups=("system:nodes",))
LIST_PODS = Attributes(ALICE, "list", version="v1", resource="pods", namespace="blue")

READER = msgspec.json.encode(
    {"metadata": {"name": "reader"}, "rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]}
)
BINDING = msgspec.json.encode(
    {
        "metadata": {"name": "readers"},
        "roleRef": {"kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "User", "name": "alice"}],
    }
)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(watch_buffer=2)


@pytest.fixture
async def access(store: MemoryStore) -> AsyncIterator[AccessControl]:
    access = AccessControl(store)
    await store.put(ROLES + "reader", READER)
    await access.start()
    yield access
    await access.stop()


async def settle() -> None:
    """Lets what waits in the event loop happen."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_was_there_before_the_start_counts(store: MemoryStore) -> None:
    await store.put(ROLES + "reader", READER)
    await store.put(BINDINGS + "readers", BINDING)
    access = AccessControl(store)
    await access.start()
    assert access(LIST_PODS).allowed
    await access.stop()


async def test_a_binding_gives_and_its_deletion_takes(store: MemoryStore, access: AccessControl) -> None:
    assert not access(LIST_PODS).allowed
    await store.put(BINDINGS + "readers", BINDING)
    await settle()
    assert access(LIST_PODS).allowed
    await store.delete(BINDINGS + "readers")
    await settle()
    assert not access(LIST_PODS).allowed


async def test_falling_behind_the_store_loses_nothing(store: MemoryStore, access: AccessControl) -> None:
    await store.put(BINDINGS + "readers", BINDING)
    await settle()
    await store.delete(BINDINGS + "readers")
    for i in range(10):  # more than its watch may buffer, without a chance to read
        await store.put(f"{ROLES}other-{i}", READER)
    await settle()
    assert not access(LIST_PODS).allowed
    assert access.is_following


async def test_nodes_are_related_through_pods_and_slices(store: MemoryStore, access: AccessControl) -> None:
    def asked(verb: str, resource: str, name: str, **more: Any) -> bool:
        return access(Attributes(NODE, verb, resource=resource, name=name, **more)).allowed

    pod = {"spec": {"nodeName": "n1", "resourceClaims": [{"name": "r", "resourceClaimName": "c"}]}}
    await store.put("/registry/core/pods/blue/p", msgspec.json.encode(pod))
    published = {"spec": {"nodeName": "n1", "devices": [{"name": "d"}]}}
    await store.put("/registry/resource.k8s.io/resourceslices/s", msgspec.json.encode(published))
    await settle()
    assert asked("get", "resourceclaims", "c", group="resource.k8s.io", namespace="blue")
    assert asked("delete", "resourceslices", "s", group="resource.k8s.io")
    await store.delete("/registry/core/pods/blue/p")
    await store.delete("/registry/resource.k8s.io/resourceslices/s")
    await settle()
    assert not asked("get", "resourceclaims", "c", group="resource.k8s.io", namespace="blue")
    assert not asked("delete", "resourceslices", "s", group="resource.k8s.io")


async def test_it_says_so_when_it_no_longer_follows(store: MemoryStore, access: AccessControl) -> None:
    await store.close()
    await settle()
    assert not access.is_following


@pytest.mark.parametrize(
    ("asked", "message", "details"),
    [
        (
            Attributes(ALICE, "get", resource="pods", subresource="status", namespace="blue", name="p"),
            'pods "p" is forbidden: User "alice" cannot get resource "pods/status" in API group "" '
            'in the namespace "blue"',
            {"name": "p", "kind": "pods"},
        ),
        (
            Attributes(ALICE, "list", group="resource.k8s.io", resource="deviceclasses"),
            'deviceclasses.resource.k8s.io is forbidden: User "alice" cannot list resource "deviceclasses" '
            'in API group "resource.k8s.io" at the cluster scope',
            {"group": "resource.k8s.io", "kind": "deviceclasses"},
        ),
        (
            Attributes(UserInfo("<b>"), "get", path="/metrics"),
            'forbidden: User "&lt;b&gt;" cannot get path "/metrics"',
            {},
        ),
    ],
)
def test_refusals_are_worded_as_by_kubernetes(asked: Attributes, message: str, details: dict[str, str]) -> None:
    error = forbidden(asked, "")
    assert error.message == message
    assert error.details == details
    assert forbidden(asked, "no relation").message == f"{message}: no relation"
