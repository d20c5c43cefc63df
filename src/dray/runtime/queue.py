"""A work queue of keys: an item waits at most once, is worked on by one worker at a time, and backs off on failure.

State of a key: *waiting* (in `_ready`), *active* (handed out), *dirty* (added again while active: handed out once
more when done), *delayed* (a timer will add it). Nothing is lost: an add during work always leads to another round.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from dray.api.errors import StatusError
from dray.runtime.clock import Clock, SystemClock

K = TypeVar("K", bound=Hashable)

log = logging.getLogger(__name__)

Reconcile = Callable[[K], Awaitable[float | None]]
"""Makes the world right for one key; may return the seconds after which to look again."""


class WorkQueue(Generic[K]):
    def __init__(
        self, name: str, clock: Clock | None = None, *, first_delay: float = 0.005, longest_delay: float = 1000.0
    ) -> None:
        self.name = name
        self.adds = 0
        self.retries = 0
        self._clock = clock or SystemClock()
        self._first_delay = first_delay
        self._longest_delay = longest_delay
        self._ready: deque[K] = deque()
        self._waiting: set[K] = set()
        self._active: set[K] = set()
        self._dirty: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, tuple[float, asyncio.Task[None]]] = {}
        self._idle: deque[asyncio.Future[None]] = deque()
        """Workers that wait for a key."""
        self._closed = False

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def is_idle(self) -> bool:
        """Nothing waits and nothing is worked on (delayed keys don't count)."""
        return not self._ready and not self._active

    def add(self, key: K) -> None:
        if self._closed or key in self._waiting or key in self._dirty:
            return
        self.adds += 1
        if key in self._active:
            self._dirty.add(key)
            return
        self._make_ready(key)

    def _make_ready(self, key: K) -> None:
        self._waiting.add(key)
        self._ready.append(key)
        self._wake_one()

    def _wake_one(self) -> None:
        """One key, one worker: waking all for each key would cost more than the work."""
        while self._idle:
            worker = self._idle.popleft()
            if not worker.done():
                worker.set_result(None)
                return

    def add_after(self, key: K, seconds: float) -> None:
        """Add later; of two delays for one key the earlier counts."""
        if seconds <= 0:
            self.add(key)
            return
        if self._closed:
            return
        due = self._clock.monotonic() + seconds
        if (timer := self._timers.get(key)) is not None:
            if timer[0] <= due:
                return
            timer[1].cancel()
        self._timers[key] = (due, asyncio.create_task(self._add_when_due(key, seconds)))

    async def _add_when_due(self, key: K, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._timers.pop(key, None)
        self.add(key)

    async def get(self) -> K:
        """The next key, now active; `done` must follow."""
        while not self._ready:
            if self._closed:
                raise asyncio.CancelledError
            idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            try:
                await idle
            except asyncio.CancelledError:
                if idle.done() and not idle.cancelled():  # it was woken for a key that it can't take any more
                    self._wake_one()
                raise
        key = self._ready.popleft()
        self._waiting.discard(key)
        self._active.add(key)
        return key

    def done(self, key: K) -> None:
        self._active.discard(key)
        if key in self._dirty:
            self._dirty.discard(key)
            self._make_ready(key)

    def forget(self, key: K) -> None:
        """It went well: the next failure starts with the shortest delay again."""
        self._failures.pop(key, None)

    def retry(self, key: K) -> float:
        """It failed: add again after a delay that doubles with each failure. Returns the delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.retries += 1
        delay = float(min(self._first_delay * 2.0 ** min(failures, 60), self._longest_delay))
        self.add_after(key, delay)
        return delay

    def close(self) -> None:
        self._closed = True
        for _, task in self._timers.values():
            task.cancel()
        self._timers.clear()
        for idle in self._idle:
            if not idle.done():
                idle.set_result(None)

    async def work(self, reconcile: Reconcile[K], workers: int = 1) -> None:
        """Hand keys to `reconcile` until cancelled. A failure is logged and the key retried with backoff."""
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work_one(reconcile))

    async def _work_one(self, reconcile: Reconcile[K]) -> None:
        while True:
            key = await self.get()
            try:
                delay = await reconcile(key)
            except (StatusError, OSError) as error:  # conflicts and servers away: the normal course of things
                log.info("%s: %s: %s; retrying in %.3gs", self.name, key, error, self.retry(key))
            except Exception:
                log.exception("%s: %s failed, retrying in %.3gs", self.name, key, self.retry(key))
            else:
                self.forget(key)
                if delay is not None:
                    self.add_after(key, delay)
            finally:
                self.done(key)
            # An in-process client answers without ever waiting: without this, a busy queue would starve the informers.
            await asyncio.sleep(0)
