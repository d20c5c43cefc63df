"""`kill -9` while the API server starts, the first time or again: the next start succeeds, and nothing is lost."""

from __future__ import annotations

import random
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.e2e.api_server_starts import Start
from tests.e2e.control_planes import find_port
from tests.e2e.servers import Client, Json

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
FROM_THE_START = (
    "/api/v1/namespaces",
    "/api/v1/serviceaccounts",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
)
KUBECONFIGS = ("admin.kubeconfig", "kubeconfigs/controllers.kubeconfig", "kubeconfigs/scheduler.kubeconfig")


class Cluster:
    """A data directory, and what has been seen of it so far: that must stay."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port = find_port()
        self._files: dict[str, bytes] = {}
        self._tokens: set[str] = set()
        self._objects: dict[str, str] = {}
        """Path and UID."""
        self._revision = 0

    def start(self, last_change: int = 0) -> Start:
        return Start(self.folder, self._port, last_change)

    def look_at_files(self) -> None:
        """Somebody may have taken a copy of any file; it must be whole, and good for ever."""
        for name in ("pki/ca.crt", "pki/ca.key", "pki/service-accounts.key"):
            path = self.folder / name
            content = path.read_bytes() if path.exists() else None
            assert content == self._files.get(name, content), f"{name} has changed"
            if content is not None:
                self._files[name] = content
        for name in KUBECONFIGS:
            if (self.folder / name).exists():
                self._tokens.add(yaml.safe_load((self.folder / name).read_text())["users"][0]["user"]["token"])
        for path in self.folder.rglob("*"):
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077, f"others can read {path}"

    @contextmanager
    def checked(self) -> Iterator[Client]:
        """The server starts, and everything is there that was ever seen. It is killed after the block."""
        server = self.start()
        try:
            server.wait_up()
            client = Client(self.folder / "admin.kubeconfig")
            self._check(client)
            yield client
            client.close()
        finally:
            server.kill_after(0)

    def _check(self, client: Client) -> None:
        self.look_at_files()
        assert {path.name for path in self.folder.rglob(".*")} == set(), "what the killed ones left is swept away"
        for token in self._tokens:
            client.with_token(token).expect(200, "GET", "/api")
        objects = {f"{path} {name}": uid for path in (*FROM_THE_START, CONFIG_MAPS) for name, uid in uids(client, path)}
        assert objects.items() >= self._objects.items()
        self._objects = objects
        revision = int(client.expect(200, "GET", CONFIG_MAPS).json["metadata"]["resourceVersion"])
        assert revision >= self._revision
        self._revision = revision

    @property
    def objects(self) -> set[str]:
        return set(self._objects)

    def write(self, client: Client, name: str) -> None:
        made = client.expect(201, "POST", CONFIG_MAPS, make_config_map(name)).json["metadata"]
        self._objects[f"{CONFIG_MAPS} default/{name}"] = made["uid"]
        self._revision = int(made["resourceVersion"])


def uids(client: Client, path: str) -> list[tuple[str, str]]:
    items = client.expect(200, "GET", path).json["items"]
    return [
        (f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}", item["metadata"]["uid"])
        for item in items
    ]


def make_config_map(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": name * 200}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], float]:
    """What a server has after an undisturbed first start, and how many seconds that took."""
    cluster = Cluster(tmp_path_factory.mktemp("whole") / "data")
    cluster.start().kill_after(0)  # so that the process is there from which the others are forked
    cluster = Cluster(tmp_path_factory.mktemp("whole") / "data")
    started = time.monotonic()
    server = cluster.start()
    server.wait_up()
    seconds = time.monotonic() - started
    server.kill_after(0)
    with cluster.checked():
        return cluster.objects, seconds


def kill_first_starts(folder: Path, whole: tuple[set[str], float], times: int) -> None:
    objects, seconds = whole
    randomness = random.Random(times)
    for number in range(times):
        cluster = Cluster(folder / str(number))
        for _ in range(randomness.randint(1, 3)):
            cluster.start().kill_after(randomness.uniform(0, seconds))
            cluster.look_at_files()
        with cluster.checked():
            assert cluster.objects == objects


def kill_later_starts(folder: Path, seconds: float, times: int) -> None:
    randomness = random.Random(times)
    cluster = Cluster(folder / "data")
    killed = 0
    while killed < times:
        with cluster.checked() as client:
            for number in range(randomness.randint(1, 30)):
                cluster.write(client, f"object-{killed}-{number}")
        for _ in range(randomness.randint(1, 3)):
            cluster.start().kill_after(randomness.uniform(0, seconds))
            cluster.look_at_files()
            killed += 1
    with cluster.checked():
        pass


def kill_at_changes(folder: Path, whole: tuple[set[str], float], step: int) -> int:
    """At every so manieth change of a file; returns how many there are."""
    change = 1
    while True:
        cluster = Cluster(folder / str(change))
        server = cluster.start(last_change=change)
        server.wait_up_or_dead()
        is_complete = server.is_up
        server.kill_after(0)
        cluster.look_at_files()
        with cluster.checked():
            assert cluster.objects == whole[0]
        if is_complete:
            return change
        change += step


def test_a_first_start_may_be_killed(tmp_path: Path, whole: tuple[set[str], float]) -> None:
    kill_first_starts(tmp_path, whole, 3)


def test_a_later_start_may_be_killed(tmp_path: Path, whole: tuple[set[str], float]) -> None:
    kill_later_starts(tmp_path, whole[1], 6)


@pytest.mark.slow
def test_many_first_starts_may_be_killed(tmp_path: Path, whole: tuple[set[str], float]) -> None:
    kill_first_starts(tmp_path, whole, 60)


@pytest.mark.slow
def test_many_later_starts_may_be_killed(tmp_path: Path, whole: tuple[set[str], float]) -> None:
    kill_later_starts(tmp_path, whole[1], 100)


@pytest.mark.slow
def test_a_first_start_may_be_killed_before_each_change_of_a_file(
    tmp_path: Path, whole: tuple[set[str], float]
) -> None:
    assert kill_at_changes(tmp_path, whole, step=1) > 30
