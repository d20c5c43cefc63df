"""The node agent killed at every point where it does something: before or after each write, call and start.

A first run counts the points; then a run for each of them stops the agent there, for good, and lets a new one go on.
Wherever it was, the pod ends as it should, its process runs once, no device is prepared twice at once, and nothing
stays prepared.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dray.node import checkpoint, plugins, podworker, preparation, processes
from dray.runtime.client import Client
from dray.testing.waiting import eventually
from tests.integration.nodes import NodeUnderTest, running_node
from tests.integration.sample_drivers import Gpus

SAMPLES = 10
WRITES = {"create", "update", "patch", "delete", "delete_collection"}


class Killed(BaseException):
    """The process would be gone here."""


class KillPoint:
    """Counts what the agent does; at the chosen number nothing goes on."""

    def __init__(self, at: int = -1) -> None:
        self._at = at
        self.count = 0
        self.is_reached = asyncio.Event()
        self.is_armed = True

    def pass_by(self) -> None:
        """Before and after everything that others could see."""
        if not self.is_armed:
            return
        if self.count == self._at:
            self.is_reached.set()
            raise Killed
        self.count += 1

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            self.pass_by()
            result = function(*arguments, **named)
            self.pass_by()
            return result

        return wrapped

    def around_async(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapped(*arguments: Any, **named: Any) -> Any:
            self.pass_by()
            result = await function(*arguments, **named)
            self.pass_by()
            return result

        return wrapped


class WatchedClient:
    """Passes by the kill point around every write."""

    def __init__(self, client: Client, point: KillPoint) -> None:
        self._client = client
        self._point = point

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        return self._point.around_async(method) if name in WRITES else method


async def live_a_pods_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: KillPoint) -> None:
    """A pod comes, runs, and is deleted, while the agent is killed at the point, if there is such a point."""
    driver = Gpus()
    pids = tmp_path / f"pids-{point._at}"
    with monkeypatch.context() as patch:
        patch.setattr(podworker, "FIRST_RETRY", 0.02)
        patch.setattr(plugins, "LOOK_INTERVAL", 0.02)
        patch.setattr(checkpoint, "write_atomically", point.around(checkpoint.write_atomically))
        patch.setattr(checkpoint, "remove_durably", point.around(checkpoint.remove_durably))
        patch.setattr(preparation.Preparation, "_call", point.around_async(preparation.Preparation._call))
        patch.setattr(processes, "launch", point.around_async(processes.launch))
        point.is_armed = False
        async with running_node("process") as node, node.driver(driver):
            plain = node.client
            node.client = WatchedClient(plain, point)  # type: ignore[assignment]
            await node.stop()
            point.is_armed = True
            await start_agent(node)
            node.client = plain
            rising = asyncio.create_task(go_on_when_killed(node, point))
            await node.add_pod("pod", command=f"echo $$$$ >> {pids}; sleep 0.05; exit 3")
            done = await node.wait_phase("Failed")
            assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
            await node.delete_pod()
            await node.wait_gone()
            await eventually(lambda: not driver.prepared, "nothing stays prepared")
            await eventually(lambda: not list((node.root / "claims").glob("*.json")), "nothing is held")
            assert not list(node.options.cdi.glob("*.json"))
            point.is_armed = False
            if point.is_reached.is_set():  # the last step of all may have been the one
                await rising
            rising.cancel()
    assert len(pids.read_text().split()) == 1, "the process ran more than once"
    assert driver.most_at_once == 1


async def start_agent(node: NodeUnderTest) -> None:
    with suppress(AssertionError, BaseExceptionGroup, Killed):
        await node.start()


async def go_on_when_killed(node: NodeUnderTest, point: KillPoint) -> None:
    await point.is_reached.wait()
    point.is_armed = False
    with suppress(BaseExceptionGroup, Killed):
        await node.stop()
    await node.start()


async def count_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    point = KillPoint()
    await live_a_pods_life(tmp_path, monkeypatch, point)
    return point.count


async def test_an_agent_killed_at_random_points_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = await count_points(tmp_path, monkeypatch)
    for at in random.Random(7).sample(range(count), SAMPLES):
        await live_a_pods_life(tmp_path, monkeypatch, KillPoint(at))


@pytest.mark.slow
async def test_an_agent_killed_at_any_point_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(await count_points(tmp_path, monkeypatch)):
        await live_a_pods_life(tmp_path, monkeypatch, KillPoint(at))
