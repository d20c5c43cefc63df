"""The shapes of `scheduling.py` with API server, controllers and scheduler as separate processes, over HTTPS.

    python bench/scheduling_processes.py [--shape fill|steady|match] [--scale 0.2]

Also printed: CPU time per pod of each process, which is what counts on a machine that does other things as well.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
from pathlib import Path

from dray.runtime.http_client import HttpClient
from dray.runtime.kubeconfig import find_access
from scheduling import KUBERNETES, Stack, fill, match, steady

PARTS = ("apiserver", "controllers", "scheduler")


class Processes(Stack):
    """The same stack, in pieces. `client` is that of the user who makes the pods."""

    async def start(self, directory: Path) -> None:
        data = directory / "data"
        self._directory = directory
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        await self._spawn("apiserver", "--data-dir", str(data), "--port", "0")
        async with asyncio.timeout(60):
            while not (data / "admin.kubeconfig").exists():  # noqa: ASYNC110 - another process can't set an event
                await asyncio.sleep(0.05)
        for name in PARTS[1:]:
            await self._spawn(name, "--kubeconfig", str(data / "kubeconfigs" / f"{name}.kubeconfig"))
        self.client = HttpClient(find_access(data / "admin.kubeconfig"), agent="bench")  # type: ignore[assignment]
        self.created, self.bound, self._waiters, self._tasks = {}, {}, {}, []
        self._watch = asyncio.create_task(self._watch_pods())

    async def _spawn(self, name: str, *arguments: str) -> None:
        with (self._directory / f"{name}.log").open("wb") as log:
            self._processes[name] = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "dray", name, *arguments, stdout=log, stderr=log
            )

    async def stop(self) -> None:
        self._watch.cancel()
        await asyncio.gather(self._watch, return_exceptions=True)
        await self.client.close()  # type: ignore[attr-defined]
        for name in reversed(PARTS):
            self._processes[name].terminate()
            await self._processes[name].wait()

    def cpu_seconds(self) -> dict[str, float]:
        return {name: _cpu_seconds(process.pid) for name, process in self._processes.items()}


def _cpu_seconds(pid: int) -> float:
    """User and system time, from Linux' /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def run_shape(shape: str, scale: float) -> None:
    with tempfile.TemporaryDirectory(prefix="dray-bench-") as directory:
        stack = Processes()
        await stack.start(Path(directory))
        try:
            before = stack.cpu_seconds()
            seconds, _, names = await {"fill": fill, "match": match, "steady": steady}[shape](stack, scale)
            used = {name: after - before[name] for name, after in stack.cpu_seconds().items()}
            report(shape, seconds, [stack.bound[name] - stack.created[name] for name in names], used, len(stack.bound))
        finally:
            await stack.stop()


def report(shape: str, seconds: float, latencies: list[float], used: dict[str, float], pods: int) -> None:
    rate = len(latencies) / seconds
    quantiles = statistics.quantiles(latencies, n=100)
    shares = ", ".join(f"{name} {cpu / pods * 1e3:.2f}" for name, cpu in used.items())
    print(
        f"{shape:7} {len(latencies):6} pods {rate:8.1f}/s  {rate / KUBERNETES[shape]:5.1f}x Kubernetes   "
        f"create→bind p50 {quantiles[49] * 1e3:7.1f} ms p99 {quantiles[98] * 1e3:7.1f} ms   CPU ms/pod: {shares}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=list(KUBERNETES), action="append")
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the nodes and pods")
    arguments = parser.parse_args()
    for shape in arguments.shape or list(KUBERNETES):
        asyncio.run(run_shape(shape, arguments.scale))


if __name__ == "__main__":
    main()
