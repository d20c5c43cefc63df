"""Objects that a local cluster starts with, and those of an earlier model that it starts without."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from dray.api.errors import AlreadyExists, NotFound
from dray.api.resources import DEVICE_CLASSES, NODES, RESOURCE_SLICES
from dray.cluster.models import Model
from dray.runtime.client import Client
from dray.runtime.files import write_atomically

UP_LABEL = "dray.dev/up"
"""On the nodes that a local cluster made: those that it doesn't have any more are removed when it starts."""
NETWORK_DRIVERS = "network-drivers.json"
"""Drivers of the model's network-attached devices, whose slices belong to no node that would take them along."""


async def prepare_objects(client: Client, model: Model, node_names: Sequence[str], data_dir: Path) -> None:
    """The model's device classes, unless there are such already; neither nodes nor devices of an earlier model."""
    for device_class in model.classes:
        with contextlib.suppress(AlreadyExists):
            await client.create(DEVICE_CLASSES, device_class)
    known = await client.list(NODES, label_selector=UP_LABEL)
    for node in known["items"]:
        if node["metadata"]["name"] not in node_names:
            with contextlib.suppress(NotFound):
                await client.delete(NODES, node["metadata"]["name"])
    drivers = model.make_cluster_pools(len(node_names)).keys()
    file = data_dir / NETWORK_DRIVERS
    earlier = msgspec.json.decode(file.read_bytes(), type=list[str]) if file.exists() else []
    await _remove_network_slices(client, (driver for driver in earlier if driver not in drivers))
    write_atomically(file, msgspec.json.encode(list(drivers)))


async def _remove_network_slices(client: Client, drivers: Iterable[str]) -> None:
    for driver in drivers:
        slices = await client.list(RESOURCE_SLICES, field_selector=f"spec.driver={driver}")
        for item in slices["items"]:
            if "nodeName" not in item["spec"]:
                with contextlib.suppress(NotFound):
                    await client.delete(RESOURCE_SLICES, item["metadata"]["name"])
