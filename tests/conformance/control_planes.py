"""Control planes to play situations on: everything in one process, or separate processes over HTTPS."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import httpx
import yaml

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
            now = self._store.current_revision
            is_quiet = self._controllers.is_idle and self._scheduler.is_idle and now == revision
            quiet = quiet + 1 if is_quiet else 0
            revision = now


class SeparateProcesses:
    """`dray apiserver`, `dray controllers` and `dray scheduler`, talking HTTPS."""

    is_really_settled = False

    async def start(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="dray-lifecycle-")
        root = Path(self._directory.name)
        self._processes = [await _spawn("apiserver", "--data-dir", str(root), "--port", "0", "--memory")]
        kubeconfig = root / "admin.kubeconfig"
        await _until(kubeconfig.exists)
        self._processes += [
            await _spawn(name, "--kubeconfig", str(root / "kubeconfigs" / f"{name}.kubeconfig"))
            for name in ("controllers", "scheduler")
        ]
        self._client = _admin(kubeconfig)
        await _until_async(self._is_up)

    async def _is_up(self) -> bool:
        try:
            return (await self._client.get("/readyz")).status_code == 200
        except httpx.TransportError:
            return False

    async def stop(self) -> None:
        await self._client.aclose()
        for process in reversed(self._processes):  # the server last, so that leases are given back
            process.terminate()
            await process.wait()
        self._directory.cleanup()

    async def request(self, method: str, path: str, body: Json | None, content_type: str) -> Json:
        headers = {"content-type": content_type or "application/json", "accept": "application/json"}
        content = b"" if body is None else json.dumps(body).encode()
        response = await self._client.request(method, path, content=content, headers=headers)
        assert response.status_code < 300, response.text
        answer: Json = response.json()
        return answer

    async def wait_settled(self) -> None:
        """Nobody outside can know; the caller compares until it fits or time is up."""


async def _spawn(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dray", *arguments, stdout=asyncio.subprocess.DEVNULL
    )


def _admin(kubeconfig: Path) -> httpx.AsyncClient:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return httpx.AsyncClient(
        base_url=cluster["server"],
        verify=ssl.create_default_context(cadata=authority),
        headers={"authorization": f"Bearer {user['token']}"},
        timeout=30,
    )


async def _until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    async def ask() -> bool:
        return condition()

    await _until_async(ask, seconds)


async def _until_async(condition: Callable[[], Awaitable[bool]], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - another process can't set an event
            await asyncio.sleep(0.05)
