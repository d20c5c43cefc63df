"""The index of a large cluster: loading, memory, and how the cost of a question grows with the number of nodes.

Run: python bench/scale.py [NODES]
"""

from __future__ import annotations

import itertools
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.unit.allocator.world import make_claim, make_class, make_constraint, make_holder, make_request

from dray.allocator.index import Index
from dray.allocator.nodes import NodeFacts
from dray.api.claims import ResourceClaim
from dray.api.codec import decode_object

DEVICES = 8
DRIVER = "gpu.example.com"


def make_slice_json(node: int) -> dict[str, object]:
    """A node as drivers publish it: every device has a UUID and an address of its own."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"node-{node:05}-gpu"},
        "spec": {
            "driver": DRIVER,
            "nodeName": f"node-{node:05}",
            "pool": {"name": f"node-{node:05}", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"gpu-{number}",
                    "attributes": {
                        "model": {"string": "H100"},
                        "index": {"int": number},
                        "uuid": {"string": f"GPU-{node:08x}-{number:04x}"},
                        "driverVersion": {"version": "570.1.0"},
                        "numa": {"int": number // 4},
                        "resource.kubernetes.io/pcieRoot": {"string": f"pci{number // 2}"},
                    },
                    "capacity": {"memory": {"value": "80Gi"}},
                }
                for number in range(DEVICES)
            ],
        },
    }


def milliseconds(action: Callable[[], object], runs: int = 20) -> float:
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def load(nodes: int) -> Index:
    numbers = itertools.count()
    index = Index(make_id=lambda: f"00000000-0000-0000-0000-{next(numbers):012}")
    index.apply_class(make_class("gpu"))
    for node in range(nodes):
        index.apply_slice(decode_object(make_slice_json(node)))
        index.apply_node(NodeFacts(f"node-{node:05}", {"zone": f"zone-{node % 3}"}))
    return index


def one_gpu() -> ResourceClaim:
    return make_claim(make_request("gpu", 1, 'device.attributes["gpu.example.com"].model == "H100"'))


def four_on_one_numa_node() -> ResourceClaim:
    return make_claim(make_request("gpu", 4), constraints=[make_constraint(match=f"{DRIVER}/numa")])


def report_growth() -> None:
    """The same question to a thousand and to ten thousand equal nodes."""
    times: dict[int, float] = {}
    for nodes in (1_000, 10_000):
        index = load(nodes)
        claim = one_gpu()
        index.fitting([claim])
        times[nodes] = milliseconds(lambda: index.fitting([claim]).count, 200)  # noqa: B023 - called at once
    print(
        f"which of 1,000 equal nodes fit: {times[1_000]:.4f} ms, of 10,000: {times[10_000]:.4f} ms, "
        f"{times[10_000] / times[1_000]:.2f} times as long"
    )


def report_large(nodes: int) -> None:
    start = time.perf_counter()
    index = load(nodes)
    elapsed = time.perf_counter() - start
    print(f"{nodes:,} nodes with {nodes * DEVICES:,} devices loaded in {elapsed:.1f} s, decoding included")
    report_question(index, "one GPU", one_gpu())
    report_question(index, "four GPUs of one NUMA node", four_on_one_numa_node())
    claim = one_gpu()
    number = itertools.count()

    def claim_one_more() -> None:
        node = next(number) % nodes
        index.apply_claim(make_holder(f"holder-{node}", "gpu-0", pool=f"node-{node:05}"))
        index.fitting([claim])

    print(f"a claim is allocated, then which nodes fit: {milliseconds(claim_one_more, 500):.3f} ms")
    print(f"fork: {milliseconds(index.fork, 100) * 1000:.1f} microseconds")
    print(f"names of all nodes that fit: {milliseconds(lambda: list(index.fitting([claim]).nodes())):.2f} ms")
    print(f"memory at most: {megabytes():.0f} MB")


def report_question(index: Index, title: str, claim: ResourceClaim) -> None:
    start = time.perf_counter()
    count = index.fitting([claim]).count
    first = (time.perf_counter() - start) * 1000
    warm = milliseconds(lambda: index.fitting([claim]).count)
    print(f"which nodes fit {title}: the first time {first:.1f} ms, warm {warm:.3f} ms, {count:,} nodes")


def main(arguments: list[str]) -> None:
    report_growth()
    report_large(int(arguments[0]) if arguments else 20_000)


if __name__ == "__main__":
    main(sys.argv[1:])
