"""A server to talk to: a fresh one of ours in a thread of its own, or one that runs elsewhere."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dray.apiserver.server import ApiServer, ServerOptions
from dray.apiserver.tokens import ADMIN_USER, MASTERS


class Server(NamedTuple):
    url: str
    token: str
    tls: ssl.SSLContext


@contextmanager
def running_server(environment: Mapping[str, str]) -> Iterator[Server]:
    """DRAY_SERVER is the address of a running server, DRAY_TOKEN a token of an admin, DRAY_CA the file of its CA."""
    address = environment.get("DRAY_SERVER")
    if address:
        tls = ssl.create_default_context(cafile=environment.get("DRAY_CA") or None)
        yield Server(address, environment.get("DRAY_TOKEN", ""), tls)
        return
    with tempfile.TemporaryDirectory(prefix="dray-") as folder, _in_thread(Path(folder)) as server:
        yield server


@contextmanager
def _in_thread(folder: Path) -> Iterator[Server]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="api server", daemon=True)
    thread.start()
    server = _run(loop, ApiServer.open(ServerOptions(data_dir=folder, port=0, memory=True)))
    try:
        _run(loop, server.start())
        tls = ssl.create_default_context(cadata=server.authority.pem.decode())
        yield Server(server.address, server.tokens.ensure(ADMIN_USER, (MASTERS,)), tls)
    finally:
        _run(loop, server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def _run(loop: asyncio.AbstractEventLoop, coroutine):  # type: ignore[no-untyped-def]
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result(30)
