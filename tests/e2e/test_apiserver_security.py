"""A running server against those who may not, and those who mean harm: refused as they should be, and still fine."""

from __future__ import annotations

import http.client
import socket
import ssl
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.servers import Client, Json, Server, serving

CORE = "/api/v1/namespaces/default"
DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/namespaces/default/resourceclaims"
SLICES = f"{DRA}/resourceslices"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("security") / "data", "--node", "n1", "--node", "n2") as server:
        yield server


@pytest.fixture(autouse=True)
def server_is_still_fine(server: Server) -> Iterator[None]:
    """After every attack: alive, quick, and no traceback in the log."""
    logged = server.log.stat().st_size
    yield
    started = time.perf_counter()
    assert server.admin.ask("GET", "/readyz").body == b"ok"
    assert time.perf_counter() - started < 2
    assert "Traceback" not in server.log.read_text()[logged:]


@pytest.fixture
def admin(server: Server) -> Client:
    return server.admin


@pytest.fixture
def n1(server: Server) -> Client:
    return server.client("node-n1")


def make_claim(name: str) -> Json:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }


def make_slice(name: str, node: str) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    }


def make_config_map(name: str, **more: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


# Who may come in


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_nobody_in_particular_gets_health_and_version(admin: Client, path: str) -> None:
    admin.with_token(None).expect(200, "GET", path)


@pytest.mark.parametrize(
    "path", ["/", "/api", "/apis", "/openapi/v3", "/metrics", "/api/v1/namespaces", CLAIMS, SLICES, f"{CORE}/secrets"]
)
def test_nobody_in_particular_gets_nothing_else(admin: Client, path: str) -> None:
    reply = admin.with_token(None).expect(403, "GET", path)
    assert reply.reason == "Forbidden"
    assert "system:anonymous" in reply.json["message"]


def test_nobody_in_particular_writes_nothing(admin: Client) -> None:
    admin.with_token(None).expect(403, "POST", CLAIMS, make_claim("anonymous"))
    admin.expect(404, "GET", f"{CLAIMS}/anonymous")


@pytest.mark.parametrize("token", ["wrong", "", "a.b.c", "x" * 10_000, "\xff\xfe", "' OR '1'='1"])
def test_a_wrong_token_is_refused_everywhere(admin: Client, token: str) -> None:
    for path in (CLAIMS, "/version", "/healthz"):
        assert admin.with_token(token).expect(401, "GET", path).reason == "Unauthorized"


def test_part_of_a_token_is_a_wrong_token(admin: Client) -> None:
    assert admin.token is not None
    admin.with_token(admin.token[:-1]).expect(401, "GET", CLAIMS)
    admin.with_token(admin.token + "x").expect(401, "GET", CLAIMS)


def test_plain_http_is_not_served(admin: Client) -> None:
    connection = http.client.HTTPConnection(admin.host, admin.port, timeout=10)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        connection.request("GET", "/version")
        connection.getresponse()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_tls_is_not_spoken(admin: Client, version: ssl.TLSVersion) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    context.set_ciphers("ALL:@SECLEVEL=0")
    with (
        socket.create_connection((admin.host, admin.port), timeout=10) as raw,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(raw)


def test_secrets_on_disk_are_for_the_owner_only(server: Server) -> None:
    for path in (server.data_dir, *server.data_dir.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_it_listens_on_loopback_only(server: Server, admin: Client) -> None:
    listening = subprocess.run(["ss", "-Hltn", f"sport = :{admin.port}"], capture_output=True, text=True, check=True)
    assert "127.0.0.1" in listening.stdout
    assert "0.0.0.0:" + str(admin.port) not in listening.stdout


# What a node may do


def test_a_node_publishes_its_own_slices(n1: Client) -> None:
    n1.expect(201, "POST", SLICES, make_slice("n1-own", "n1"))
    n1.expect(200, "PATCH", f"{SLICES}/n1-own", {"metadata": {"labels": {"a": "b"}}}, kind=MERGE)
    n1.expect(200, "GET", f"{SLICES}?fieldSelector=spec.nodeName%3Dn1")
    n1.expect(200, "DELETE", f"{SLICES}/n1-own")


def test_a_node_cannot_publish_slices_of_another(admin: Client, n1: Client) -> None:
    assert "same NodeName" in n1.expect(403, "POST", SLICES, make_slice("n2-forged", "n2")).json["message"]
    everywhere = make_slice("everywhere", "n1")
    everywhere["spec"]["allNodes"] = True
    del everywhere["spec"]["nodeName"]
    n1.expect(403, "POST", SLICES, everywhere)
    admin.expect(404, "GET", f"{SLICES}/n2-forged")


def test_a_node_cannot_touch_slices_of_another(admin: Client, n1: Client) -> None:
    theirs = admin.expect(201, "POST", SLICES, make_slice("n2-own", "n2")).json
    theirs["spec"]["devices"] = []
    n1.expect(403, "GET", f"{SLICES}/n2-own")
    n1.expect(403, "PUT", f"{SLICES}/n2-own", theirs)
    n1.expect(403, "PATCH", f"{SLICES}/n2-own", {"spec": {"devices": []}}, kind=MERGE)
    n1.expect(403, "DELETE", f"{SLICES}/n2-own")
    n1.expect(403, "DELETE", SLICES)
    n1.expect(403, "DELETE", f"{SLICES}?fieldSelector=spec.nodeName%3Dn2")
    n1.expect(403, "GET", SLICES)
    assert admin.expect(200, "GET", f"{SLICES}/n2-own").json["spec"]["devices"] == [{"name": "gpu-0"}]


def test_a_node_cannot_take_over_a_slice_by_patching_it(admin: Client, n1: Client) -> None:
    admin.expect(201, "POST", SLICES, make_slice("n2-other", "n2"))
    n1.expect(403, "PATCH", f"{SLICES}/n2-other", {"spec": {"nodeName": "n1"}}, kind=MERGE)


def test_a_node_cannot_write_claims_or_their_status(admin: Client, n1: Client) -> None:
    admin.expect(201, "POST", CLAIMS, make_claim("theirs"))
    n1.expect(403, "POST", CLAIMS, make_claim("mine"))
    for path in (f"{CLAIMS}/theirs", f"{CLAIMS}/theirs/status"):
        n1.expect(403, "PATCH", path, {"status": {"reservedFor": []}}, kind=MERGE)
        n1.expect(403, "PUT", path, make_claim("theirs"))
        n1.expect(403, "PATCH", f"{path}?fieldManager=x", make_claim("theirs"), kind="application/apply-patch+yaml")
    n1.expect(403, "DELETE", f"{CLAIMS}/theirs")
    n1.expect(403, "DELETE", CLAIMS)


def make_pod(name: str, node: str, claim: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i"}],
            "resourceClaims": [{"name": "r", "resourceClaimName": claim}],
        },
    }


def test_a_node_reads_the_claims_of_its_own_pods(admin: Client, n1: Client) -> None:
    for name, node in (("used-here", "n1"), ("used-there", "n2")):
        admin.expect(201, "POST", CLAIMS, make_claim(name))
        admin.expect(201, "POST", f"{CORE}/pods", make_pod(name, node, name))
    n1.expect(200, "GET", f"{CLAIMS}/used-here")
    n1.expect(403, "GET", f"{CLAIMS}/used-there")
    n1.expect(403, "GET", CLAIMS)
    n1.expect(200, "PATCH", f"{CORE}/pods/used-here/status", {"status": {"phase": "Running"}}, kind=MERGE)
    n1.expect(403, "PATCH", f"{CORE}/pods/used-there/status", {"status": {"phase": "Failed"}}, kind=MERGE)
    n1.expect(403, "DELETE", f"{CORE}/pods/used-there")


def test_a_node_registers_itself_only(n1: Client) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}}}
    n1.expect(201, "POST", "/api/v1/nodes", node)
    n1.expect(403, "POST", "/api/v1/nodes", {**node, "metadata": {"name": "n2"}})
    role = {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}
    n1.expect(403, "PATCH", "/api/v1/nodes/n1", role, kind=MERGE)
    n1.expect(
        403, "PATCH", "/api/v1/nodes/n1", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, kind=MERGE
    )
    n1.expect(403, "GET", "/api/v1/nodes/n2")


