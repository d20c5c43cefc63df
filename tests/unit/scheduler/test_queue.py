"""The scheduling queue: who is next, who waits for what."""

from __future__ import annotations

import asyncio

from dray.api.meta import ObjectKey
from dray.scheduler.queue import QueuedPod, SchedulingQueue, Wake
from dray.testing.clock import FakeClock

DEVICES, ROOM = Wake("devices"), Wake("room")


def make_queued(name: str, *, priority: int = 0, created: str = "2026-01-01T00:00:00Z") -> QueuedPod:
    return QueuedPod(ObjectKey("default", name), f"uid-{name}", priority, created)


def popped(queue: SchedulingQueue) -> QueuedPod:
    pod = queue.try_pop()
    assert pod is not None
    return pod


def test_higher_priority_comes_first_then_the_older_pod() -> None:
    queue = SchedulingQueue(FakeClock())
    queue.add(make_queued("young", created="2026-01-02T00:00:00Z"))
    queue.add(make_queued("old", created="2026-01-01T00:00:00Z"))
    queue.add(make_queued("urgent", priority=10, created="2026-01-03T00:00:00Z"))
    assert [popped(queue).key.name for _ in range(3)] == ["urgent", "old", "young"]


def test_an_event_wakes_only_the_pods_that_wait_for_it() -> None:
    queue = SchedulingQueue(FakeClock())
    for name, wake in (("needs-gpu", DEVICES), ("needs-cpu", ROOM)):
        queue.add(make_queued(name))
        queue.park(popped(queue), "does not fit", [wake])
    assert queue.happened(DEVICES) == 1
    assert popped(queue).key.name == "needs-gpu"
    assert queue.try_pop() is None


def test_an_event_during_the_attempt_is_not_lost() -> None:
    queue = SchedulingQueue(FakeClock())
    queue.add(make_queued("p"))
    trying = popped(queue)
    queue.happened(DEVICES)
    queue.park(trying, "does not fit", [DEVICES])
    assert popped(queue).key.name == "p"


def test_an_event_before_the_attempt_does_not_count() -> None:
    queue = SchedulingQueue(FakeClock())
    queue.add(make_queued("p"))
    queue.happened(DEVICES)
    queue.park(popped(queue), "does not fit", [DEVICES])
    assert queue.try_pop() is None


async def test_backoff_doubles_and_ends_by_the_clock() -> None:
    clock = FakeClock()
    queue = SchedulingQueue(clock)
    queue.add(make_queued("p"))
    for pause in (1, 2, 4):
        queue.back_off(popped(queue), "Conflict")
        await clock.advance(pause - 0.1)
        assert queue.try_pop() is None
        await clock.advance(0.2)
    assert popped(queue).attempts == 4


async def test_pop_waits_for_a_pod() -> None:
    queue = SchedulingQueue(FakeClock())
    waiting = asyncio.create_task(queue.pop())
    await FakeClock.settle()
    assert not waiting.done()
    queue.add(make_queued("p"))
    assert (await asyncio.wait_for(waiting, 5)).key.name == "p"


def test_a_removed_pod_is_never_handed_out() -> None:
    queue = SchedulingQueue(FakeClock())
    queue.add(make_queued("p"))
    queue.remove(ObjectKey("default", "p"))
    assert queue.try_pop() is None
    assert len(queue) == 0


async def test_what_became_of_a_pod_is_no_news_of_another_of_its_name() -> None:
    clock = FakeClock()
    queue = SchedulingQueue(clock)
    queue.add(make_queued("p"))
    old = popped(queue)
    queue.remove(old.key)
    new = make_queued("p")
    queue.gate(new, "DynamicResources", "its claim doesn't exist yet")
    queue.back_off(old, "the pod is gone")
    queue.park(old, "the pod is gone", [DEVICES])
    queue.finish(old)
    assert queue.is_gated(new.key)
    queue.add(new)
    assert popped(queue) is new


def test_gated_pods_are_not_woken_by_events() -> None:
    queue = SchedulingQueue(FakeClock())
    queue.gate(make_queued("p"), "SchedulingGates", "gates")
    queue.happened(DEVICES, ROOM)
    assert queue.try_pop() is None
    assert queue.counts()["gated"] == 1


async def test_the_sweep_tries_pods_again_that_waited_for_very_long() -> None:
    clock = FakeClock()
    queue = SchedulingQueue(clock)
    queue.add(make_queued("p"))
    queue.park(popped(queue), "does not fit", [DEVICES])
    assert queue.sweep() == 0
    await clock.advance(301)
    assert queue.sweep() == 1
    assert popped(queue).key.name == "p"
