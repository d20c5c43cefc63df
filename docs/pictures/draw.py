"""Draws the pictures of the documentation from a cluster that really runs: `make pictures`."""

from __future__ import annotations

import asyncio
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from dray.api.resources import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS
from dray.cli.status import show
from dray.cluster.inventories import find_model
from dray.cluster.local import ClusterOptions, LocalCluster
from dray.cluster.observing import read_summary
from dray.cluster.summary import Summary
from dray.testing.builders import make_claim, make_pod, make_request
from dray.testing.waiting import eventually

FOLDER = Path(__file__).parent
SERVER = "https://127.0.0.1:6443"
"""In place of the port that the cluster happens to get, so that a picture changes only if something does."""
COLUMNS = 116
GPU, NIC = "gpu.nvidia.com", "rdma"
ALIGNED = {"matchAttribute": "resource.kubernetes.io/pcieRoot"}


async def add(cluster: LocalCluster, name: str, *requests: dict[str, Any], node: str = "", **claim: Any) -> None:
    """A pod with a claim of the same name."""
    await cluster.client.create(RESOURCE_CLAIMS, make_claim(name, *requests, **claim), "default")
    selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    await cluster.client.create(PODS, make_pod(name, claim=name, **selector), "default")


async def make_status() -> Summary:
    with tempfile.TemporaryDirectory(prefix="dray-") as folder:
        options = ClusterOptions(Path(folder), find_model("a100-8"), nodes=3, runtime="simulated", memory=True)
        async with LocalCluster(options) as cluster:
            rule = {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceTaintRule",
                "metadata": {"name": "overheated"},
                "spec": {
                    "deviceSelector": {"driver": GPU, "pool": "node-2", "device": "gpu-7"},
                    "taint": {"key": "example.com/overheated", "effect": "NoSchedule"},
                },
            }
            await cluster.client.create(DEVICE_TAINT_RULES, rule)
            await add(cluster, "training", make_request("gpus", class_name=GPU, count=8), node="node-1")
            both = (make_request("gpu", class_name=GPU, count=2), make_request("nic", class_name=NIC))
            await add(cluster, "inference", *both, node="node-2", constraints=[ALIGNED])
            await add(cluster, "notebook", make_request("gpu", class_name=GPU), node="node-3")

            await wait_for(cluster, lambda summary: [pod.phase for pod in summary.pods] == ["Running"] * 3)
            await add(cluster, "evaluation", make_request("gpus", class_name=GPU, count=8))
            return await wait_for(cluster, lambda summary: any("It would fit" in pod.reason for pod in summary.waiting))


async def wait_for(cluster: LocalCluster, condition: Callable[[Summary], bool]) -> Summary:
    async def reached() -> Summary | None:
        summary = await read_summary(cluster.client)
        return summary if condition(summary) else None

    found: Summary = await eventually(reached)
    return found


def draw(name: str, command: str, summary: Summary) -> None:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text.assemble(("$ ", "dim"), command))
    show(console, SERVER, summary)
    svg = console.export_svg(title=command, unique_id=f"dray-{name}")
    (FOLDER / f"{name}.svg").write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")


if __name__ == "__main__":
    draw("status", "dray status", asyncio.run(make_status()))
