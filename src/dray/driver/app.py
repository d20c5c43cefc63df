"""The command line of a driver: `serve(MyDriver())` is all that its program needs.

The options have defaults for a DaemonSet next to a real kubelet; see `docs/driver-authors.md` for its manifest.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry

from dray.driver.base import Driver
from dray.driver.checkpoint import DamagedCheckpoint
from dray.driver.controller import PoolController
from dray.driver.plugin import SocketPathTooLong
from dray.driver.runner import DriverPaths, DriverRunner
from dray.runtime.access import BadAccess
from dray.runtime.health import serving_health
from dray.runtime.http_client import HttpClient
from dray.runtime.kubeconfig import find_access
from dray.runtime.logs import setup_logs

log = logging.getLogger(__name__)

UID_PART = 8
"""So much of a pod's UID tells two instances on one node apart. Paths of sockets must be short."""


@dataclass(frozen=True)
class ServeOptions:
    node_name: str = ""
    kubeconfig: Path | None = None
    paths: DriverPaths = field(default_factory=DriverPaths)
    instance: str = ""
    is_controller: bool = False
    """Publish the network-attached devices instead of serving a node."""
    health_port: int = 0
    health_bind: str = "127.0.0.1"


def serve(driver: Driver, arguments: Sequence[str] | None = None, *, program: str | None = None) -> None:
    """Run the driver until SIGTERM or SIGINT. Exits with status 1 if it can't start.

    `program` is how the user called it, for messages about options.
    """
    options, verbosity = parse_arguments(driver.name, arguments, program)
    setup_logs(verbosity)
    try:
        asyncio.run(run_driver(driver, options))
    except (BadAccess, SocketPathTooLong, DamagedCheckpoint, OSError) as error:
        sys.exit(f"error: {error}")


def parse_arguments(
    name: str, arguments: Sequence[str] | None = None, program: str | None = None
) -> tuple[ServeOptions, int]:
    parser = argparse.ArgumentParser(prog=program, description=f"DRA driver {name}")
    defaults = DriverPaths()
    parser.add_argument(
        "--node-name", default=os.environ.get("NODE_NAME", ""), help="the node it runs on (default: $NODE_NAME)"
    )
    parser.add_argument("--kubeconfig", type=Path, help="default: $KUBECONFIG, or the pod's service account")
    parser.add_argument("--plugins", type=Path, default=defaults.plugins, help="default: %(default)s")
    parser.add_argument("--registry", type=Path, default=defaults.registry, help="default: %(default)s")
    parser.add_argument("--cdi", type=Path, default=defaults.cdi, help="default: %(default)s")
    parser.add_argument("--root", type=Path, help="all three below one directory: a node of `dray up` or `dray node`")
    parser.add_argument(
        "--instance",
        default=os.environ.get("POD_UID", "")[:UID_PART],
        help="tells two instances apart during an upgrade (default: the beginning of $POD_UID)",
    )
    parser.add_argument("--controller", action="store_true", help="publish network-attached devices, once per cluster")
    parser.add_argument("--health-port", type=int, default=0, help="for /metrics, /healthz and /readyz; 0: any")
    parser.add_argument(
        "--health-bind", default=ServeOptions.health_bind, help="address of that port (default: %(default)s)"
    )
    parser.add_argument("-v", "--verbose", action="count", default=0)
    given = parser.parse_args(arguments)
    if not given.controller and not given.node_name:
        parser.error("--node-name is needed (or $NODE_NAME)")
    paths = DriverPaths(given.plugins, given.registry, given.cdi)
    options = ServeOptions(
        node_name=given.node_name,
        kubeconfig=given.kubeconfig,
        paths=DriverPaths.under(given.root) if given.root else paths,
        instance=given.instance,
        is_controller=given.controller,
        health_port=given.health_port,
        health_bind=given.health_bind,
    )
    return options, given.verbose


async def run_driver(driver: Driver, options: ServeOptions) -> None:
    """Raises BadAccess, SocketPathTooLong, DamagedCheckpoint, OSError."""
    async with HttpClient(find_access(options.kubeconfig), agent=f"dra-driver-{driver.name}") as client:
        registry = CollectorRegistry()
        runner: DriverRunner | PoolController
        if options.is_controller:
            runner = PoolController(driver, client, registry=registry)
        else:
            runner = DriverRunner(
                driver,
                client,
                node_name=options.node_name,
                paths=options.paths,
                instance=options.instance,
                registry=registry,
            )
        running = asyncio.ensure_future(runner.run())
        loop = asyncio.get_running_loop()
        for interrupt in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(interrupt, running.cancel)
        async with serving_health(
            registry, lambda: runner.is_ready, port=options.health_port, host=options.health_bind
        ) as port:
            what = "controller" if options.is_controller else f"node {options.node_name}"
            log.info("driver %s, %s; metrics at http://%s:%d/metrics", driver.name, what, options.health_bind, port)
            with contextlib.suppress(asyncio.CancelledError):
                await running
