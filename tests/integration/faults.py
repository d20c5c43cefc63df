"""A client on whose calls bad luck strikes: before the server hears of them, after it did, or in a watch."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from dray.api.errors import InternalError, ServerTimeout, ServiceUnavailable, StatusError, TooManyRequests
from dray.api.meta import Json
from dray.api.resources import Resource
from dray.runtime.client import Client, WatchEvent

T = TypeVar("T")

BEFORE: tuple[Callable[[str], StatusError], ...] = (ServiceUnavailable, TooManyRequests)
AFTER: tuple[Callable[[str], StatusError], ...] = (ServerTimeout, InternalError, ServiceUnavailable)
LATEST = 200
"""Turns of the event loop after which a call whose caller was told of a timeout is carried out all the same."""


class FaultyClient:
    """Fails `rate` of all calls: before they took effect, after it, or with the effect still to come.

    Watches break about as often per event.
    """

    def __init__(self, client: Client, rate: float, seed: int, *, pauses: int = 3) -> None:
        self._client = client
        self._rate = rate
        self._random = random.Random(seed)
        self._pauses = pauses
        self.is_calm = False
        """No more bad luck, so that things can settle."""
        self._late: set[asyncio.Task[None]] = set()

    def _strikes(self) -> bool:
        return not self.is_calm and self._random.random() < self._rate

    async def _luckily(self, call: Callable[[], Awaitable[T]]) -> T:
        # Answers take their time, so that calls overtake each other.
        for _ in range(self._random.randrange(self._pauses + 1)):
            await asyncio.sleep(0)
        if self._strikes():
            match self._random.randrange(4):
                case 0 | 1:
                    raise self._random.choice(BEFORE)("bad luck: not done")
                case 2:
                    await call()
                    raise self._random.choice(AFTER)("bad luck: done, but not told")
                case _:
                    task = asyncio.create_task(self._do_late(call, self._random.randrange(LATEST)))
                    self._late.add(task)
                    task.add_done_callback(self._late.discard)
                    raise self._random.choice(AFTER)("bad luck: done later")
        result = await call()
        for _ in range(self._random.randrange(self._pauses + 1)):
            await asyncio.sleep(0)
        return result

    @staticmethod
    async def _do_late(call: Callable[[], Awaitable[Any]], turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        with suppress(StatusError):  # nobody listens any more
            await call()

    @property
    def joins_steps(self) -> bool:
        return self._client.joins_steps

    async def patch_steps(self, *arguments: Any) -> Json:
        return await self._luckily(lambda: self._client.patch_steps(*arguments))

    async def get(self, *arguments: Any) -> Json:
        return await self._luckily(lambda: self._client.get(*arguments))

    async def list(self, *arguments: Any, **options: Any) -> Json:
        return await self._luckily(lambda: self._client.list(*arguments, **options))

    async def create(self, *arguments: Any, **options: Any) -> Json:
        return await self._luckily(lambda: self._client.create(*arguments, **options))

    async def update(self, *arguments: Any, **options: Any) -> Json:
        return await self._luckily(lambda: self._client.update(*arguments, **options))

    async def patch(self, *arguments: Any, **options: Any) -> Json:
        return await self._luckily(lambda: self._client.patch(*arguments, **options))

    async def delete(self, *arguments: Any, **options: Any) -> Json:
        return await self._luckily(lambda: self._client.delete(*arguments, **options))

    async def delete_collection(self, *arguments: Any, **options: Any) -> None:
        await self._luckily(lambda: self._client.delete_collection(*arguments, **options))

    @asynccontextmanager
    async def watch(
        self, resource: Resource, *arguments: Any, **options: Any
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        if self._strikes():
            raise ServiceUnavailable("bad luck: no watch")
        async with self._client.watch(resource, *arguments, **options) as events:

            async def unreliable() -> AsyncIterator[WatchEvent]:
                async for event in events:
                    if self._strikes() and self._random.random() < 0.2:
                        raise ServiceUnavailable("bad luck: the watch broke")
                    yield event

            yield unreliable()