def test_a_node_cannot_read_secrets_or_grant_itself_anything(n1: Client) -> None:
    n1.expect(403, "GET", f"{CORE}/secrets")
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": "system:node:n1"}],
    }
    n1.expect(403, "POST", f"{RBAC}/clusterrolebindings", binding)
    n1.expect(403, "GET", "/version", Impersonate_User="kubernetes-admin", Impersonate_Group="system:masters")


# Other identities


def test_the_scheduler_and_the_controllers_have_what_they_need_and_no_more(server: Server, admin: Client) -> None:
    admin.expect(201, "POST", CLAIMS, make_claim("scheduled"))
    scheduler, controllers = server.client("scheduler"), server.client("controllers")
    patch = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
    scheduler.expect(200, "PATCH", f"{CLAIMS}/scheduled", patch, kind=MERGE)
    scheduler.expect(200, "GET", f"{DRA}/resourceclaims")
    scheduler.expect(403, "GET", f"{CORE}/secrets")
    scheduler.expect(403, "POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}})
    controllers.expect(200, "PATCH", f"{CLAIMS}/scheduled", {"metadata": {"finalizers": None}}, kind=MERGE)
    controllers.expect(403, "POST", f"{DRA}/deviceclasses", {"metadata": {"name": "x"}})


def test_rights_are_given_and_taken_by_bindings(server: Server, admin: Client) -> None:
    with (server.data_dir / "tokens.csv").open("a") as tokens:
        tokens.write("alices-token,alice,,\n")
    alice = admin.with_token("alices-token")
    alice.expect(403, "GET", CLAIMS)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "alice"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    }
    admin.expect(201, "POST", f"{RBAC}/namespaces/default/rolebindings", binding)
    alice.expect(200, "GET", CLAIMS)
    alice.expect(403, "GET", f"{DRA}/namespaces/kube-system/resourceclaims")
    greedy = {**binding, "metadata": {"name": "greedy"}}
    greedy["roleRef"] = {**binding["roleRef"], "name": "cluster-admin"}  # type: ignore[dict-item]
    refused = alice.expect(403, "POST", f"{RBAC}/namespaces/default/rolebindings", greedy)
    assert "not currently held" in refused.json["message"]
    admin.expect(200, "DELETE", f"{RBAC}/namespaces/default/rolebindings/alice")
    alice.expect(403, "GET", CLAIMS)


