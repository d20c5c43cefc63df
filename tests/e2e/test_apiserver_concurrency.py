"""Many clients at once over HTTPS: nothing is lost, no limit is passed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from tests.e2e.servers import Client, Json, Server, serving

T = TypeVar("T")
CORE = "/api/v1/namespaces/default"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("concurrency") / "data") as server:
        yield server


def at_once(server: Server, count: int, call: Callable[[Client, int], T]) -> list[T]:
    """The results of `count` clients, each with a connection and a thread of its own."""

    def run(index: int) -> T:
        client = server.admin
        try:
            return call(client, index)
        finally:
            client.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_64_clients_incrementing_by_compare_and_swap_lose_nothing(server: Server) -> None:
    path = f"{CORE}/configmaps/counter"
    counter = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "counter"}, "data": {"n": "0"}}
    server.admin.expect(201, "POST", f"{CORE}/configmaps", counter)

    def increment(client: Client, index: int) -> int:
        conflicts = 0
        while True:
            current = client.expect(200, "GET", path).json
            current["data"]["n"] = str(int(current["data"]["n"]) + 1)
            reply = client.ask("PUT", path, current)
            if reply.status == 200:
                return conflicts
            assert (reply.status, reply.reason) == (409, "Conflict"), reply.body
            conflicts += 1

    conflicts = at_once(server, 64, increment)
    assert server.admin.expect(200, "GET", path).json["data"]["n"] == "64"
    assert sum(conflicts) > 0, "the clients never met, so this showed nothing"


def test_64_clients_patching_one_object_lose_nothing(server: Server) -> None:
    path = f"{CORE}/configmaps/patched"
    empty = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "patched"}}
    server.admin.expect(201, "POST", f"{CORE}/configmaps", empty)
    at_once(
        server,
        64,
        lambda client, index: client.expect(
            200, "PATCH", path, {"data": {f"key-{index}": "x"}}, kind="application/merge-patch+json"
        ),
    )
    assert len(server.admin.expect(200, "GET", path).json["data"]) == 64


def make_claim(name: str, count: int) -> Json:
    exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


@pytest.mark.parametrize(
    ("namespace", "hard", "devices", "fitting"),
    [
        ("count-edge", {"count/resourceclaims.resource.k8s.io": "10"}, 1, 10),
        ("device-edge", {"gpu.example.com.deviceclass.resource.k8s.io/devices": "21"}, 2, 10),
    ],
)
def test_32_creates_at_a_quota_edge_never_pass_it(
    server: Server, namespace: str, hard: Json, devices: int, fitting: int
) -> None:
    admin = server.admin
    admin.expect(
        201, "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    )
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    admin.expect(201, "POST", f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
    claims = CLAIMS.format(namespace)

    def create(client: Client, index: int) -> int:
        return client.ask("POST", claims, make_claim(f"c{index}", devices)).status

    statuses = at_once(server, 32, create)
    assert sorted(statuses) == [201] * fitting + [403] * (32 - fitting)
    assert len(admin.expect(200, "GET", claims).json["items"]) == fitting
    status = admin.expect(200, "GET", f"/api/v1/namespaces/{namespace}/resourcequotas/q").json["status"]
    assert status["used"] == {name: str(fitting * devices if "devices" in name else fitting) for name in hard}

    admin.expect(200, "DELETE", f"{claims}/c{statuses.index(201)}")
    again = at_once(
        server, 8, lambda client, index: client.ask("POST", claims, make_claim(f"d{index}", devices)).status
    )
    assert sorted(again) == [201] + [403] * 7
