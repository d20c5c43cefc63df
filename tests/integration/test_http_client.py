"""The HTTPS client where the suite of all clients doesn't reach: broken servers, retries, logins, streams."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from dray.api.errors import (
    Expired,
    Forbidden,
    InternalError,
    NotFound,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
)
from dray.api.resources import CLUSTER_ROLES, CONFIG_MAPS, PODS
from dray.runtime.access import BadAccess, ClusterAccess
from dray.runtime.client import WatchEvent
from dray.runtime.credentials import KeyPair, StaticToken, TokenFile
from dray.runtime.http_client import HttpClient
from dray.runtime.http_pool import HttpLimits
from tests.integration.api_servers import admin_access, admin_client, serving
from tests.integration.scripted_server import STREAM, answering, chunk, reply

QUICK = HttpLimits(first_delay=0.001, longest_delay=0.01, request_seconds=5)
STATUS = '{"kind": "Status", "code": 404, "reason": "NotFound", "message": "no such thing"}'


async def test_requests_share_a_connection_as_long_as_it_lives() -> None:
    closing = reply(200, Connection="close")
    async with answering(reply(200), closing, reply(200)) as server, HttpClient(server.access) as client:
        for _ in range(3):
            await client.get_raw("/version")
        assert [seen.connection for seen in server.seen] == [1, 1, 2]


async def test_requests_at_the_same_time_have_a_connection_each_up_to_the_limit() -> None:
    limits = HttpLimits(connections=2)
    async with answering(*[reply(200)] * 6) as server, HttpClient(server.access, limits=limits) as client:
        await asyncio.gather(*(client.get_raw("/version") for _ in range(6)))
        assert {seen.connection for seen in server.seen} == {1, 2}


async def test_the_server_is_told_who_asks() -> None:
    async with answering(reply(200)) as server:
        access = replace(server.access, credentials=StaticToken("secret"), impersonate=(("Impersonate-User", "bob"),))
        async with HttpClient(access, agent="dray-test") as client:
            await client.get_raw("/version")
        headers = server.seen[0].headers
        assert headers["user-agent"].startswith("dray-test/")
        assert headers["authorization"] == "Bearer secret"
        assert headers["impersonate-user"] == "bob"


async def test_a_path_in_the_address_comes_before_the_paths_of_the_api() -> None:
    async with answering(reply(200)) as server:
        async with HttpClient(replace(server.access, server=f"{server.access.server}/k8s/")) as client:
            await client.get(PODS, "p", "ns")
        assert server.seen[0].path == "/k8s/api/v1/namespaces/ns/pods/p"


async def test_names_cannot_leave_their_place_in_the_path() -> None:
    async with answering(reply(200)) as server, HttpClient(server.access) as client:
        await client.get(CLUSTER_ROLES, "system:x/../y?z\r\nHost: evil")
        assert server.seen[0].path.endswith("/clusterroles/system%3Ax%2F..%2Fy%3Fz%0D%0AHost%3A%20evil")


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_a_read_is_repeated_while_the_server_is_in_trouble(status: int) -> None:
    answers = (reply(status), reply(status), reply(200, '{"a": 1}'))
    async with answering(*answers) as server, HttpClient(server.access, limits=QUICK) as client:
        assert await client.get_raw("/x") == {"a": 1}


async def test_a_write_is_not_repeated_when_it_may_have_happened() -> None:
    async with answering(reply(500), b"", reply(200)) as server, HttpClient(server.access, limits=QUICK) as client:
        with pytest.raises(InternalError):
            await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default")
        with pytest.raises(ServiceUnavailable, match="closed the connection"):
            await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default")
        assert len(server.seen) == 2


async def test_a_read_is_repeated_when_the_connection_breaks() -> None:
    async with answering(b"", reply(200, '{"a": 1}')) as server, HttpClient(server.access, limits=QUICK) as client:
        assert await client.get_raw("/x") == {"a": 1}


async def test_a_write_that_was_refused_for_overload_is_repeated_after_the_time_that_the_server_asks_for() -> None:
    waits: list[float] = []

    class Clock:
        async def sleep(self, seconds: float) -> None:
            waits.append(seconds)

    answers = (reply(429, Retry_After="3"), reply(429), reply(201))
    async with answering(*answers) as server:
        client = HttpClient(server.access, clock=Clock(), limits=HttpLimits(first_delay=0.1))  # type: ignore[arg-type]
        async with client:
            await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default")
    first, second = waits
    assert 3 <= first < 4
    assert 0.2 <= second < 0.3


async def test_patience_with_an_overloaded_server_ends() -> None:
    limits = replace(QUICK, tries=3)
    async with answering(*[reply(429)] * 3) as server, HttpClient(server.access, limits=limits) as client:
        with pytest.raises(TooManyRequests):
            await client.get_raw("/x")
        assert len(server.seen) == 3


async def test_a_write_is_repeated_when_no_connection_comes_about() -> None:
    async with answering() as server:
        access = server.access
    # Nobody listens there any more: until the last try nothing was sent, so even a write may be repeated.
    waits = 0

    class Clock:
        async def sleep(self, seconds: float) -> None:
            nonlocal waits
            waits += 1

    async with HttpClient(access, clock=Clock(), limits=replace(QUICK, tries=3)) as client:  # type: ignore[arg-type]
        with pytest.raises(ServiceUnavailable, match="Connect call failed"):
            await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default")
    assert waits == 2


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    async def nothing(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    limits = HttpLimits(request_seconds=0.05, tries=1)
    async with answering(nothing) as server, HttpClient(server.access, limits=limits) as client:
        with pytest.raises(ServerTimeout, match=r"no answer within 0\.05 s"):
            await client.get_raw("/x")


async def test_a_cancelled_request_does_not_hand_its_answer_to_the_next() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def late(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await go_on.wait()
        writer.write(reply(200, '{"for": "the first"}'))

    async with answering(late, reply(200, '{"for": "the second"}')) as server, HttpClient(server.access) as client:
        first = asyncio.create_task(client.get_raw("/first"))
        await asked.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        go_on.set()
        assert await client.get_raw("/second") == {"for": "the second"}


async def test_errors_are_those_that_the_server_names() -> None:
    plain = reply(403, "go away")
    async with answering(reply(404, STATUS), plain, reply(200, "[1]")) as server, HttpClient(server.access) as client:
        with pytest.raises(NotFound, match="no such thing"):
            await client.get_raw("/x")
        with pytest.raises(Forbidden, match="go away"):
            await client.get_raw("/x")
        with pytest.raises(InternalError, match="not a JSON object"):
            await client.get_raw("/x")


async def test_a_response_that_is_no_http_is_an_error() -> None:
    limits = replace(QUICK, tries=1)
    async with answering(b"SSH-2.0-x\r\n") as server, HttpClient(server.access, limits=limits) as client:
        with pytest.raises(ServiceUnavailable, match="can't be understood"):
            await client.get_raw("/x")


async def watch(client: HttpClient) -> list[WatchEvent]:
    async with client.watch(PODS, "default") as events:
        return [event async for event in events]


def line(kind: str, name: str) -> str:
    return f'{{"type": "{kind}", "object": {{"metadata": {{"name": "{name}"}}}}}}\n'


async def test_events_come_whole_however_they_are_cut() -> None:
    text = line("ADDED", "ä") + line("MODIFIED", "b") + line("BOOKMARK", "c")

    async def dribble(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM)
        data = text.encode()
        for start in range(0, len(data), 7):
            part = data[start : start + 7]
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with answering(dribble) as server, HttpClient(server.access) as client:
        events = await watch(client)
    assert [(event.type, event.object["metadata"]["name"]) for event in events] == [
        ("ADDED", "ä"),
        ("MODIFIED", "b"),
        ("BOOKMARK", "c"),
    ]


async def test_a_watch_that_breaks_is_told_from_one_that_ends() -> None:
    async def broken(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(line("ADDED", "a") + '{"type": "ADD'))
        writer.close()

    async with answering(broken) as server, HttpClient(server.access) as client:
        seen = []
        with pytest.raises(ServiceUnavailable, match="the watch broke"):
            async with client.watch(PODS, "default") as events:
                async for event in events:
                    seen.append(event.object["metadata"]["name"])
        assert seen == ["a"]


async def test_a_revision_that_is_gone_is_expired_as_answer_and_as_event() -> None:
    gone = '{"kind": "Status", "code": 410, "reason": "Gone", "message": "too old"}'
    as_event = STREAM + chunk(f'{{"type": "ERROR", "object": {gone}}}\n')
    async with answering(reply(410, gone), as_event) as server, HttpClient(server.access) as client:
        for _ in range(2):
            with pytest.raises(Expired, match="too old"):
                await watch(client)


async def test_a_reader_who_is_slow_gets_everything_in_order() -> None:
    big = "x" * 100_000

    async def flood(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM)
        for number in range(50):
            writer.write(chunk(line("ADDED", f"{number}-{big}")))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with answering(flood) as server, HttpClient(server.access) as client:
        count = 0
        async with client.watch(PODS, "default") as events:
            async for event in events:
                assert event.object["metadata"]["name"].startswith(f"{count}-")
                count += 1
                await asyncio.sleep(0)
        assert count == 50


async def test_a_renewed_token_is_tried_when_the_old_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    async with (
        answering(reply(200), reply(401), reply(200), reply(401)) as server,
        HttpClient(replace(server.access, credentials=TokenFile(path))) as client,
    ):
        await client.get_raw("/x")
        path.write_text("new")
        await client.get_raw("/x")
        assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer old"] * 2 + ["Bearer new"]
        with pytest.raises(Unauthorized):
            await client.get_raw("/x")


async def test_certificates_are_verified(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        access = replace(admin_access(server), authority=None)
        async with HttpClient(access, limits=replace(QUICK, tries=1)) as client:
            with pytest.raises(ServiceUnavailable, match="certificate verify failed"):
                await client.get_raw("/version")
        wrong_name = replace(admin_access(server), server_name="elsewhere.example.com")
        async with HttpClient(wrong_name, limits=replace(QUICK, tries=1)) as client:
            with pytest.raises(ServiceUnavailable, match="elsewhere"):
                await client.get_raw("/version")
        async with HttpClient(replace(access, verify=False)) as client:
            assert "gitVersion" in await client.get_raw("/version")


async def test_a_client_certificate_logs_in(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        pair = server.authority.issue_client("ann", ("team",))
        access = ClusterAccess(
            server.address, authority=server.authority.pem, key_pair=KeyPair(pair.certificate, pair.key)
        )
        async with HttpClient(access) as client:
            with pytest.raises(Forbidden, match='"ann"'):
                await client.get(CONFIG_MAPS, "x", "default")


def test_what_cannot_be_used_for_tls_is_told_at_once() -> None:
    with pytest.raises(BadAccess, match="certificate authority can't be read"):
        HttpClient(ClusterAccess("https://x", authority=b"no PEM"))
    with pytest.raises(BadAccess, match="client certificate or its key can't be used"):
        HttpClient(ClusterAccess("https://x", key_pair=KeyPair(b"no", b"PEM")))


async def test_what_the_client_writes_is_managed_under_its_name(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, admin_client(server, agent="dray-test") as client:
        created = await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}}, "default")
        assert created["metadata"]["managedFields"][0]["manager"] == "dray-test"