# Floods and bombs


def test_a_body_of_100_megabytes_is_refused(admin: Client) -> None:
    assert admin.expect(413, "POST", CLAIMS, b"x" * 100_000_000).reason == "RequestEntityTooLarge"


def test_an_object_that_is_too_big_is_refused(admin: Client) -> None:
    big = make_config_map("big", data={str(i): "x" * 100_000 for i in range(20)})
    assert admin.ask("POST", f"{CORE}/configmaps", big).status in (413, 422)


DEEP = {
    "lists": b'{"metadata":{"name":"x"},"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "unclosed": b"[" * 100_000,
}


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
def test_json_of_depth_100000_is_refused(admin: Client, body: bytes) -> None:
    admin.expect(400, "POST", CLAIMS, body)
    admin.expect(400, "PUT", f"{CLAIMS}/x", body)
    for kind in (
        "application/json-patch+json",
        MERGE,
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ):
        admin.expect(400, "PATCH", f"{CLAIMS}/x?fieldManager=m", body, kind=kind)


YAML = {
    "nested sequences": b"- " * 100_000,
    "nested maps": b"".join(b" " * i + b"a:\n" for i in range(2_000)),
    "flow in a comment's shadow": b'a: # "\n' + b"[" * 50_000 + b'\nb: "',
    "billion laughs": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(12)),
    "python object": b"!!python/object/apply:os.system ['touch /tmp/dray-was-here']",
    "recursive alias": b"&a {metadata: *a}",
}


