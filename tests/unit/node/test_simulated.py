"""Containers that only pretend, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dray.node.runtimes import ContainerSpec, StartFailed
from dray.node.simulated import EXIT_CODE, RUN_SECONDS, SimulatedRuntime
from dray.testing.clock import FakeClock


def spec(**annotations: str) -> ContainerSpec:
    return ContainerSpec("pod", "default", "uid", "main", Path("/nowhere"), annotations=annotations)


async def test_a_container_runs_for_the_time_that_its_pod_says() -> None:
    clock = FakeClock()
    running = await SimulatedRuntime(clock).start(spec(**{RUN_SECONDS: "60", EXIT_CODE: "3"}))
    ended = asyncio.ensure_future(running.wait())
    await clock.settle()
    await clock.advance(59)
    assert not ended.done()
    await clock.advance(1)
    assert await ended == 3


async def test_a_container_that_is_stopped_ends_as_by_a_signal() -> None:
    running = await SimulatedRuntime(FakeClock()).start(spec())
    await running.stop(1)
    assert await running.wait() == 143


async def test_annotations_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(StartFailed, match="are numbers"):
        await SimulatedRuntime(FakeClock()).start(spec(**{RUN_SECONDS: "a while"}))
