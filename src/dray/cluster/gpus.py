"""Models of GPU nodes, after published inventories: A100, H100, GB200, MIG partitions, shared GPUs, ACME's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dray.api.devices import CounterSet, Device
from dray.api.meta import Json
from dray.cluster.models import DriverModel, Model, alike, make_class
from dray.driver.base import make_counters, make_device, shared_capacity, version

NVIDIA, NETWORK, ACME, INTEL = "gpu.nvidia.com", "dra.net", "gpu.acme.example.com", "gpu.intel.com"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
PCI_BUS = "resource.kubernetes.io/pciBusID"
NUMA = "resource.kubernetes.io/numaNode"
CLASSES = (
    make_class(NVIDIA),
    make_class(NETWORK),
    make_class("rdma", f'device.driver == "{NETWORK}" && device.attributes["{NETWORK}"].rdma'),
)


def _gpu(index: int, product: str, memory: str, compute: str, root: str, bus: str, numa: int, **more: int) -> Device:
    return make_device(
        f"gpu-{index}",
        attributes={
            "type": "gpu",
            "index": index,
            "uuid": f"GPU-{index:08x}-0000-4000-8000-{index:012x}",
            "productName": product,
            "brand": "Nvidia",
            "cudaComputeCapability": version(compute),
            "driverVersion": version("570.86.15"),
            PCIE_ROOT: root,
            PCI_BUS: bus,
            NUMA: numa,
            **more,
        },
        capacity={"memory": memory},
    )


def _nic(name: str, *, rdma: bool, root: str, numa: int, **more: str) -> Device:
    return make_device(
        name, attributes={"ifName": name.replace("-", ""), "rdma": rdma, PCIE_ROOT: root, NUMA: numa, **more}
    )


def _a100() -> Model:
    """Four PCIe roots, each with two GPUs and an RDMA NIC; plain NICs on three of them."""
    roots = ("pci0000:10", "pci0000:20", "pci0000:90", "pci0000:a0")
    gpus = tuple(
        _gpu(
            i, "NVIDIA A100-SXM4-40GB", "40Gi", "8.0.0", roots[i // 2], f"0000:{roots[i // 2][-2:]}:0{i % 2}.0", i // 4
        )
        for i in range(8)
    )
    rdma = (_nic(f"rdma-{i}", rdma=True, root=root, numa=i // 2) for i, root in enumerate(roots))
    plain = (_nic(f"eth-{i}", rdma=False, root=root, numa=i // 2) for i, root in enumerate(roots[:3]))
    node = alike(DriverModel(NVIDIA, gpus), DriverModel(NETWORK, (*rdma, *plain)))
    return Model("a100-8", "8 A100 GPUs and 7 NICs on 4 PCIe roots", node, CLASSES)


def _h100() -> Model:
    """NVSwitch partitions of 1, 2, 4 and 8 GPUs are attributes to match: GPUs of one pair share nvlinkPartition2."""
    buses = ("0c", "2a", "41", "58", "86", "a5", "bd", "d5")
    gpus = tuple(
        _gpu(
            *(i, "NVIDIA H100 80GB HBM3", "80Gi", "9.0.0", f"pci0000:{bus}", f"0000:{bus}:00.0", i // 4),
            nvlinkPartition1=i,
            nvlinkPartition2=i // 2,
            nvlinkPartition4=i // 4,
            nvlinkPartition8=0,
        )
        for i, bus in enumerate(buses)
    )
    places = {"island": "island-1", "block": "block-3", "localBlock": "local-7", "rack": "rack-42"}
    nics = tuple(
        _nic(f"rdma-{i * 2 + port}", rdma=True, root=f"pci0000:{bus}", numa=i // 4, **places)
        for i, bus in enumerate(buses)
        for port in range(2)
    )
    node = alike(DriverModel(NVIDIA, gpus), DriverModel(NETWORK, nics))
    return Model("h100-8", "8 H100 GPUs behind NVSwitch and 16 NIC ports", node, CLASSES)


def _gb200() -> Model:
    """GPUs and NICs have no PCIe root in common: only NUMA aligns them."""
    gpu_roots = ("pci0008:00", "pci0009:00", "pci0018:00", "pci0019:00")
    nic_roots = ("pci0000:00", "pci0002:00", "pci0010:00", "pci0012:00")
    gpus = tuple(
        _gpu(i, "NVIDIA GB200", "189471Mi", "10.0.0", root, f"{root[3:]}:01:00.0"[:12], i // 2)
        for i, root in enumerate(gpu_roots)
    )
    nics = tuple(_nic(f"rdma-{i}", rdma=True, root=root, numa=i // 2) for i, root in enumerate(nic_roots))
    node = alike(DriverModel(NVIDIA, gpus), DriverModel(NETWORK, nics))
    return Model("gb200", "4 GB200 GPUs and 4 NICs that share no PCIe root", node, CLASSES)


class _Profile(NamedTuple):
    """A MIG profile of the A100-40GB."""

    name: str
    memory: str
    slices: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    starts: tuple[int, ...]
    media: int = 0
    """JPEG and OFA engines, which one partition of a GPU can have."""


PROFILES = (
    _Profile("7g.40gb", "40192Mi", 8, 98, 7, 5, (0,), 1),
    _Profile("4g.20gb", "19968Mi", 4, 56, 4, 2, (0,)),
    _Profile("3g.20gb", "19968Mi", 4, 42, 3, 2, (0, 4)),
    _Profile("2g.10gb", "9856Mi", 2, 28, 2, 1, (0, 2, 4)),
    _Profile("1g.10gb", "9856Mi", 2, 14, 1, 1, (0, 2, 4, 6)),
    _Profile("1g.5gb", "4864Mi", 1, 14, 1, 0, tuple(range(7))),
    _Profile("1g.5gb+me", "4864Mi", 1, 14, 1, 1, tuple(range(7)), 1),
)


def mig_devices(gpu: int) -> Iterator[Device]:
    """Every partition that a GPU can be cut into, up to the whole; they draw on the same counters."""
    yield from (_mig_device(gpu, profile, start) for profile in PROFILES for start in profile.starts)


def _mig_device(gpu: int, profile: _Profile, start: int) -> Device:
    amounts = {
        "memory": profile.memory,
        "multiprocessors": str(profile.multiprocessors),
        "copy-engines": str(profile.copy_engines),
        "decoders": str(profile.decoders),
        "jpeg-engines": str(profile.media),
        "ofa-engines": str(profile.media),
        **{f"memory-slice-{number}": "1" for number in range(start, start + profile.slices)},
    }
    plain_name = profile.name.replace(".", "").replace("+", "")
    return make_device(
        f"gpu-{gpu}-mig-{plain_name}-{start}",
        attributes={"type": "mig", "profile": profile.name, "parentUUID": f"GPU-{gpu:08x}", "start": start},
        capacity={"memory": profile.memory, "multiprocessors": profile.multiprocessors},
        consumes={f"gpu-{gpu}": {name: amount for name, amount in amounts.items() if amount != "0"}},
    )


def mig_counters(gpu: int) -> CounterSet:
    amounts = {
        "memory": "40Gi",
        "multiprocessors": "98",
        "copy-engines": "7",
        "decoders": "5",
        "encoders": "0",
        "jpeg-engines": "1",
        "ofa-engines": "1",
        **{f"memory-slice-{number}": "1" for number in range(8)},
    }
    return make_counters(f"gpu-{gpu}", amounts)


def _mig() -> Model:
    gpus = range(2)
    driver = DriverModel(
        NVIDIA, tuple(device for gpu in gpus for device in mig_devices(gpu)), tuple(map(mig_counters, gpus))
    )
    classes = (make_class(NVIDIA), make_class("mig.nvidia.com", f'device.driver == "{NVIDIA}"'))
    return Model("mig-a100", "2 A100 GPUs, cut into MIG partitions as claims need them", alike(driver), classes)


def _shared() -> Model:
    memory = shared_capacity("80Gi", default="10Gi", step="1Gi")
    gpus = tuple(
        make_device(
            f"gpu-{i}",
            attributes={"type": "gpu", "index": i, "productName": "NVIDIA H100 80GB HBM3"},
            capacity={"memory": memory},
            allow_multiple_allocations=True,
        )
        for i in range(4)
    )
    return Model("shared-gpu", "4 GPUs that claims share by memory", alike(DriverModel(NVIDIA, gpus)), CLASSES[:1])


def acme_devices(cards: Iterable[int] = range(2)) -> Iterator[Device]:
    """KEP-4381's story: the administrator cut each card into slices of different sizes, once and for all."""
    for card in cards:
        for part, memory in enumerate(("1Gi", "2Gi", "4Gi", "8Gi")):
            yield make_device(
                f"card-{card}-part-{part}",
                attributes={"card": card, "model": "ACME T1000", "driverVersion": version("1.2.3")},
                capacity={"memory": memory},
            )


ACME_CLASS: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "acme-gpu"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{ACME}"'}}]},
}


def _acme() -> Model:
    node = alike(DriverModel(ACME, tuple(acme_devices())))
    return Model("acme", "2 ACME cards, cut into parts of 1, 2, 4 and 8 GiB", node, (ACME_CLASS,))


def _intel() -> Model:
    gpus = tuple(
        make_device(
            f"0000-{0x4D + i:02x}-00-0-0x0bda",
            attributes={
                "model": "Max 1100",
                "family": "Max",
                "driver": "i915",
                "sriov": False,
                "type": "gpu",
                "pciId": "0x0bda",
                "health": "Healthy",
            },
            capacity={"memory": "48Gi", "millicores": 1000},
        )
        for i in range(4)
    )
    return Model("intel-gpu", "4 Intel Max GPUs", alike(DriverModel(INTEL, gpus)), (make_class(INTEL),))


GPU_MODELS = (_a100, _h100, _gb200, _mig, _shared, _acme, _intel)
