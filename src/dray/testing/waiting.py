"""Waiting for a condition, in tests that watch something from outside."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

LOOK_INTERVAL = 0.01


async def eventually(condition: Callable[[], Any | Awaitable[Any]], what: str = "", *, seconds: float = 15.0) -> Any:
    """The first truthy answer of `condition`. Fails, saying `what` was waited for, if there is none in time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        answer = condition()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if loop.time() > end:
            raise AssertionError(f"not within {seconds:g}s: {what or inspect.getsource(condition).strip()}")
        await asyncio.sleep(LOOK_INTERVAL)
