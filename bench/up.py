"""A large cluster in one process: `dray up --model a100-8 --nodes 200 --runtime simulated`, 2,000 pods come and go.

    python bench/up.py [--nodes 200] [--pods 2000] [--at-once 400] [--minutes 0]

Prints how long things take, and what of the processor and the memory they need. With --minutes, pods keep coming and
going for that long, and memory is printed once a minute: it should level off.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import resource
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from dray.api.meta import Json
from dray.api.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES
from dray.cluster.inventories import find_model
from dray.cluster.local import ClusterOptions, LocalCluster
from dray.node.simulated import RUN_SECONDS
from dray.runtime.informer import Informer
from dray.testing.builders import make_pod, make_request, make_template

NAMESPACE = "default"


class Meter:
    """Wall clock and processor time since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def __str__(self) -> str:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return f"{wall:6.1f} s, processor {cpu:6.1f} s ({cpu / wall:4.0%})"


def memory_now() -> float:
    """MiB of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class PodTimes:
    """When each pod was created, ran, and was gone."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.created: dict[str, float] = {}
        self.running: dict[str, float] = {}
        self.gone: dict[str, float] = {}
        self._changed = asyncio.Event()
        self._pods: Informer[Json] = Informer(cluster.client, PODS)
        self._pods.add_handler(self._changed_pod)
        self._following = asyncio.create_task(self._pods.run())

    def _changed_pod(self, old: Json | None, new: Json | None) -> None:
        now = time.perf_counter()
        if new is None:
            assert old is not None
            self.gone[old["metadata"]["name"]] = now
        elif (new.get("status") or {}).get("phase") in ("Running", "Succeeded"):
            self.running.setdefault(new["metadata"]["name"], now)
        self._changed.set()

    @property
    def present(self) -> int:
        return len(self._pods)

    async def wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def stop(self) -> None:
        self._following.cancel()

    def describe(self) -> str:
        waits = sorted(self.running[name] - self.created[name] for name in self.running if name in self.created)
        if not waits:
            return "no pod ran"
        middle, late = statistics.median(waits), waits[int(len(waits) * 0.99)]
        return f"created to running: median {middle * 1000:.0f} ms, 99 % within {late * 1000:.0f} ms"


async def come_and_go(cluster: LocalCluster, times: PodTimes, pods: int, at_once: int, first: int = 0) -> None:
    """Pods that run for half a second; never more than `at_once` of them in the cluster."""

    async def delete_when_done(name: str) -> None:
        while name not in times.running:
            await times.wait()
        await cluster.client.delete(PODS, name, NAMESPACE)

    async with asyncio.TaskGroup() as group:
        for number in range(first, first + pods):
            while times.present >= at_once:
                await times.wait()
            name = f"pod-{number}"
            pod = make_pod(name, template="one-gpu", restartPolicy="Never")
            pod["metadata"]["annotations"] = {RUN_SECONDS: "0.5"}
            times.created[name] = time.perf_counter()
            await cluster.client.create(PODS, pod, NAMESPACE)
            group.create_task(delete_when_done(name))
            if number % 20 == 0:
                await asyncio.sleep(0)
    while times.present:
        await times.wait()


async def run(nodes: int, pods: int, at_once: int, minutes: float) -> None:
    data_dir = Path(tempfile.mkdtemp(prefix="dray-"))
    print(f"{nodes} nodes with 8 GPUs and 7 NICs each; {pods} pods with a GPU each, at most {at_once} at once")
    print(f"empty process:          {memory_now():6.0f} MiB")
    options = ClusterOptions(data_dir, find_model("a100-8"), nodes=nodes, runtime="simulated", memory=True)
    cluster = LocalCluster(options)
    meter = Meter()
    try:
        await cluster.start()
        slices = (await cluster.client.list(RESOURCE_SLICES))["items"]
        devices = sum(len(item["spec"].get("devices") or ()) for item in slices)
        print(f"up, {devices} devices:       {meter}, {memory_now():.0f} MiB")
        meter = Meter()
        await asyncio.sleep(5)
        print(f"idle:                   {meter}")
        template = make_template("one-gpu", make_request(class_name="gpu.nvidia.com"))
        await cluster.client.create(RESOURCE_CLAIM_TEMPLATES, template, NAMESPACE)
        times = PodTimes(cluster)
        meter = Meter()
        await come_and_go(cluster, times, pods, at_once)
        print(f"{pods} pods came and went: {meter}, {memory_now():.0f} MiB")
        print(f"  {times.describe()}")
        done = pods
        end = time.perf_counter() + minutes * 60
        while time.perf_counter() < end:
            until = time.perf_counter() + 60
            while time.perf_counter() < until:
                times.created.clear()
                times.running.clear()
                times.gone.clear()
                await come_and_go(cluster, times, at_once, at_once, first=done)
                done += at_once
            gc.collect()
            print(f"  {done} pods so far: {memory_now():.0f} MiB", flush=True)
        times.stop()
        meter = Meter()
    finally:
        await cluster.stop()
        print(f"down:                   {meter}")
        shutil.rmtree(data_dir)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--at-once", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=0)
    given = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    asyncio.run(run(given.nodes, given.pods, given.at_once, given.minutes))


if __name__ == "__main__":
    main()
