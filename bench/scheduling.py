"""Whole control plane under load: pods with template claims, from creation to binding, on the durable store.

The shapes are those of Kubernetes' scheduler_perf: 500 nodes with 10 devices each. Baseline: what Kubernetes reaches
on two cores (32, 37 and 15 pods a second).

    python bench/scheduling.py [--shape fill|steady|match|scale] [--profile]
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import resource
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Self

from dray.api.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES
from dray.apiserver.dispatch import Api
from dray.apiserver.local import LocalClient
from dray.apiserver.registry import Registry
from dray.controllers.assembly import Controllers
from dray.runtime.client import EventType
from dray.runtime.clock import SystemClock
from dray.runtime.informers import Informers
from dray.runtime.memory import calm_garbage_collector
from dray.scheduler.scheduler import Scheduler
from dray.store.sqlite import SqliteStore
from dray.testing.builders import make_class, make_device, make_node, make_pod, make_request, make_slice, make_template

KUBERNETES = {"fill": 32.0, "steady": 37.0, "match": 15.0}
NAMESPACE = "default"
CREATORS = 32
SECONDS = 10.0


class Sampler:
    """Looks every few milliseconds of processor time at what the event loop does, and counts in whose code it is."""

    INTERVAL = 0.05

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __enter__(self) -> Self:
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, self.INTERVAL, self.INTERVAL)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _sample(self, _: int, frame: FrameType | None) -> None:
        while frame is not None and not frame.f_globals["__name__"].startswith("dray."):
            frame = frame.f_back
        self._counts["event loop" if frame is None else frame.f_globals["__name__"].split(".")[1]] += 1

    def __str__(self) -> str:
        total = sum(self._counts.values())
        return ", ".join(f"{name} {count / total:.0%}" for name, count in self._counts.most_common())


class Stack:
    """API server, controllers and scheduler in one process."""

    async def start(self, directory: Path) -> None:
        clock = SystemClock()
        self.store = await SqliteStore.open(directory / "dray.db", clock=clock.monotonic)
        registry = Registry(self.store, clock=clock)
        await Api(registry).bootstrap()
        self.client = LocalClient(registry)
        client = LocalClient(registry, shares_answers=True)
        informers = Informers(client, clock)
        self.scheduler = Scheduler(client, clock, informers=informers)
        self.controllers = Controllers(client, clock, root_ca="", informers=informers)
        runners = (informers.run(), self.scheduler.run(), self.controllers.run())
        self._tasks = [asyncio.create_task(runner) for runner in runners]
        self.created: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        self._waiters: dict[str, asyncio.Future[None]] = {}
        self._watch = asyncio.create_task(self._watch_pods())

    async def stop(self) -> None:
        for task in (*self._tasks, self._watch):
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, self._watch, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        await self.store.close()

    async def _watch_pods(self) -> None:
        revision = (await self.client.list(PODS, limit=1))["metadata"]["resourceVersion"]
        async with self.client.watch(PODS, resource_version=revision) as events:
            async for event in events:
                if event.type is EventType.MODIFIED and event.object["spec"].get("nodeName"):
                    name = event.object["metadata"]["name"]
                    self.bound.setdefault(name, time.perf_counter())
                    if (waiter := self._waiters.pop(name, None)) is not None:
                        waiter.set_result(None)

    async def wait_one(self, name: str) -> None:
        if name not in self.bound:
            self._waiters[name] = asyncio.get_running_loop().create_future()
            await self._waiters[name]

    async def create_nodes(self, count: int, devices: int) -> None:
        await self.client.create(DEVICE_CLASSES, make_class())
        for number in range(count):
            name = f"node-{number:05d}"
            await self.client.create(NODES, make_node(name))
            items = [make_device(f"gpu-{index}", numa=index // 5) for index in range(devices)]
            await self.client.create(RESOURCE_SLICES, make_slice(name, items))

    async def create_pods(self, names: Iterable[str], template: str) -> None:
        """Many at a time, as a controller that scales something up does."""
        left = iter(names)

        async def create() -> None:
            for name in left:
                await self.create_pod(name, template)

        await asyncio.gather(*(create() for _ in range(CREATORS)))

    async def create_pod(self, name: str, template: str) -> None:
        self.created[name] = time.perf_counter()
        await self.client.create(PODS, make_pod(name, template=template), NAMESPACE)

    async def wait_bound(self, names: Iterable[str]) -> None:
        left = set(names)
        while left:
            left -= self.bound.keys()
            for task in (*self._tasks, self._watch):
                if task.done():
                    task.result()
            await asyncio.sleep(0.02)


async def fill(stack: Stack, scale: float) -> tuple[float, float, list[str]]:
    """Half of the devices allocated, then as many pods at once."""
    await stack.create_nodes(int(500 * scale), 10)
    await stack.client.create(RESOURCE_CLAIM_TEMPLATES, make_template("one"), NAMESPACE)
    count = int(2500 * scale)
    first = [f"init-{number}" for number in range(count)]
    await stack.create_pods(first, "one")
    await stack.wait_bound(first)
    return await measure(stack, [f"pod-{number}" for number in range(count)], "one")


async def match(stack: Stack, scale: float) -> tuple[float, float, list[str]]:
    """Five requests with one matchAttribute, on an empty cluster."""
    await stack.create_nodes(int(500 * scale), 10)
    requests = [make_request(f"r{number}") for number in range(5)]
    constraint = {"matchAttribute": "gpu.example.com/numa"}
    await stack.client.create(
        RESOURCE_CLAIM_TEMPLATES, make_template("five", *requests, constraints=[constraint]), NAMESPACE
    )
    return await measure(stack, [f"pod-{number}" for number in range(int(900 * scale))], "five")


async def spread_out(stack: Stack, nodes: int, pods: int) -> tuple[float, float, list[str]]:
    """Pods at once on an empty cluster of any size, 8 devices on each node."""
    await stack.create_nodes(nodes, 8)
    await stack.client.create(RESOURCE_CLAIM_TEMPLATES, make_template("one"), NAMESPACE)
    return await measure(stack, [f"pod-{number}" for number in range(pods)], "one")


async def steady(stack: Stack, scale: float) -> tuple[float, float, list[str]]:
    """Ten seconds of pods that come, are bound and go."""
    await stack.create_nodes(int(500 * scale), 10)
    await stack.client.create(RESOURCE_CLAIM_TEMPLATES, make_template("one"), NAMESPACE)
    names: list[str] = []
    in_flight = asyncio.Semaphore(64)
    start, cpu = time.perf_counter(), cpu_seconds()

    async def one(name: str) -> None:
        try:
            await stack.create_pod(name, "one")
            await stack.wait_one(name)
            await stack.client.delete(PODS, name, NAMESPACE, grace_period_seconds=0)
        finally:
            in_flight.release()

    async with asyncio.TaskGroup() as group:
        while time.perf_counter() - start < SECONDS:
            await in_flight.acquire()
            names.append(f"pod-{len(names)}")
            group.create_task(one(names[-1]))
    return time.perf_counter() - start, cpu_seconds() - cpu, names


async def measure(stack: Stack, names: list[str], template: str) -> tuple[float, float, list[str]]:
    start, cpu = time.perf_counter(), cpu_seconds()
    await stack.create_pods(names, template)
    await stack.wait_bound(names)
    return time.perf_counter() - start, cpu_seconds() - cpu, names


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def run_shape(shape: str, scale: float) -> None:
    if shape == "scale":
        small = await run(lambda stack: spread_out(stack, int(500 * scale), int(2000 * scale)), "500")
        large = await run(lambda stack: spread_out(stack, int(5000 * scale), int(10_000 * scale)), "5,000", small)
        print(f"scale   ten times the nodes: {large / small - 1:+.0%} throughput")
        return
    play = {"fill": fill, "match": match, "steady": steady}[shape]
    await run(lambda stack: play(stack, scale), shape, KUBERNETES[shape], "Kubernetes")


async def run(
    play: Callable[[Stack], Awaitable[tuple[float, float, list[str]]]],
    title: str,
    baseline: float | None = None,
    of: str = "500 nodes",
) -> float:
    """Plays on a stack of its own and prints what came of it. Returns pods per second."""
    with tempfile.TemporaryDirectory(prefix="dray-bench-") as directory:
        stack = Stack()
        await stack.start(Path(directory))
        try:
            with Sampler() as sampler:
                seconds, cpu, names = await play(stack)
            rate = len(names) / seconds
            compared = f"{rate / baseline:5.1f}x {of}" if baseline else " " * 16
            report(title, rate, compared, cpu, [stack.bound[name] - stack.created[name] for name in names], stack)
            print(f"        in whose code, setting up included: {sampler}")
        finally:
            await stack.stop()
    return rate


def report(title: str, rate: float, compared: str, cpu: float, latencies: list[float], stack: Stack) -> None:
    quantiles = statistics.quantiles(latencies, n=100)
    allocator: Any = stack.scheduler.state.picture.index.statistics
    print(
        f"{title:7} {len(latencies):6} pods {rate:8.1f}/s  {compared}   "
        f"create→bind p50 {quantiles[49] * 1e3:7.1f} ms p99 {quantiles[98] * 1e3:7.1f} ms   "
        f"{cpu / len(latencies) * 1e3:5.2f} CPU ms/pod   "
        f"searches {allocator.searches}, answers from memory {allocator.cache_hits}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=[*KUBERNETES, "scale"], action="append")
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the nodes and pods")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    arguments = parser.parse_args()
    calm_garbage_collector()
    for shape in arguments.shape or [*KUBERNETES, "scale"]:
        profile = cProfile.Profile()
        if arguments.profile:
            profile.enable()
        asyncio.run(run_shape(shape, arguments.scale))
        if arguments.profile:
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()
