"""The SDK for device drivers. What driver authors need is here; the modules hold the rest.

    from dray.driver import ContainerEdits, Driver, make_device, serve

What may not live here: anything that decides about allocation, and anything that only the node agent needs.
"""

from dray.api.cdi import ContainerEdits, DeviceNode, Hook, Mount
from dray.api.devices import Counter, CounterSet, Device, DeviceCapacity, DeviceCounterConsumption, DeviceTaint
from dray.driver.app import serve
from dray.driver.base import (
    AllocatedDevice,
    ClaimRef,
    DeviceConfig,
    DeviceHealth,
    Driver,
    Prepared,
    PrepareError,
    make_attribute,
    make_counters,
    make_device,
    select_nodes,
    shared_capacity,
    version,
)
from dray.driver.builder import DriverBuilder
from dray.driver.controller import PoolController
from dray.driver.pools import Pool
from dray.driver.runner import DriverPaths, DriverRunner

__all__ = [
    # Write a driver
    "Driver",
    "DriverBuilder",
    "ClaimRef",
    "AllocatedDevice",
    "DeviceConfig",
    "DeviceHealth",
    "Prepared",
    "PrepareError",
    # Describe devices
    "make_device",
    "make_attribute",
    "make_counters",
    "shared_capacity",
    "version",
    "Pool",
    "select_nodes",
    "Device",
    "DeviceCapacity",
    "DeviceTaint",
    "Counter",
    "CounterSet",
    "DeviceCounterConsumption",
    # Change containers
    "ContainerEdits",
    "DeviceNode",
    "Mount",
    "Hook",
    # Run it
    "serve",
    "DriverRunner",
    "DriverPaths",
    "PoolController",
]
