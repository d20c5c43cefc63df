"""Models of everything that is no GPU: meshes and rings, NICs, CPUs, devices on a fabric."""

from __future__ import annotations

from dray.api.devices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
)
from dray.api.quantities import Quantity
from dray.cluster.gpus import NUMA, PCI_BUS, PCIE_ROOT
from dray.cluster.models import ClusterPools, DriverModel, Model, NodeModel, alike, make_class
from dray.driver.base import make_device, select_nodes
from dray.driver.pools import Pool

MLA, TPU, SRIOV, CPU, FPGA = "mla.example.com", "tpu.google.com", "sriov.example.com", "dra.cpu", "fpga.example.com"
SRIOV_DOMAIN = "sriovnetwork.k8snetworkplumbingwg.io"
MESH_LABEL, MESH_NODE_LABEL, FABRIC_LABEL = "dray.dev/mesh", "dray.dev/mesh-node", "dray.dev/fabric"


def _ring() -> Model:
    devices = tuple(make_device(f"mla-{i}", attributes={"deviceid": i}) for i in range(8))
    node = alike(DriverModel(MLA, devices))
    return Model("ring", "8 accelerators in a ring: neighbours have consecutive ids", node, (make_class(MLA),))


def _grid() -> Model:
    devices = tuple(make_device(f"mla-{i}", attributes={"row": i // 4, "col": i % 4}) for i in range(16))
    node = alike(DriverModel(MLA, devices))
    return Model("grid", "16 accelerators in a grid of 4 rows and 4 columns", node, (make_class(MLA),))


def _tpu() -> Model:
    """Four nodes with four chips each form a 4x4 mesh; claims take the whole, a half, or one node's chips."""

    def make_node(index: int) -> NodeModel:
        labels = {MESH_LABEL: f"mesh-{index // 4}", MESH_NODE_LABEL: str(index % 4)}
        return NodeModel((DriverModel(TPU),), labels)

    def make_pools(nodes: int) -> ClusterPools:
        return {TPU: tuple(_mesh(number) for number in range((nodes + 3) // 4))}

    classes = (make_class(TPU),)
    return Model("tpu-4x4", "a mesh of 4x4 TPU chips over 4 nodes", make_node, classes, make_pools, default_nodes=4)


def _mesh(number: int) -> Pool:
    mesh = f"mesh-{number}"
    chips = Counter(value=Quantity.parse("4"))
    counters = CounterSet(name="tpus", counters={f"tpus-node-{node}": chips for node in range(4)})

    def part(topology: str, index: int, nodes: range) -> Device:
        count = 4 * len(nodes)
        taken = {f"tpus-node-{node}": chips for node in nodes}
        return Device(
            name=f"tpu-{topology}-{index}",
            attributes=make_device(
                "tpu",
                attributes={
                    "index": index,
                    "uuid": f"{mesh}-{topology}-{index}",
                    "tpuGen": "v5e",
                    "brand": "Google",
                    "accelerator": "tpu-v5e",
                    "chipCount": count,
                    "topology": topology,
                },
            ).attributes,
            capacity={"chips": DeviceCapacity(value=Quantity.parse(str(count)))},
            consumes_counters=(DeviceCounterConsumption(counter_set=counters.name, counters=taken),),
            node_selector=select_nodes({MESH_LABEL: (mesh,), MESH_NODE_LABEL: tuple(map(str, nodes))}),
        )

    devices = (
        part("4x4", 0, range(4)),
        *(part("2x4", half, range(half * 2, half * 2 + 2)) for half in range(2)),
        *(part("2x2", node, range(node, node + 1)) for node in range(4)),
    )
    return Pool(name=mesh, devices=devices, shared_counters=(counters,), per_device_node_selection=True)


def _sriov() -> Model:
    """Two ports with four virtual functions each, and the ports themselves as NICs that claims share by bandwidth."""
    functions = tuple(
        make_device(
            f"pf{port}-vf{number}",
            attributes={
                f"{SRIOV_DOMAIN}/PFName": f"ens{port}",
                f"{SRIOV_DOMAIN}/vfID": number,
                f"{SRIOV_DOMAIN}/vendor": "15b3",
                f"{SRIOV_DOMAIN}/deviceID": "101e",
                f"{SRIOV_DOMAIN}/pciAddress": f"0000:{port + 8:02x}:00.{number + 2}",
                f"{SRIOV_DOMAIN}/linkType": "ether",
                f"{SRIOV_DOMAIN}/rdmaCapable": True,
                f"{SRIOV_DOMAIN}/resourceName": "vf",
                PCIE_ROOT: f"pci0000:{port + 8:02x}",
                PCI_BUS: f"0000:{port + 8:02x}:00.{number + 2}",
            },
        )
        for port in range(2)
        for number in range(4)
    )
    bandwidth = DeviceCapacity(
        value=Quantity.parse("10G"),
        request_policy=CapacityRequestPolicy(
            default=Quantity.parse("1250M"),
            valid_range=CapacityRequestPolicyRange(min=Quantity.parse("1250M"), step=Quantity.parse("1250M")),
        ),
    )
    shared = tuple(
        make_device(
            f"shared-{i}",
            attributes={f"{SRIOV_DOMAIN}/resourceName": "shared"},
            capacity={"bandwidth": bandwidth},
            allow_multiple_allocations=True,
        )
        for i in range(4)
    )
    resource = f'device.attributes["{SRIOV_DOMAIN}"].resourceName'
    classes = (
        make_class(SRIOV),
        make_class("virtual-function", f'device.driver == "{SRIOV}" && {resource} == "vf"'),
        make_class("shared-nic", f'device.driver == "{SRIOV}" && {resource} == "shared"'),
    )
    node = alike(DriverModel(SRIOV, (*functions, *shared)))
    return Model("sriov", "8 virtual functions, and 4 NICs that up to 8 claims share", node, classes)


def _cpu() -> Model:
    sockets = tuple(
        make_device(
            f"socket-{i}",
            attributes={
                "socketID": i,
                "numCPUs": 64,
                "smtEnabled": True,
                NUMA: i,
                PCIE_ROOT: (f"pci0000:{i * 8:02x}", f"pci0000:{i * 8 + 4:02x}"),
            },
            capacity={
                f"{CPU}/cpu": DeviceCapacity(
                    value=Quantity.parse("64"),
                    request_policy=CapacityRequestPolicy(
                        default=Quantity.parse("1"),
                        valid_range=CapacityRequestPolicyRange(min=Quantity.parse("1"), step=Quantity.parse("1")),
                    ),
                )
            },
            allow_multiple_allocations=True,
        )
        for i in range(2)
    )
    return Model(
        "cpu", "2 sockets with 64 CPUs each, shared by CPU", alike(DriverModel(CPU, sockets)), (make_class(CPU),)
    )


def fpga_pool(fabric: str, count: int = 4) -> Pool:
    """FPGAs in a box of their own, which every node on the fabric reaches. Once given out, one belongs to one node."""
    devices = tuple(
        Device(
            name=f"fpga-{i}",
            attributes=make_device("fpga", attributes={"model": "F2000", "slot": i}).attributes,
            capacity={"luts": DeviceCapacity(value=Quantity.parse("1M"))},
            binds_to_node=True,
        )
        for i in range(count)
    )
    return Pool(name=f"{fabric}-f2000", devices=devices, node_selector=select_nodes({FABRIC_LABEL: (fabric,)}))


def _fpga() -> Model:
    node = alike(DriverModel(FPGA), labels={FABRIC_LABEL: "fabric-1"})
    pools = {FPGA: (fpga_pool("fabric-1"),)}
    return Model(
        "fpga", "4 network-attached FPGAs that all nodes share", node, (make_class(FPGA),), lambda nodes: pools
    )


ACCELERATOR_MODELS = (_ring, _grid, _tpu, _sriov, _cpu, _fpga)
