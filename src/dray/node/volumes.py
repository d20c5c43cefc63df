"""Volumes of pods, for containers that are local processes: folders beside the containers, to which links lead.

What stands in ConfigMaps, Secrets and fields of the pod is written when the pod starts, and not again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from dray.api.cdi import Mount
from dray.api.meta import Json
from dray.node.environment import read_field
from dray.node.sources import ConfigUnusable, FetchedSources, source_of
from dray.runtime.files import write_atomically

FOLDER: Final = ".volumes"
"""Below a pod's directory; no container can have that name."""
FILE_MODE: Final = 0o644
_MAPS: Final = ("metadata.labels", "metadata.annotations")


class VolumeFile(NamedTuple):
    content: bytes
    mode: int


def fill_volumes(pod: Json, sources: FetchedSources, pod_directory: Path, address: str = "") -> None:
    """Make the volumes that the pod's containers mount. Raises ConfigUnusable, OSError."""
    mounted = {mount["name"] for container in _containers(pod) for mount in container.get("volumeMounts") or ()}
    for volume in pod["spec"].get("volumes") or ():
        if volume["name"] in mounted:
            try:
                _fill(volume, pod, sources, pod_directory, address)
            except (ConfigUnusable, OSError) as error:
                raise ConfigUnusable(f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}') from error


def find_mounts(container: Json, pod: Json, pod_directory: Path) -> tuple[Mount, ...]:
    """Where the container's volumes are, and where it wants them. Raises ConfigUnusable."""
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    mounts: list[Mount] = []
    for mount in container.get("volumeMounts") or ():
        if mount.get("subPathExpr"):
            raise ConfigUnusable(f"volume {mount['name']}: subPathExpr is not supported by this node agent")
        place = _place(volumes[mount["name"]], pod_directory)
        if inside := mount.get("subPath"):
            place /= _inside(inside)
            if "emptyDir" in volumes[mount["name"]]:
                place.mkdir(parents=True, exist_ok=True)
        mounts.append(Mount(host_path=str(place), container_path=mount["mountPath"]))
    return tuple(mounts)


def plan_files(volume: Json, pod: Json, sources: FetchedSources, address: str = "") -> dict[str, VolumeFile]:
    """The files of a volume whose content is given by others. Raises ConfigUnusable."""
    projected = volume.get("projected")
    if projected is None:
        return dict(_files_of(volume, pod, sources, address, _mode_of(volume)))
    mode = projected.get("defaultMode", FILE_MODE)
    return dict(
        file for part in projected.get("sources") or () for file in _files_of(part, pod, sources, address, mode)
    )


def _mode_of(volume: Json) -> int:
    return next((part["defaultMode"] for part in volume.values() if "defaultMode" in part), FILE_MODE)


def _files_of(
    part: Json, pod: Json, sources: FetchedSources, address: str, mode: int
) -> Iterator[tuple[str, VolumeFile]]:
    match part:
        case {"configMap": reference}:
            yield from _files_of_source("configMap", reference, sources, mode)
        case {"secret": reference}:
            yield from _files_of_source("secret", reference, sources, mode)
        case {"downwardAPI": reference}:
            for item in reference.get("items") or ():
                path = (item.get("fieldRef") or {}).get("fieldPath", "")
                value = _read_map(pod, path) if path in _MAPS else read_field(pod, path, address)
                if value is None:
                    raise ConfigUnusable(f"{path or next(iter(item))} is not supported by this node agent")
                yield item["path"], VolumeFile(value.encode(), item.get("mode", mode))
        case _:
            raise ConfigUnusable(f"{_kind_of(part)} is not supported by this node agent")


def _read_map(pod: Json, path: str) -> str:
    """All labels or annotations, a line each."""
    entries = pod["metadata"].get(path.partition(".")[2]) or {}
    return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(entries.items()))


def _files_of_source(
    field: str, reference: Json, sources: FetchedSources, mode: int
) -> Iterator[tuple[str, VolumeFile]]:
    source, optional = source_of(field, reference), bool(reference.get("optional"))
    items = reference.get("items")
    if items is None:
        for key, content in (sources.read(source, optional=optional) or {}).items():
            yield key, VolumeFile(content, mode)
    for item in items or ():
        found = sources.read_key(source, item["key"], optional=optional)
        if found is not None:
            yield item["path"], VolumeFile(found, item.get("mode", mode))


def _fill(volume: Json, pod: Json, sources: FetchedSources, pod_directory: Path, address: str) -> None:
    place = _place(volume, pod_directory)
    match volume:
        case {"hostPath": {"type": "DirectoryOrCreate"}}:
            place.mkdir(parents=True, exist_ok=True)
        case {"hostPath": {"type": "FileOrCreate"}}:
            place.touch(exist_ok=True)
        case {"hostPath": _}:
            if not place.exists():
                raise ConfigUnusable(f"hostPath {place} doesn't exist")
        case {"emptyDir": _}:
            _make_private(place)
        case _:
            files = plan_files(_without_name(volume), pod, sources, address)
            _make_private(place)
            _write(place, files)


def _write(place: Path, files: Mapping[str, VolumeFile]) -> None:
    wanted = {place / _inside(name): file for name, file in files.items()}
    for path, file in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, file.content, mode=file.mode, durable=False)
    for path in place.rglob("*"):
        if not path.is_dir() and path not in wanted:
            path.unlink()


def _make_private(place: Path) -> None:
    """Files may be readable to all by their mode, but what leads to them is not."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.mkdir(exist_ok=True)


def _place(volume: Json, pod_directory: Path) -> Path:
    host = volume.get("hostPath")
    return Path(host["path"]) if host is not None else pod_directory / FOLDER / str(volume["name"])


def _inside(path: str) -> PurePosixPath:
    relative = PurePosixPath(path)
    if relative.is_absolute() or ".." in relative.parts:
        raise ConfigUnusable(f"path {path} leaves the volume")
    return relative


def _without_name(volume: Json) -> Json:
    return {field: value for field, value in volume.items() if field != "name"}


def _kind_of(part: Json) -> str:
    return next(iter(part), "a volume without a kind")


def _containers(pod: Json) -> Iterable[Json]:
    return (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"])
