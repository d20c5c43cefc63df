"""Drivers made of functions."""

from __future__ import annotations

import pytest

from dray.driver import ClaimRef, ContainerEdits, DriverBuilder, make_device
from dray.driver.builder import IncompleteDriver

CLAIM = ClaimRef("default", "c", "uid")


async def test_functions_may_be_async_or_not() -> None:
    builder = DriverBuilder("a.example.com")
    seen: list[str] = []

    @builder.prepare
    async def prepare(claim, devices, config):  # type: ignore[no-untyped-def]
        return {device: ContainerEdits() for device in devices}

    @builder.unprepare
    def unprepare(claim):  # type: ignore[no-untyped-def]
        seen.append(claim.name)

    driver = builder.build()
    assert driver.name == "a.example.com"
    assert await driver.prepare(CLAIM, [], []) == {}
    await driver.unprepare(CLAIM)
    assert seen == ["c"]


async def test_what_is_not_given_has_a_sensible_default() -> None:
    builder = DriverBuilder("a.example.com")
    builder.prepare(lambda claim, devices, config: {})
    driver = builder.build()
    assert [pool.devices for pool in driver.pools("node-1")] == [()]
    assert list(driver.cluster_pools()) == []
    assert not driver.reports_health
    await driver.unprepare(CLAIM)


def test_devices_form_the_pool_of_the_node() -> None:
    builder = DriverBuilder("a.example.com")
    builder.devices(lambda: [make_device("one")])
    builder.prepare(lambda claim, devices, config: {})
    (pool,) = builder.build().pools("node-7")
    assert (pool.name, [device.name for device in pool.devices]) == ("node-7", ["one"])


def test_a_driver_without_prepare_is_refused_and_so_is_a_second_one() -> None:
    builder = DriverBuilder("a.example.com")
    with pytest.raises(IncompleteDriver, match=r"a\.example\.com has no function decorated with prepare"):
        builder.build()
    builder.prepare(lambda claim, devices, config: {})
    with pytest.raises(ValueError, match="has a function for prepare already"):
        builder.prepare(lambda claim, devices, config: {})
