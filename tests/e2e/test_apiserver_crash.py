"""The server process killed under write load: every acknowledged write is there after the restart."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
from pathlib import Path

import pytest

from tests.e2e.servers import Client, Json, Server

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WRITERS = 8


class Writer(threading.Thread):
    """Creates objects and counts one up, until its server is gone. Knows what it was told."""

    def __init__(self, client: Client, name: str) -> None:
        super().__init__()
        self.client = client
        self.label = name
        self.created: dict[str, int] = {}
        self.counted = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._write()
        except (OSError, http.client.HTTPException):
            return  # the server was killed; what matters is what was acknowledged before
        except BaseException as error:  # noqa: BLE001 - reported by the test
            self.error = error

    def _write(self) -> None:
        counter = f"counter-{self.label}"
        current = self.client.expect(201, "POST", CONFIG_MAPS, make_config_map(counter, "0")).json
        self.created[counter] = int(current["metadata"]["resourceVersion"])
        for number in itertools.count(1):
            name = f"{self.label}-{number}"
            made = self.client.expect(201, "POST", CONFIG_MAPS, make_config_map(name, str(number))).json
            self.created[name] = int(made["metadata"]["resourceVersion"])
            current["data"]["n"] = str(number)
            current = self.client.expect(200, "PUT", f"{CONFIG_MAPS}/{counter}", current).json
            self.counted = number


def make_config_map(name: str, number: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": number}}


def watch_from(client: Client, revision: int, until: int) -> list[Json]:
    """Events after `revision` up to `until`, or one ERROR event."""
    events: list[Json] = []
    path = f"{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion={revision}"
    connection = http.client.HTTPSConnection(client.host, client.port, context=client.context, timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {client.token}"})
    response = connection.getresponse()
    while line := response.readline():
        event = json.loads(line)
        events.append(event)
        if event["type"] == "ERROR" or int(event["object"]["metadata"]["resourceVersion"]) >= until:
            break
    connection.close()
    return events


def kill_repeatedly(folder: Path, times: int) -> None:
    randomness = random.Random(times)
    revision = 0
    expected: dict[str, int] = {}
    server = Server(folder / "data", "--port", "0")
    for round_number in range(times):
        writers = [Writer(server.admin, f"r{round_number}-w{index}") for index in range(WRITERS)]
        for writer in writers:
            writer.start()
        writers[0].join(randomness.uniform(0.02, 0.4))
        server.kill()
        for writer in writers:
            writer.join()
            assert writer.error is None, writer.error

        server = Server(folder / "data", "--port", "0")
        admin = server.admin
        listed = admin.expect(200, "GET", CONFIG_MAPS).json
        found = {item["metadata"]["name"]: item for item in listed["items"]}
        now = int(listed["metadata"]["resourceVersion"])
        for writer in writers:
            expected.update(writer.created)
            if writer.counted:
                assert int(found[f"counter-{writer.label}"]["data"]["n"]) in (writer.counted, writer.counted + 1)
        missing = expected.keys() - found.keys()
        assert not missing, f"acknowledged and gone: {missing}"
        for name, item in found.items():
            written = int(item["metadata"]["resourceVersion"])
            assert expected.get(name, 0) <= written <= now
            expected[name] = max(expected.get(name, 0), written)
        assert now >= revision, "revisions only grow"
        if revision:
            events = watch_from(admin, revision, max(written for written in expected.values()))
            assert events[0]["type"] != "ERROR", events[0]
            resumed = {event["object"]["metadata"]["name"] for event in events if event["type"] != "BOOKMARK"}
            assert resumed >= {name for name, written in expected.items() if written > revision}
        revision = now
    assert server.stop() == 0
    assert len(expected) > times


def test_a_server_killed_under_load_loses_nothing_acknowledged(tmp_path: Path) -> None:
    kill_repeatedly(tmp_path, 2)


@pytest.mark.slow
def test_a_server_killed_fifty_times_under_load_loses_nothing_acknowledged(tmp_path: Path) -> None:
    kill_repeatedly(tmp_path, 50)


def test_a_second_server_on_the_same_data_is_refused(tmp_path: Path) -> None:
    first = Server(tmp_path / "data", "--port", "0")
    with pytest.raises(AssertionError, match="in use by another dray process"):
        Server(tmp_path / "data", "--port", "0")
    assert first.stop() == 0
