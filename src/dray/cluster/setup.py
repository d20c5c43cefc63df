"""Objects that a local cluster starts with."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from dray.api.errors import AlreadyExists, NotFound
from dray.api.resources import DEVICE_CLASSES, NODES
from dray.cluster.models import Model
from dray.runtime.client import Client

UP_LABEL = "dray.dev/up"
"""On the nodes that a local cluster made: those that it doesn't have any more are removed when it starts."""


async def prepare_objects(client: Client, model: Model, node_names: Sequence[str]) -> None:
    """The model's device classes, unless there are such already; and no nodes of an earlier, larger cluster."""
    for device_class in model.classes:
        with contextlib.suppress(AlreadyExists):
            await client.create(DEVICE_CLASSES, device_class)
    known = await client.list(NODES, label_selector=UP_LABEL)
    for node in known["items"]:
        if node["metadata"]["name"] not in node_names:
            with contextlib.suppress(NotFound):
                await client.delete(NODES, node["metadata"]["name"])
