"""A `Client` whose lists and watches a test writes down beforehand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dray.api.meta import Json
from dray.runtime.client import EventType, WatchEvent


def make_object(name: str, revision: int, **more: Any) -> Json:
    return {"metadata": {"name": name, "resourceVersion": str(revision)}, **more}


def page(revision: int, *objects: Json, token: str = "") -> Json:
    metadata = {"resourceVersion": str(revision), **({"continue": token} if token else {})}
    return {"metadata": metadata, "items": list(objects)}


def event(kind: str, obj: Json) -> WatchEvent:
    return WatchEvent(EventType(kind), obj)


class ScriptedClient:
    """Each list takes the next of `lists`, each watch the next of `watches`; an exception among them is raised there.

    A watch whose events are used up ends, unless it is the last: that one waits for ever.
    """

    def __init__(self, lists: list[Json | Exception], watches: list[list[WatchEvent | Exception]]) -> None:
        self._lists = lists
        self._watches = watches
        self.asked: list[str] = []

    async def list(self, resource: object, namespace: str = "", **options: Any) -> Json:
        self.asked.append(f"list limit={options['limit']} continue={options['continue_token']}")
        answer = self._lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @asynccontextmanager
    async def watch(
        self, resource: object, namespace: str = "", **options: Any
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        self.asked.append(f"watch from {options['resource_version']}")
        script = self._watches.pop(0) if self._watches else []
        is_last = not self._watches

        async def events() -> AsyncIterator[WatchEvent]:
            for item in script:
                if isinstance(item, Exception):
                    raise item
                yield item
            if is_last:
                await asyncio.Event().wait()

        yield events()
