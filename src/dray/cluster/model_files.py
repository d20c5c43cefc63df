"""Models from manifests: ResourceSlices as `kubectl get resourceslices -o yaml` prints them, DeviceClasses, Nodes.

Every node that the slices name is a kind of node; a cluster has the kinds in turn. The devices of a driver on a node
form one pool, named after the node. Slices without a node's name are network-attached pools and stay as they are. Of
Nodes only the labels count. Without a DeviceClass there is one for each driver, with the driver's name. A file with
DeviceClasses alone makes nodes without devices, for drivers that are yet to come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import yaml

from dray.api.classes import DeviceClass
from dray.api.codec import DecodeError
from dray.api.meta import Json
from dray.api.slices import ResourceSlice, ResourceSliceSpec
from dray.api.strict import decode_strict
from dray.cluster.models import DriverModel, Model, NodeModel, make_class
from dray.driver.pools import Pool
from dray.validation import strategy
from dray.validation.outcome import RequestContext

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ANY_TIME = "2000-01-01T00:00:00Z"
"""For times that a server would set; a model keeps none."""


class BadModel(Exception):
    """A model can't be used; the text says where and why."""


@dataclass
class _Parts:
    nodes: dict[str, dict[str, DriverModel]] = field(default_factory=dict)
    pools: dict[str, dict[str, Pool]] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    classes: list[Json] = field(default_factory=list)

    def add_slice(self, spec: ResourceSliceSpec) -> None:
        if spec.node_name:
            drivers = self.nodes.setdefault(spec.node_name, {})
            known = drivers.get(spec.driver, DriverModel(spec.driver))
            drivers[spec.driver] = replace(
                known,
                devices=known.devices + spec.devices,
                shared_counters=known.shared_counters + spec.shared_counters,
            )
            return
        pools = self.pools.setdefault(spec.driver, {})
        pool = pools.get(spec.pool.name) or Pool(
            name=spec.pool.name,
            node_selector=spec.node_selector,
            all_nodes=bool(spec.all_nodes),
            per_device_node_selection=bool(spec.per_device_node_selection),
        )
        pools[spec.pool.name] = replace(
            pool, devices=pool.devices + spec.devices, shared_counters=pool.shared_counters + spec.shared_counters
        )

    def model(self, path: Path) -> Model:
        names = list(dict.fromkeys((*self.nodes, *self.labels))) or [""]
        kinds = [NodeModel(tuple(self.nodes.get(name, {}).values()), self.labels.get(name, {})) for name in names]
        pools = {driver: tuple(found.values()) for driver, found in self.pools.items()}
        drivers = dict.fromkeys((*(name for node in self.nodes.values() for name in node), *pools))
        return Model(
            name=path.stem,
            description=f"from {path.name}",
            make_node=lambda index: kinds[index % len(kinds)],
            classes=tuple(self.classes or map(make_class, drivers)),
            make_cluster_pools=lambda nodes: pools,
            default_nodes=len(kinds) if self.nodes else 3,
        )


def load_model(path: Path) -> Model:
    """Raises BadModel, OSError."""
    try:
        documents = [item for item in yaml.load_all(path.read_text(), _LOADER) if item]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadModel(f"{path}: {_one_line(str(error))}") from error
    parts = _Parts()
    for obj in _objects(path, documents):
        _add(parts, path, obj)
    if not parts.nodes and not parts.pools and not parts.classes:
        raise BadModel(f"{path}: there is neither a ResourceSlice nor a DeviceClass in it")
    return parts.model(path)


def _objects(path: Path, documents: Iterable[Any]) -> Iterable[Json]:
    for document in documents:
        is_list = isinstance(document, dict) and str(document.get("kind")).endswith("List")
        for obj in (document.get("items") or ()) if is_list else (document,):
            if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str):
                raise BadModel(f"{path}: a model consists of ResourceSlices, DeviceClasses and Nodes")
            if not isinstance(obj.get("metadata") or {}, dict):
                raise BadModel(f"{path}: {obj['kind']}: metadata: expected an object")
            yield obj


def _add(parts: _Parts, path: Path, obj: Json) -> None:
    metadata = obj.get("metadata") or {}
    if obj["kind"] == "Node":
        parts.labels[metadata.get("name", "")] = metadata.get("labels") or {}
        return
    match _read(path, obj):
        case ResourceSlice() as decoded:
            parts.add_slice(decoded.spec)
        case DeviceClass():
            parts.classes.append(obj)
        case _:
            raise BadModel(f"{path}: a {obj['kind']} is no part of a model")


def _read(path: Path, obj: Json) -> Any:
    """The object, judged as by a server that is asked to create it. Raises BadModel."""
    subject = f"{path}: {obj['kind']} {(obj.get('metadata') or {}).get('name', '')}".rstrip()
    try:
        value, unknown = decode_strict(msgspec.json.encode(obj))
    except DecodeError as error:
        raise BadModel(": ".join(filter(None, (subject, error.field, error.message)))) from error
    except TypeError as error:  # YAML has more than JSON, such as dates as keys
        raise BadModel(f"{subject}: {error}") from error
    problems = list(map(str, unknown))
    if not problems and isinstance(value, ResourceSlice | DeviceClass):
        outcome: Any = strategy.create(_completed(value), RequestContext(now=_ANY_TIME))
        problems = list(map(str, outcome.errors))
    if problems:
        raise BadModel(f"{subject}: {'; '.join(map(_one_line, dict.fromkeys(problems)))}")
    return value


def _one_line(text: str) -> str:
    """Without the picture of the place that errors of expressions draw."""
    return " ".join(line.strip() for line in text.splitlines() if not line.startswith(" |"))


def _completed(value: ResourceSlice | DeviceClass) -> ResourceSlice | DeviceClass:
    """Names, and how many slices a pool has, are found anew when the devices are published."""
    metadata = msgspec.structs.replace(value.metadata, name=value.metadata.name or "unnamed")
    if isinstance(value, DeviceClass):
        return msgspec.structs.replace(value, metadata=metadata)
    pool = msgspec.structs.replace(value.spec.pool, resource_slice_count=max(value.spec.pool.resource_slice_count, 1))
    return msgspec.structs.replace(value, metadata=metadata, spec=msgspec.structs.replace(value.spec, pool=pool))