@pytest.mark.parametrize("body", YAML.values(), ids=YAML)
def test_yaml_bombs_are_refused(admin: Client, body: bytes) -> None:
    started = time.perf_counter()
    reply = admin.ask("PATCH", f"{CLAIMS}/x?fieldManager=m", body, kind="application/apply-patch+yaml")
    assert reply.status == 400, reply.body[:500]
    assert admin.ask("POST", CLAIMS, body, kind="application/yaml").status == 400
    assert time.perf_counter() - started < 5
    assert not Path("/tmp/dray-was-here").exists()


def test_a_json_patch_that_doubles_itself_is_refused(admin: Client) -> None:
    admin.expect(201, "POST", f"{CORE}/configmaps", make_config_map("doubling", data={"a": "x" * 1000}))
    copies = [{"op": "copy", "from": "/data", "path": f"/data/k{i}"} for i in range(40)]
    reply = admin.ask("PATCH", f"{CORE}/configmaps/doubling", copies, kind="application/json-patch+json")
    assert reply.status in (400, 413, 422), reply.body[:300]


def test_slow_connections_keep_nobody_out(admin: Client) -> None:
    slow = []
    for _ in range(200):
        raw = socket.create_connection((admin.host, admin.port), timeout=10)
        raw.settimeout(10)
        wrapped = admin.context.wrap_socket(raw, server_hostname="localhost")
        wrapped.sendall(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        slow.append(wrapped)
    started = time.perf_counter()
    admin.expect(200, "GET", CLAIMS)
    assert time.perf_counter() - started < 1
    for connection in slow:
        connection.close()


@pytest.mark.slow
def test_slow_connections_are_closed(admin: Client) -> None:
    raw = socket.create_connection((admin.host, admin.port), timeout=30)
    connection = admin.context.wrap_socket(raw, server_hostname="localhost")
    connection.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n")
    assert connection.recv(1000).startswith(b"HTTP/1.1 408")
    assert connection.recv(1000) == b""


# Paths, selectors, headers


@pytest.mark.parametrize(
    "path",
    [
        f"{CORE}/pods/..%2f..%2fkube-system%2fsecrets%2fx",
        f"{CORE}/configmaps/..%2F..%2Fsecrets%2Ftoken",
        f"{CORE}/configmaps/%00",
        f"{CORE}/configmaps/a%00b",
        f"{CORE}/configmaps/a%2Fb",
        "/api/v1/namespaces/default%2Fconfigmaps/configmaps/x",
        "/api/v1/namespaces/..%2F..%2F/configmaps/x",
        "/api/v1/namespaces/%2e%2e/secrets/x",
        f"{CORE}/../kube-system/secrets/x",
        "/api/v1/../../etc/passwd",
        f"{CORE}/configmaps/{'x' * 5000}",
        f"{CORE}/configmaps/%ff%fe",
        "/api/v1/namespaces/*/configmaps/x",
        f"{CORE}/configmaps/x/status/y/z",
        "/apis/%2e%2e/v1/pods",
        "/registry/core/secrets/default/x",
    ],
)
def test_paths_lead_nowhere_else(admin: Client, path: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "stringData": {"k": "top secret"}}
    admin.ask("POST", "/api/v1/namespaces/kube-system/secrets", secret)
    reply = admin.ask("GET", path)
    assert reply.status in (400, 404, 422), reply.body[:300]
    assert b"dG9wIHNlY3JldA" not in reply.body


@pytest.mark.parametrize("name", ["../secrets/x", "a/b", "a\u0000b", "", "A B", "x" * 300, "..", "\u202egnp"])
def test_names_that_would_escape_their_folder_are_refused(admin: Client, name: str) -> None:
    reply = admin.ask("POST", f"{CORE}/configmaps", make_config_map(name))
    assert reply.status == 422, reply.body[:300]


def test_a_namespace_in_the_body_cannot_differ_from_the_path(admin: Client) -> None:
    body = make_config_map("x")
    body["metadata"]["namespace"] = "kube-system"
    admin.expect(400, "POST", f"{CORE}/configmaps", body)


@pytest.mark.parametrize(
    "query",
    [
        "labelSelector=a%20OR%201%3D1",
        "labelSelector=%27%3B%20DROP%20TABLE%20log%3B--",
        "labelSelector=((((((",
        "labelSelector=a%20in%20(",
        "fieldSelector=metadata.name%3D%27%20OR%20%27",
        "fieldSelector=__class__%3Dx",
        "fieldSelector=spec.%24where%3Dx",
        "fieldSelector=nonsense",
        "limit=-1",
        "limit=abc",
        "continue=nonsense",
        "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi9zZWNyZXRzIn0",
        "resourceVersion=abc",
        "resourceVersion=-5",
        "watch=1&resourceVersion=abc",
        "timeoutSeconds=abc",
    ],
)
def test_odd_queries_are_answered_without_giving_anything_away(admin: Client, query: str) -> None:
    reply = admin.ask("GET", f"{CORE}/configmaps?{query}")
    assert reply.status in (200, 400, 410, 422), reply.body[:300]
    if reply.status == 200:
        assert all(item["metadata"]["namespace"] == "default" for item in reply.json["items"])


def test_a_huge_label_selector_is_refused(admin: Client) -> None:
    """The server may hang up before the client has sent it all: then there is no answer to read."""
    selector = "a%20in%20(" + ",".join(f"v{i}" for i in range(200_000)) + ")"
    with suppress(ssl.SSLError, ConnectionError):
        assert admin.ask("GET", f"{CLAIMS}?labelSelector={selector}").status in (400, 414, 431)
    assert admin.ask("GET", CLAIMS).status == 200


def test_a_big_label_selector_is_handled_in_time(admin: Client) -> None:
    selector = ",".join(f"key{i}%20in%20(a,b,c)" for i in range(5_000))
    started = time.perf_counter()
    assert admin.ask("GET", f"{CLAIMS}?labelSelector={selector}").status in (200, 400)
    nested = "a%20in%20(" + "(" * 20_000
    assert admin.ask("GET", f"{CLAIMS}?labelSelector={nested}").status == 400
    assert time.perf_counter() - started < 3


def test_too_many_query_parameters_are_refused(admin: Client) -> None:
    assert admin.ask("GET", f"{CLAIMS}?{'&'.join('a=b' for _ in range(10_000))}").status == 400


def test_what_a_client_sends_does_not_become_a_header(admin: Client) -> None:
    body = make_config_map("headers", **{"a\r\nX-Evil: 1": 1})
    reply = admin.ask("POST", f"{CORE}/configmaps?fieldValidation=Warn", body)
    assert reply.status == 201, reply.body
    assert "x-evil" not in reply.headers


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "OPTIONS", "BREW", "PROPFIND"])
def test_other_methods_are_refused(admin: Client, method: str) -> None:
    try:
        reply = admin.ask(method, CLAIMS)
    except (http.client.HTTPException, ConnectionError):
        return
    assert reply.status in (400, 403, 405), reply.body[:300]


@pytest.mark.parametrize(
    "head",
    [
        b"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET {path} HTTP/9.9\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01 nonsense\r\n\r\n",
        b"GET {path}\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_ambiguous_http_is_refused(admin: Client, head: bytes) -> None:
    raw = socket.create_connection((admin.host, admin.port), timeout=15)
    with admin.context.wrap_socket(raw, server_hostname="localhost") as connection:
        token = f"\r\nAuthorization: Bearer {admin.token}\r\n".encode()
        connection.sendall(head.replace(b"{path}", CLAIMS.encode()).replace(b"\r\n", token, 1))
        answer = connection.recv(1000)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400"), answer
