"""Events: equal ones are counted, and a server that is away costs events, never work."""

from __future__ import annotations

import asyncio

from dray.api.errors import ServiceUnavailable
from dray.api.meta import Json
from dray.api.resources import EVENTS
from dray.apiserver.local import LocalClient
from dray.runtime.events import MESSAGE_LIMIT, QUEUE_LENGTH, EventRecorder, ObjectReference
from dray.testing.clock import FakeClock
from tests.integration.api_servers import start_registry

POD = ObjectReference("v1", "Pod", "default", "p", "uid-1")


async def make_recorder(clock: FakeClock) -> tuple[LocalClient, EventRecorder]:
    client = LocalClient(await start_registry(clock))
    return client, EventRecorder(client, clock, "dray-test")


async def list_events(client: LocalClient, namespace: str = "default") -> list[Json]:
    return (await client.list(EVENTS, namespace))["items"]  # type: ignore[no-any-return]


async def test_an_event_says_what_happened_to_whom() -> None:
    client, recorder = await make_recorder(FakeClock())
    recorder.warning(POD, "Failed", "it broke")
    await recorder.flush()
    (event,) = await list_events(client)
    assert (event["type"], event["reason"], event["message"], event["count"]) == ("Warning", "Failed", "it broke", 1)
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "namespace": "default",
        "uid": "uid-1",
    }
    assert event["source"] == {"component": "dray-test"}


async def test_equal_events_are_one_with_a_count() -> None:
    clock = FakeClock()
    client, recorder = await make_recorder(clock)
    for _ in range(3):
        recorder.normal(POD, "Tried", "once more")
        await recorder.flush()
        await clock.advance(10)
    recorder.normal(POD, "Tried", "differently")
    await recorder.flush()
    first, second = sorted(await list_events(client), key=lambda event: -event["count"])
    assert (first["count"], second["count"]) == (3, 1)
    assert (first["firstTimestamp"], first["lastTimestamp"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:20Z")


async def test_an_event_that_expired_meanwhile_is_written_anew() -> None:
    client, recorder = await make_recorder(FakeClock())
    recorder.normal(POD, "Tried", "again")
    await recorder.flush()
    (event,) = await list_events(client)
    await client.delete(EVENTS, event["metadata"]["name"], "default")
    recorder.normal(POD, "Tried", "again")
    await recorder.flush()
    (event,) = await list_events(client)
    assert event["count"] == 1


async def test_events_about_objects_without_namespace_go_to_the_default_one() -> None:
    client, recorder = await make_recorder(FakeClock())
    recorder.normal(ObjectReference("v1", "Node", "", "n1", "uid"), "Seen", "there it is")
    await recorder.flush()
    (event,) = await list_events(client)
    assert event["involvedObject"]["kind"] == "Node"


async def test_long_messages_are_cut() -> None:
    client, recorder = await make_recorder(FakeClock())
    recorder.normal(POD, "Long", "x" * 5000)
    await recorder.flush()
    (event,) = await list_events(client)
    assert len(event["message"]) == MESSAGE_LIMIT


async def test_while_the_server_is_away_a_bounded_number_waits_and_the_rest_is_counted() -> None:
    class Away:
        async def create(self, *arguments: object) -> Json:
            await asyncio.sleep(0)
            raise ServiceUnavailable("away")

    recorder = EventRecorder(Away(), FakeClock(), "dray-test")  # type: ignore[arg-type]
    for number in range(QUEUE_LENGTH + 5):
        recorder.normal(POD, "Tried", str(number))
    assert recorder.dropped == 5
    await recorder.flush()  # failures are told in the log, and end nothing
    recorder.normal(POD, "Tried", "again")
    assert recorder.dropped == 5
