"""Time as a parameter. Components take a `Clock`; tests hand in `dray.testing.clock.FakeClock`, which jumps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall clock, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def wait_at_most(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. Raises TimeoutError, with the work cancelled, if it takes longer."""
    working = asyncio.ensure_future(work)
    sleeping = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((working, sleeping), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise TimeoutError(f"not done within {seconds:g} s")
        return working.result()
    finally:
        working.cancel()
        sleeping.cancel()
