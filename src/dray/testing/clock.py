"""A clock that moves only when told, and then wakes every sleeper whose time has come, in order."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta


class FakeClock:
    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), wake))
        await wake

    @property
    def sleeping(self) -> int:
        """How many tasks sleep on this clock."""
        return sum(not wake.done() for _, _, wake in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Move on, stopping at every sleeper on the way so that it sees the time it asked for."""
        end = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, wake = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, due)
            if not wake.done():
                wake.set_result(None)
            await self.settle()
        self._elapsed = end
        await self.settle()

    async def freeze(self, seconds: float) -> None:
        """Time passes and nobody notices, as on a virtual machine that is halted; then everybody is late."""
        self._elapsed += seconds
        await self.advance(0)

    @staticmethod
    async def settle(turns: int = 10) -> None:
        """Let tasks that are ready run."""
        for _ in range(turns):
            await asyncio.sleep(0)
