"""The in-process client and the HTTPS client, each through the whole suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dray.apiserver.local import LocalClient
from dray.apiserver.registry import Registry
from dray.apiserver.server import ApiServer
from dray.runtime.client import Client
from tests.integration.api_servers import admin_client, serving, start_registry
from tests.integration.client_suite import ClientSuite


class TestLocalClient(ClientSuite):
    @pytest.fixture
    async def registry(self) -> Registry:
        return await start_registry()

    @pytest.fixture
    async def client(self, registry: Registry) -> Client:
        self.registry = registry
        return LocalClient(registry)

    async def forget_history(self, client: Client) -> None:
        store = self.registry.store
        await store.compact(store.current_revision)


class TestHttpClient(ClientSuite):
    @pytest.fixture
    async def server(self, tmp_path: Path) -> AsyncIterator[ApiServer]:
        async with serving(tmp_path) as server:
            yield server

    @pytest.fixture
    async def client(self, server: ApiServer) -> AsyncIterator[Client]:
        self.server = server
        async with admin_client(server) as client:
            yield client

    async def forget_history(self, client: Client) -> None:
        store = self.server.store
        await store.compact(store.current_revision)
