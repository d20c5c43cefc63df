"""Whole clusters in this process, for tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dray.api.errors import NotFound
from dray.api.meta import Json
from dray.api.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dray.cluster.inventories import find_model
from dray.cluster.local import ClusterOptions, LocalCluster
from dray.cluster.models import Model, alike
from dray.testing.builders import make_pod, make_request, make_template
from dray.testing.waiting import eventually

NO_DEVICES = Model("none", "no devices", alike())


@asynccontextmanager
async def local_cluster(model: str | Model = NO_DEVICES, nodes: int = 1, **options: Any) -> AsyncIterator[LocalCluster]:
    data_dir = Path(tempfile.mkdtemp(prefix="dray-"))
    found = find_model(model) if isinstance(model, str) else model
    try:
        async with LocalCluster(ClusterOptions(data_dir, found, nodes=nodes, memory=True, **options)) as cluster:
            yield cluster
    finally:
        shutil.rmtree(data_dir)


async def add_pod(
    cluster: LocalCluster, name: str, class_name: str, *, command: str = "exec sleep 1000", **request: Any
) -> Json:
    """A pod with a claim from a template of its own: one request, called `gpu`."""
    template = make_template(name, make_request(class_name=class_name, **request))
    await cluster.client.create(RESOURCE_CLAIM_TEMPLATES, template, "default")
    pod = make_pod(name, template=name, restartPolicy="Never", terminationGracePeriodSeconds=1)
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", command]
    return await cluster.client.create(PODS, pod, "default")


async def get_pod(cluster: LocalCluster, name: str) -> Json | None:
    try:
        return await cluster.client.get(PODS, name, "default")
    except NotFound:
        return None


async def wait_phase(cluster: LocalCluster, name: str, phase: str) -> Json:
    async def reached() -> Json | None:
        pod = await get_pod(cluster, name)
        return pod if pod is not None and pod["status"].get("phase") == phase else None

    found: Json = await eventually(reached, f"pod {name} is {phase}")
    return found


async def wait_gone(cluster: LocalCluster, name: str) -> None:
    async def gone() -> bool:
        return await get_pod(cluster, name) is None

    await eventually(gone, f"pod {name} is gone")


async def claim_of(cluster: LocalCluster, pod: str) -> Json:
    found = await get_pod(cluster, pod)
    assert found is not None
    (status,) = found["status"]["resourceClaimStatuses"]
    return await cluster.client.get(RESOURCE_CLAIMS, status["resourceClaimName"], "default")


async def devices_of(cluster: LocalCluster, pod: str) -> list[str]:
    claim = await claim_of(cluster, pod)
    return [result["device"] for result in claim["status"]["allocation"]["devices"]["results"]]


def read_log(cluster: LocalCluster, pod: Json, container: str = "main") -> str:
    node = cluster.nodes[pod["spec"]["nodeName"]]
    return (node.root / "pods" / pod["metadata"]["uid"] / container / "0.log").read_text()
