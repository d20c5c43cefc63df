"""Decoding and validating ResourceSlices, compared with `json.loads` on the same bytes in the same run."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from dray.api.codec import decode_object, encode
from dray.api.strict import find_strict_errors
from dray.validation import strategy
from dray.validation.outcome import RequestContext

SLICES = 10_000
DEVICES = 8
MEMORY_SAMPLE = 1_000
ROUNDS = 3
ALLOWED = 6.0

Json = dict[str, Any]


def gpu(node: int, index: int) -> Json:
    """One of eight A100 in a node with four PCIe roots."""
    root = ("10", "20", "90", "a0")[index // 2]
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{node:08x}-4257-7af7-6726-{index:012x}"},
            "minor": {"int": index},
            "productName": {"string": "NVIDIA A100-SXM4-40GB"},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": "Ampere"},
            "cudaComputeCapability": {"version": "8.0.0"},
            "driverVersion": {"version": "580.82.7"},
            "cudaDriverVersion": {"version": "13.0.0"},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{root}"},
            "resource.kubernetes.io/pciBusID": {"string": f"0000:{root}:{index:02x}.0"},
            "resource.kubernetes.io/numaNode": {"int": index // 4},
        },
        "capacity": {"memory": {"value": "40Gi"}},
    }


def nic(node: int, index: int) -> Json:
    """A port that claims share by bandwidth."""
    domain = "sriovnetwork.k8snetworkplumbingwg.io"
    policy = {"default": "1G", "validRange": {"min": "1G", "step": "1G"}}
    return {
        "name": f"nic-{index}",
        "allowMultipleAllocations": True,
        "attributes": {
            f"{domain}/PFName": {"string": f"ens{index}f0"},
            f"{domain}/vfID": {"int": index},
            f"{domain}/vendor": {"string": "15b3"},
            f"{domain}/deviceID": {"string": "101e"},
            f"{domain}/pciAddress": {"string": f"0000:{index:02x}:00.1"},
            f"{domain}/linkType": {"string": "ether"},
            f"{domain}/rdmaCapable": {"bool": node % 2 == 0},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index:02x}"},
        },
        "capacity": {"bandwidth": {"value": "10G", "requestPolicy": policy}},
    }


def mig(node: int, index: int) -> Json:
    """A 1g.5gb partition, which takes its share of a counter set."""
    counters = {"memory": {"value": "4864Mi"}, "multiprocessors": {"value": "14"}, "copy-engines": {"value": "1"}}
    counters[f"memory-slice-{index}"] = {"value": "1"}
    return {
        "name": f"gpu-0-mig-1g5gb-{index}",
        "attributes": {
            "type": {"string": "mig"},
            "profile": {"string": "1g.5gb"},
            "parentUUID": {"string": f"GPU-{node:08x}-4257-7af7-6726-000000000000"},
            "index": {"int": index},
        },
        "capacity": {"memory": {"value": "4864Mi"}, "multiprocessors": {"value": "14"}},
        "consumesCounters": [{"counterSet": "gpu-0", "counters": counters}],
    }


def cpu(node: int, index: int) -> Json:
    """A core group with the list of PCIe roots that are close to it."""
    return {
        "name": f"cpudev{index:03d}",
        "allowMultipleAllocations": True,
        "attributes": {
            "dra.cpu/socketID": {"int": index // 4},
            "dra.cpu/numCPUs": {"int": 16},
            "dra.cpu/smtEnabled": {"bool": True},
            "resource.kubernetes.io/numaNode": {"int": index // 4},
            "resource.kubernetes.io/pcieRoot": {"strings": [f"pci0000:{index}0", f"pci0000:{index}8"]},
        },
        "capacity": {"dra.cpu/cpu": {"value": "16"}},
    }


MODELS: tuple[tuple[str, Callable[[int, int], Json]], ...] = (
    ("gpu.nvidia.com", gpu),
    ("gpu.nvidia.com", gpu),
    ("sriovnetwork.k8snetworkplumbingwg.io", nic),
    ("gpu.nvidia.com", mig),
    ("dra.cpu", cpu),
)


def make_slice(number: int) -> Json:
    driver, model = MODELS[number % len(MODELS)]
    node = f"node-{number}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": f"{node}-{model.__name__}-x7k2p",
            "generateName": f"{node}-{model.__name__}-",
            "uid": f"6f1f9a52-0000-4000-8000-{number:012x}",
            "resourceVersion": str(number + 1),
            "generation": 1,
            "creationTimestamp": "2026-08-01T10:00:00Z",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": node, "uid": f"{number:036x}", "controller": True}
            ],
        },
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [model(number, index) for index in range(DEVICES)],
        },
    }


def measure(items: list[Any], work: Callable[[Any], object]) -> float:
    """Seconds for all items."""
    gc.collect()
    started = time.perf_counter()
    for item in items:
        work(item)
    return time.perf_counter() - started


def memory_per_device(texts: list[bytes]) -> float:
    gc.collect()
    tracemalloc.start()
    kept = [decode_object(text) for text in texts]
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return size / (len(kept) * DEVICES)


def iter_texts() -> Iterator[bytes]:
    for number in range(SLICES):
        yield json.dumps(make_slice(number), separators=(",", ":")).encode()


def main() -> None:
    texts = list(iter_texts())
    size = sum(map(len, texts))
    print(f"{SLICES} slices of {DEVICES} devices, {size / 1e6:.1f} MB")
    context = RequestContext(now="2026-08-01T10:00:00Z")

    def validate(text: bytes) -> None:
        outcome = strategy.create(decode_object(text), context)
        if outcome.errors:
            raise SystemExit(f"not valid: {outcome.errors}")

    decoded = [decode_object(text) for text in texts]
    tasks: dict[str, tuple[list[Any], Callable[[Any], object]]] = {
        "json.loads": (texts, json.loads),
        "decode": (texts, decode_object),
        "unknown and duplicate fields": (texts, find_strict_errors),
        "encode": (decoded, encode),
        "decode and validate": (texts, validate),
    }
    # The best of interleaved rounds, because others may share the machine.
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(ROUNDS):
        for name, (items, work) in tasks.items():
            best[name] = min(best[name], measure(items, work))
    plain, whole = best["json.loads"], best["decode and validate"]
    for name, seconds in best.items():
        per_slice = seconds / SLICES * 1e6
        print(f"{name:30s} {seconds:7.3f} s  {per_slice:8.1f} µs per slice  {seconds / plain:6.2f} x json.loads")
    verdict = "within" if whole <= ALLOWED * plain else "above"
    print(f"decode and validate is {verdict} {ALLOWED:.0f} x json.loads")
    print(f"memory: {memory_per_device(texts[:MEMORY_SAMPLE]):.0f} bytes per device in typed form")


if __name__ == "__main__":
    main()
