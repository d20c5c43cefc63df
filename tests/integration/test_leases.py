"""Leader election: never two at once, soon another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dray.api.resources import LEASES
from dray.apiserver.local import LocalClient
from dray.runtime.client import Client
from dray.runtime.leases import LeaderElector, LostLease
from dray.testing.clock import FakeClock
from tests.integration.api_servers import start_registry
from tests.integration.faults import FaultyClient


class Candidate:
    def __init__(self, client: Client, clock: FakeClock, name: str) -> None:
        self.elector = LeaderElector(client, clock, name="test", identity=name)
        self.is_acting = False
        self.task = asyncio.create_task(self.elector.run(self._act))

    async def _act(self) -> None:
        self.is_acting = True
        try:
            await asyncio.Event().wait()
        finally:
            self.is_acting = False

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


class Unplugged:
    """A client that can be cut off: calls fail at once, or are never answered."""

    def __init__(self, client: Client, *, hangs: bool) -> None:
        self._client = client
        self._hangs = hangs
        self.is_cut = False

    def __getattr__(self, name: str) -> Any:
        if not self.is_cut:
            return getattr(self._client, name)
        if not self._hangs:
            raise ConnectionError("cut off")
        return self._hang

    async def _hang(self, *arguments: object, **options: object) -> None:
        await asyncio.Event().wait()


async def make_client(clock: FakeClock) -> LocalClient:
    return LocalClient(await start_registry(clock))


async def test_the_first_to_come_leads_and_the_others_wait() -> None:
    clock = FakeClock()
    client = await make_client(clock)
    first = Candidate(client, clock, "first")
    await clock.settle()
    second = Candidate(client, clock, "second")
    await clock.advance(120)
    assert first.is_acting
    assert not second.is_acting
    await second.stop()
    await first.stop()


async def test_who_stops_in_good_order_gives_the_lease_back_at_once() -> None:
    clock = FakeClock()
    client = await make_client(clock)
    first, second = Candidate(client, clock, "first"), Candidate(client, clock, "second")
    await clock.settle()
    await first.stop()
    await clock.advance(2)  # the retry period, not the lease's duration
    assert second.is_acting
    lease = await client.get(LEASES, "test", "kube-system")
    assert lease["spec"]["holderIdentity"] == "second"
    assert lease["spec"]["leaseTransitions"] == 1
    await second.stop()


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_leader_that_is_cut_off_stops_before_another_starts(hangs: bool) -> None:
    clock = FakeClock()
    client = await make_client(clock)
    line = Unplugged(client, hangs=hangs)
    first = Candidate(line, clock, "first")
    await clock.settle()
    second = Candidate(client, clock, "second")
    await clock.advance(1)
    line.is_cut = True
    stopped = started = 0.0
    for _ in range(300):
        await clock.advance(0.1)
        assert not (first.is_acting and second.is_acting)
        stopped = stopped or (0.0 if first.is_acting else clock.monotonic())
        started = started or (clock.monotonic() if second.is_acting else 0.0)
    assert 0 < stopped < started < 20
    with pytest.raises(LostLease, match="first lost lease kube-system/test"):
        await first.task
    await second.stop()


@pytest.mark.parametrize("seconds", [5, 12, 60])
async def test_a_machine_that_halts_for_a_while_keeps_its_leader(seconds: float) -> None:
    clock = FakeClock()
    client = await make_client(clock)
    first = Candidate(client, clock, "first")
    await clock.settle()
    second = Candidate(client, clock, "second")
    for _ in range(3):
        await clock.advance(7.5)
        await clock.freeze(seconds)
        await clock.advance(10)
        assert first.is_acting
        assert not second.is_acting
    await second.stop()
    await first.stop()


async def test_a_leader_that_alone_stood_still_finds_another_in_its_place() -> None:
    clock, slow_clock = FakeClock(), FakeClock()
    client = await make_client(clock)
    first = Candidate(client, slow_clock, "first")
    await clock.settle()
    second = Candidate(client, clock, "second")
    for _ in range(20):
        await clock.advance(1)
    assert second.is_acting
    await slow_clock.freeze(20)
    await slow_clock.advance(2)
    assert not first.is_acting
    with pytest.raises(LostLease):
        await first.task
    await second.stop()


@pytest.mark.parametrize("seed", range(5))
async def test_with_an_unreliable_server_there_are_still_never_two(seed: int) -> None:
    clock = FakeClock()
    client = await make_client(clock)
    candidates = [Candidate(FaultyClient(client, 0.4, seed * 10 + n), clock, f"c{n}") for n in range(3)]
    led = set()
    for step in range(600):
        await clock.advance(0.5)
        acting = [n for n, candidate in enumerate(candidates) if candidate.is_acting]
        assert len(acting) <= 1
        led |= set(acting)
        for n, candidate in enumerate(candidates):
            if candidate.task.done() or (step % 50 == 49 and n in acting):
                await candidate.stop()
                candidates[n] = Candidate(FaultyClient(client, 0.4, seed * 1000 + step), clock, f"c{n}-{step}")
    assert len(led) > 1
    for candidate in candidates:
        await candidate.stop()
