"""The work queue: once at a time, never lost, backing off."""

from __future__ import annotations

import asyncio

from dray.runtime.queue import WorkQueue
from dray.testing.clock import FakeClock


async def test_a_key_added_twice_is_handed_out_once() -> None:
    queue: WorkQueue[str] = WorkQueue("test")
    queue.add("a")
    queue.add("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_a_key_added_during_work_is_handed_out_again_only_when_done() -> None:
    queue: WorkQueue[str] = WorkQueue("test")
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    assert len(queue) == 0
    queue.done(key)
    assert await queue.get() == "a"


async def test_failures_back_off_exponentially_and_success_resets() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue("test", clock, first_delay=1, longest_delay=4)
    delays = []
    for _ in range(4):
        delays.append(queue.retry("a"))
        await clock.settle()
        await clock.advance(delays[-1])
        queue.done(await queue.get())
    assert delays == [1, 2, 4, 4]
    queue.forget("a")
    assert queue.retry("a") == 1


async def test_of_two_delays_the_earlier_counts() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue("test", clock)
    queue.add_after("a", 10)
    queue.add_after("a", 2)
    queue.add_after("a", 5)
    await clock.settle()
    await clock.advance(2)
    assert await queue.get() == "a"
    queue.done("a")
    await clock.advance(20)
    assert len(queue) == 0


async def test_workers_retry_a_failing_key_until_it_succeeds() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue("test", clock, first_delay=1)
    attempts: list[str] = []
    succeeded = asyncio.Event()

    async def reconcile(key: str) -> float | None:
        attempts.append(key)
        if len(attempts) < 3:
            raise RuntimeError("not yet")
        succeeded.set()
        return None

    working = asyncio.create_task(queue.work(reconcile))
    queue.add("a")
    await clock.settle()
    await clock.advance(1)
    await clock.advance(2)
    await asyncio.wait_for(succeeded.wait(), 5)
    assert attempts == ["a", "a", "a"]
    working.cancel()


async def test_a_reconciler_can_ask_to_be_called_again_later() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue("test", clock)
    calls: list[float] = []

    async def reconcile(key: str) -> float | None:
        calls.append(clock.monotonic())
        return 7 if len(calls) == 1 else None

    working = asyncio.create_task(queue.work(reconcile))
    queue.add("a")
    await clock.settle()
    await clock.advance(60)
    assert calls == [0, 7]
    working.cancel()
