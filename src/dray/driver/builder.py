"""Writing a driver with functions instead of a class.

    gpus = DriverBuilder("gpu.example.com")

    @gpus.devices
    def find_devices():
        yield make_device("gpu-0", attributes={"model": "A100"})

    @gpus.prepare
    def prepare(claim, devices, config):
        return {device: ContainerEdits(env=(f"GPU={device.name}",)) for device in devices}

    serve(gpus.build())

The functions may be `async` or not; one that isn't must not block for long, because it holds up all others.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from dray.api.devices import Device
from dray.driver.base import AllocatedDevice, ClaimRef, DeviceConfig, DeviceHealth, Driver, Prepared
from dray.driver.pools import Pool

FindDevices: TypeAlias = Callable[[], Iterable[Device]]
Prepare: TypeAlias = Callable[
    [ClaimRef, Sequence[AllocatedDevice], Sequence[DeviceConfig]], Prepared | Awaitable[Prepared]
]
Unprepare: TypeAlias = Callable[[ClaimRef], Awaitable[None] | None]
Health: TypeAlias = Callable[[], AsyncIterator[Sequence[DeviceHealth]]]
Pools: TypeAlias = Callable[[str], Iterable[Pool]]
ClusterPools: TypeAlias = Callable[[], Iterable[Pool]]
F = TypeVar("F", bound=Callable[..., Any])


class IncompleteDriver(Exception):
    """A driver was built without a function that it needs."""


class DriverBuilder:
    """Every decorator returns its function unchanged."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._functions: dict[str, Callable[..., Any]] = {}

    def devices(self, function: F) -> F:
        """`() -> Iterable[Device]`: the devices of this node."""
        return self._keep("devices", function)

    def pools(self, function: F) -> F:
        """`(node_name) -> Iterable[Pool]`, instead of `devices`: for several pools or shared counters."""
        return self._keep("pools", function)

    def cluster_pools(self, function: F) -> F:
        """`() -> Iterable[Pool]`: network-attached devices."""
        return self._keep("cluster_pools", function)

    def prepare(self, function: F) -> F:
        """`(claim, devices, config) -> Prepared`; needed."""
        return self._keep("prepare", function)

    def unprepare(self, function: F) -> F:
        """`(claim) -> None`; without it there is nothing to undo."""
        return self._keep("unprepare", function)

    def health(self, function: F) -> F:
        """`() -> AsyncIterator[Sequence[DeviceHealth]]`."""
        return self._keep("health", function)

    def _keep(self, what: str, function: F) -> F:
        if what in self._functions:
            raise ValueError(f"driver {self.name} has a function for {what} already")
        self._functions[what] = function
        return function

    def build(self) -> Driver:
        """Raises IncompleteDriver."""
        if "prepare" not in self._functions:
            raise IncompleteDriver(f"driver {self.name} has no function decorated with prepare")
        return _BuiltDriver(self.name, dict(self._functions))


class _BuiltDriver(Driver):
    def __init__(self, name: str, functions: dict[str, Callable[..., Any]]) -> None:
        self.name = name  # type: ignore[misc]  # of the class elsewhere, of the instance here
        self._functions = functions

    def devices(self) -> Iterable[Device]:
        function = cast(FindDevices | None, self._functions.get("devices"))
        return () if function is None else function()

    def pools(self, node_name: str) -> Iterable[Pool]:
        function = cast(Pools | None, self._functions.get("pools"))
        return super().pools(node_name) if function is None else function(node_name)

    def cluster_pools(self) -> Iterable[Pool]:
        function = cast(ClusterPools | None, self._functions.get("cluster_pools"))
        return () if function is None else function()

    async def prepare(
        self, claim: ClaimRef, devices: Sequence[AllocatedDevice], config: Sequence[DeviceConfig]
    ) -> Prepared:
        outcome = cast(Prepare, self._functions["prepare"])(claim, devices, config)
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def unprepare(self, claim: ClaimRef) -> None:
        function = cast(Unprepare | None, self._functions.get("unprepare"))
        if function is not None and inspect.isawaitable(outcome := function(claim)):
            await outcome

    @property
    def reports_health(self) -> bool:
        return "health" in self._functions

    async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        async for report in cast(Health, self._functions["health"])():
            yield report
