"""A registry, or a whole server over HTTPS, in the event loop of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dray.apiserver.dispatch import Api
from dray.apiserver.registry import Registry
from dray.apiserver.server import ApiServer, ServerOptions
from dray.apiserver.tokens import ADMIN_USER, MASTERS
from dray.runtime.access import ClusterAccess
from dray.runtime.clock import Clock
from dray.runtime.credentials import StaticToken
from dray.runtime.http_client import HttpClient
from dray.store.memory import MemoryStore


async def start_registry(clock: Clock | None = None) -> Registry:
    """With the namespaces and roles that every server has, in memory."""
    registry = Registry(MemoryStore(), clock=clock)
    await Api(registry).bootstrap()
    return registry


@asynccontextmanager
async def serving(folder: Path, *, memory: bool = True) -> AsyncIterator[ApiServer]:
    server = await ApiServer.open(ServerOptions(data_dir=folder, port=0, memory=memory))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def admin_access(server: ApiServer) -> ClusterAccess:
    token = server.tokens.ensure(ADMIN_USER, (MASTERS,))
    return ClusterAccess(server.address, authority=server.authority.pem, credentials=StaticToken(token))


@asynccontextmanager
async def admin_client(server: ApiServer, agent: str = "test") -> AsyncIterator[HttpClient]:
    async with HttpClient(admin_access(server), agent=agent) as client:
        yield client
