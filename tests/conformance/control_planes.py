"""Control planes to play situations on: everything in one process, or separate processes over HTTPS."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any, Protocol

import httpx

from dray.apiserver.dispatch import Api
from dray.apiserver.local import LocalClient
from dray.apiserver.registry import Registry
from dray.apiserver.requests import ApiRequest, Query, parse_request
from dray.apiserver.users import ADMIN
from dray.controllers.assembly import Controllers
from dray.runtime.clock import SystemClock
from dray.scheduler.scheduler import Scheduler
from dray.store.memory import MemoryStore

Json = dict[str, Any]


class ControlPlane(Protocol):
    @property
    def is_really_settled(self) -> bool:
        """Whether nothing more can happen, so that a difference is final."""
        ...

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def request(self, method: str, path: str, body: Json | None, content_type: str) -> Json: ...
    async def wait_settled(self) -> None: ...


class InProcess:
    is_really_settled = True

    async def start(self) -> None:
        clock = SystemClock()
        self._store = MemoryStore()
        registry = Registry(self._store, clock=clock)
        self._api = Api(registry)
        await self._api.bootstrap()
        self._controllers = Controllers(LocalClient(registry), clock, root_ca="")
        self._scheduler = Scheduler(LocalClient(registry), clock)
        self._tasks = [
            asyncio.create_task(self._controllers.run()),
            asyncio.create_task(self._scheduler.run()),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._store.close()

    async def request(self, method: str, path: str, body: Json | None, content_type: str) -> Json:
        path, _, query_text = path.partition("?")
        query = Query(query_text)
        request = ApiRequest(
            info=parse_request(method, path, query),
            method=method,
            query=query,
            headers={"content-type": content_type or "application/json", "accept": "application/json"},
            body=b"" if body is None else json.dumps(body).encode(),
            user=ADMIN,
        )
        response = await self._api.handle(request)
        assert isinstance(response.body, bytes)
        assert response.status < 300, response.body
        answer: Json = json.loads(response.body)
        return answer

    async def wait_settled(self) -> None:
        """Until nobody has anything to do and the store has been quiet for a while."""
        quiet = 0
        revision = -1
        while quiet < 10:
            await asyncio.sleep(0.02)
            for task in self._tasks:
                if task.done():
                    task.result()
            now = self._store.revision
            is_quiet = self._controllers.is_idle and self._scheduler.is_idle and now == revision
            quiet = quiet + 1 if is_quiet else 0
            revision = now
