"""One small HTTP port per component: /healthz, /livez, /readyz and /metrics. Loopback unless told otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route


def health_app(registry: CollectorRegistry, is_ready: Callable[[], bool]) -> Starlette:
    async def healthy(request: Request) -> Response:
        return PlainTextResponse("ok")

    async def ready(request: Request) -> Response:
        return PlainTextResponse("ok") if is_ready() else PlainTextResponse("not ready", 503)

    async def metrics(request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return Starlette(
        routes=[
            Route("/healthz", healthy),
            Route("/livez", healthy),
            Route("/readyz", ready),
            Route("/metrics", metrics),
        ]
    )


@asynccontextmanager
async def serving_health(
    registry: CollectorRegistry, is_ready: Callable[[], bool], *, port: int, host: str = "127.0.0.1"
) -> AsyncIterator[int]:
    """Serve while the block runs; yields the port (useful with port 0)."""
    config = uvicorn.Config(health_app(registry, is_ready), host=host, port=port, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]  # signals belong to the component
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    loop = asyncio.create_task(server.main_loop())
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await loop
        await server.shutdown()
