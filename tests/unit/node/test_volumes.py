"""Volumes: the files that they consist of, and where containers find them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dray.api.meta import Json
from dray.node.sources import ConfigUnusable, Data, FetchedSources, Source
from dray.node.volumes import VolumeFile, fill_volumes, find_mounts, plan_files

FOUND: dict[Source, Data | None] = {
    Source("ConfigMap", "settings"): {"mode": b"fast", "level": b"3"},
    Source("Secret", "login"): {"token": b"hidden"},
    Source("ConfigMap", "missing"): None,
}
SOURCES = FetchedSources("default", FOUND)


def pod_with(*volumes: Json, mounts: list[Json] | None = None) -> Json:
    """One container that mounts all of them, at /mnt/NAME."""
    every = [{"name": volume["name"], "mountPath": f"/mnt/{volume['name']}"} for volume in volumes]
    return {
        "metadata": {"name": "pod", "namespace": "default", "uid": "u", "labels": {"b": "2", "a": "1"}},
        "spec": {
            "containers": [{"name": "main", "volumeMounts": every if mounts is None else mounts}],
            "volumes": list(volumes),
        },
    }


@pytest.mark.parametrize(
    ("volume", "files"),
    [
        ({"configMap": {"name": "settings"}}, {"mode": b"fast", "level": b"3"}),
        ({"secret": {"secretName": "login"}}, {"token": b"hidden"}),
        ({"configMap": {"name": "settings", "items": [{"key": "mode", "path": "a/b"}]}}, {"a/b": b"fast"}),
        ({"configMap": {"name": "missing", "optional": True}}, {}),
        ({"configMap": {"name": "settings", "optional": True, "items": [{"key": "x", "path": "x"}]}}, {}),
        ({"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}}, {"n": b"pod"}),
        (
            {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"l": b'a="1"\nb="2"'},
        ),
        (
            {"projected": {"sources": [{"configMap": {"name": "settings"}}, {"secret": {"name": "login"}}]}},
            {"mode": b"fast", "level": b"3", "token": b"hidden"},
        ),
    ],
)
def test_files_come_from_elsewhere(volume: Json, files: dict[str, bytes]) -> None:
    planned = plan_files(volume, pod_with(), SOURCES)
    assert {name: file.content for name, file in planned.items()} == files


def test_modes_are_those_of_the_item_or_else_of_the_volume() -> None:
    items = [{"key": "mode", "path": "m", "mode": 0o400}, {"key": "level", "path": "l"}]
    volume = {"configMap": {"name": "settings", "items": items, "defaultMode": 0o440}}
    planned = plan_files(volume, pod_with(), SOURCES)
    assert planned == {"m": VolumeFile(b"fast", 0o400), "l": VolumeFile(b"3", 0o440)}


@pytest.mark.parametrize(
    ("volume", "problem"),
    [
        ({"configMap": {"name": "missing"}}, 'configmap "missing" not found'),
        ({"configMap": {"name": "settings", "items": [{"key": "x", "path": "x"}]}}, "couldn't find key x"),
        ({"configMap": {"name": "settings", "items": [{"key": "mode", "path": "../x"}]}}, "../x leaves the volume"),
        ({"hostPath": {"path": "/no/such/place"}}, "hostPath /no/such/place doesn't exist"),
        ({"persistentVolumeClaim": {"claimName": "c"}}, "persistentVolumeClaim is not supported by this node agent"),
        ({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}, "serviceAccountToken is not supported"),
        (
            {"downwardAPI": {"items": [{"path": "c", "resourceFieldRef": {"resource": "limits.cpu"}}]}},
            "is not supported by this node agent",
        ),
    ],
)
def test_what_cannot_be_mounted_is_named(volume: Json, problem: str, tmp_path: Path) -> None:
    pod = pod_with({"name": "v", **volume})
    with pytest.raises(ConfigUnusable, match=f'MountVolume.SetUp failed for volume "v" : .*{problem}'):
        fill_volumes(pod, SOURCES, tmp_path)


def test_volumes_that_nobody_mounts_are_not_made(tmp_path: Path) -> None:
    fill_volumes(pod_with({"name": "v", "csi": {}}, mounts=[]), SOURCES, tmp_path)
    assert not list(tmp_path.iterdir())


def read(mount: Any, name: str) -> str:
    return (Path(mount.host_path) / name).read_text()


def test_containers_are_led_to_the_files_and_old_ones_go(tmp_path: Path) -> None:
    pod = pod_with({"name": "config", "configMap": {"name": "settings"}}, {"name": "scratch", "emptyDir": {}})
    fill_volumes(pod, SOURCES, tmp_path)
    config, scratch = find_mounts(pod["spec"]["containers"][0], pod, tmp_path)
    assert (config.container_path, read(config, "mode")) == ("/mnt/config", "fast")
    (Path(scratch.host_path) / "mine").touch()
    changed: dict[Source, Data | None] = {Source("ConfigMap", "settings"): {"level": b"4"}}
    fill_volumes(pod, FetchedSources("default", changed), tmp_path)
    assert [path.name for path in Path(config.host_path).iterdir()] == ["level"]
    assert (Path(scratch.host_path) / "mine").exists()


def test_a_part_of_a_volume_can_be_mounted_but_nothing_outside(tmp_path: Path) -> None:
    def mount(**more: str) -> Json:
        return pod_with({"name": "v", "emptyDir": {}}, mounts=[{"name": "v", "mountPath": "/v", **more}])

    def find(pod: Json) -> str:
        (found,) = find_mounts(pod["spec"]["containers"][0], pod, tmp_path)
        return found.host_path

    assert find(mount(subPath="a/b")).endswith(".volumes/v/a/b")
    with pytest.raises(ConfigUnusable, match="leaves the volume"):
        find(mount(subPath="../../x"))
    with pytest.raises(ConfigUnusable, match="subPathExpr is not supported"):
        find(mount(subPathExpr="$(POD)"))
