"""Network cards, written with functions. Claims may ask for jumbo frames; the class may forbid them."""

from collections.abc import Iterator, Sequence

from dray.driver import (
    AllocatedDevice,
    ClaimRef,
    ContainerEdits,
    Device,
    DeviceConfig,
    DriverBuilder,
    Prepared,
    PrepareError,
    make_device,
)

builder = DriverBuilder("nic.example.com")


@builder.devices
def find_cards() -> Iterator[Device]:
    for index, root in enumerate(("pci0000:10", "pci0000:20", "pci0000:90", "pci0000:a0")):
        yield make_device(
            f"nic-{index}",
            attributes={"rdma": index % 2 == 0, "speed": 100, "resource.kubernetes.io/pcieRoot": root},
        )


@builder.prepare
def prepare(claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]) -> Prepared:
    return {device: ContainerEdits(env=(f"NIC={device.name}", f"NIC_MTU={_mtu(device, config)}")) for device in devices}


def _mtu(device: AllocatedDevice, config: Sequence[DeviceConfig]) -> int:
    """`mtu` of the claim, within `maxMtu` of the class."""
    mtu, limit = 1500, 9000
    for entry in config:
        if not entry.applies_to(device.request):
            continue
        if entry.source == "FromClass":
            limit = entry.parameters.get("maxMtu", limit)
        mtu = entry.parameters.get("mtu", mtu)
    if mtu > limit:
        raise PrepareError(f"mtu {mtu} is above the class's limit of {limit}")
    return mtu


driver = builder.build()
