"""`dray up`: a whole cluster on this machine, in one process or several."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from dray.api.errors import StatusError
from dray.api.times import format_time
from dray.apiserver.certificates import BadCertificate
from dray.apiserver.serving import CannotListen
from dray.apiserver.tokens import BadTokenFile
from dray.cli.data_dirs import DataDirOption
from dray.cli.driver_loading import load_driver
from dray.cli.exits import UNUSABLE
from dray.cli.gates import read_gates
from dray.cli.pictures import describe_briefly
from dray.cluster.datadir import (
    DEFAULT,
    LOG,
    AlreadyUp,
    ProcessID,
    UnusableDirectory,
    UpRecord,
    check_free,
    find_error,
    hold_directory,
    make_directory,
    read_record,
    remove_record,
    write_record,
)
from dray.cluster.inventories import MODELS, find_model
from dray.cluster.local import ClusterOptions, LocalCluster
from dray.cluster.model_files import BadModel
from dray.cluster.observing import Observer
from dray.cluster.separate import PartFailed, SeparateCluster
from dray.driver.plugin import SocketPathTooLong
from dray.driver.publisher import PoolsRefused
from dray.node.agent import AlreadyRunning
from dray.runtime.access import BadAccess
from dray.runtime.clock import SystemClock
from dray.runtime.logs import setup_logs
from dray.store.errors import StoreUnusable

START_SECONDS = 60.0
REFRESH_SECONDS = 0.5
RuntimeOption = Literal["process", "simulated"]


def run(
    nodes: Annotated[
        int | None, typer.Option(help="Number of nodes.", min=1, show_default="what the model suggests")
    ] = None,
    model: Annotated[
        str, typer.Option(help=f"What the nodes have: {', '.join(MODELS)}, or a file with ResourceSlices.")
    ] = "a100-8",
    data_dir: DataDirOption = DEFAULT,
    port: Annotated[int, typer.Option(help="Port of the API; 0 takes any free one.", min=0, max=65535)] = 0,
    runtime: Annotated[
        RuntimeOption, typer.Option(help="Run containers as local processes, or only pretend to.")
    ] = "process",
    driver: Annotated[
        list[str] | None,
        typer.Option(help="A driver of your own on every node: MODULE:CLASS. May be repeated."),
    ] = None,
    image_dir: Annotated[
        list[Path] | None, typer.Option(help="Folder of folders that stand for images. May be repeated.")
    ] = None,
    processes: Annotated[bool, typer.Option("--processes", help="Every component in a process of its own.")] = False,
    detach: Annotated[
        bool, typer.Option("--detach/--no-detach", "-d", help="Go to the background once it is up.")
    ] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Keep objects in memory only.")] = False,
    feature_gates: Annotated[
        str, typer.Option(help="Features to turn off or on, e.g. DRAAdminAccess=false. All are on.")
    ] = "",
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="Log to the terminal.")] = 0,
) -> None:
    """Start a cluster: API server, controllers, scheduler, and nodes with simulated devices.

    kubectl works with the kubeconfig that it names. Ctrl-C stops it; the next start goes on where it was.

    Exit status: 0 after an interrupt, 1 if the cluster can't start, 2 for bad options.
    """
    data_dir = data_dir.expanduser().absolute()
    try:
        options = ClusterOptions(
            data_dir=data_dir,
            model=find_model(model),
            nodes=nodes or 0,
            runtime=runtime,
            port=port,
            memory=memory,
            gates=read_gates(feature_gates),
            images=tuple(map(_find_images, image_dir or ())),
            drivers=dict(map(load_driver, driver or ())),
        )
    except BadModel as error:
        _fail(f"--model: {error}", UNUSABLE)
    except OSError as error:
        _fail(error, UNUSABLE)
    if processes and options.drivers:
        _fail("--driver and --processes don't go together: start your driver with `dray driver run`", UNUSABLE)
    try:
        if detach:
            _detach(data_dir)
            return
        with hold_directory(data_dir):
            _log_to(data_dir, verbose)
            asyncio.run(_up(options, model, processes))
    except UnusableDirectory as error:
        _fail(f"--data-dir: {error}", 1)
    except CannotListen as error:
        _fail(f"--port: {error}", 1)
    except (
        *(AlreadyUp, AlreadyRunning, StoreUnusable, BadCertificate, BadTokenFile),
        *(SocketPathTooLong, PoolsRefused, BadAccess, PartFailed, StatusError, OSError),
    ) as error:
        _fail(error, 1)


def _fail(error: object, status: int) -> NoReturn:
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(status)


def _find_images(place: Path) -> Path:
    found = place.expanduser().absolute()
    if not found.is_dir():
        _fail(f"--image-dir: {place} is not a directory", UNUSABLE)
    return found


def _log_to(data_dir: Path, verbose: int) -> None:
    """Into a file unless asked for: the terminal shows the state of things."""
    setup_logs(max(verbose - 1, 0))
    if not verbose:
        stream = (data_dir / LOG).open("a", encoding="utf-8", buffering=1)
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(stream)


# In the foreground


async def _up(options: ClusterOptions, model: str, processes: bool) -> None:
    console = Console(highlight=False)
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for interrupt in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(interrupt) is not signal.SIG_IGN:  # so `nohup` wants it for SIGHUP
            loop.add_signal_handler(interrupt, interrupted.set)
    count = len(options.node_names)
    console.print(f"Starting {count} node{'s' if count > 1 else ''} of model [bold]{options.model.name}[/] …")
    cluster: LocalCluster | SeparateCluster = SeparateCluster(options, model) if processes else LocalCluster(options)
    starting = asyncio.ensure_future(cluster.start())
    waiting = asyncio.ensure_future(interrupted.wait())
    await asyncio.wait((starting, waiting), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        console.print("Stopped before it was up.")
        return
    await starting
    try:
        write_record(options.data_dir, _make_record(cluster, options))
        _greet(console, cluster, options)
        failing = asyncio.ensure_future(cluster.wait_failed())
        async with _status_line(console, cluster):
            await asyncio.wait((failing, waiting), return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            failing.result()
        failing.cancel()
        console.print("Stopping." if options.memory else "Stopping; the state is kept.")
    finally:
        remove_record(options.data_dir)
        await cluster.stop()


def _make_record(cluster: LocalCluster | SeparateCluster, options: ClusterOptions) -> UpRecord:
    own = ProcessID.of(os.getpid())
    return UpRecord(
        pid=own.pid,
        born=own.born,
        address=cluster.address,
        kubeconfig=str(cluster.kubeconfig),
        model=options.model.name,
        nodes=len(options.node_names),
        runtime=options.runtime,
        started_at=format_time(SystemClock().now()),
        parts=tuple(map(ProcessID.of, cluster.process_ids)),
    )


def _greet(console: Console, cluster: LocalCluster | SeparateCluster, options: ClusterOptions) -> None:
    console.print(f"[green]Up[/] at {cluster.address}: {options.model.description}")
    console.print(f"  export KUBECONFIG={cluster.kubeconfig}", soft_wrap=True)
    console.print("  dray status      what there is, and what waits")
    console.print("  dray demo        the user stories, step by step")
    console.print("Ctrl-C stops it.")


@asynccontextmanager
async def _status_line(console: Console, cluster: LocalCluster | SeparateCluster) -> AsyncIterator[None]:
    """The state of the cluster in one line, while the block runs; nothing where nobody could see it change."""
    if not console.is_terminal:
        yield
        return
    observer = Observer(cluster.client, SystemClock())
    following = asyncio.create_task(observer.run())
    with Live(Text(""), console=console, auto_refresh=False, transient=True) as live:

        async def refresh() -> None:
            await observer.wait_synced()
            while True:
                live.update(Text(describe_briefly(observer.summary), style="dim", overflow="ellipsis"), refresh=True)
                await asyncio.sleep(REFRESH_SECONDS)

        drawing = asyncio.create_task(refresh())
        try:
            yield
        finally:
            for task in (drawing, following):
                task.cancel()
            await asyncio.gather(drawing, following, return_exceptions=True)


# In the background


def _detach(data_dir: Path) -> None:
    make_directory(data_dir)
    check_free(data_dir)
    remove_record(data_dir)
    with (data_dir / LOG).open("a") as log:
        offset = log.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "dray", *sys.argv[1:], "--no-detach"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    record = _await_record(data_dir, process, offset)
    place = "" if data_dir == DEFAULT else f" --data-dir {data_dir}"
    typer.echo(f"Up at {record.address} (process {record.pid}); `dray down{place}` stops it.")
    typer.echo(f"  export KUBECONFIG={record.kubeconfig}")


def _await_record(data_dir: Path, process: subprocess.Popen[bytes], offset: int) -> UpRecord:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        record = read_record(data_dir)
        if record is not None and record.pid == process.pid:
            return record
        with suppress(subprocess.TimeoutExpired):
            status = process.wait(0.1)
            _fail(find_error(data_dir / LOG, offset) or f"the cluster ended; see {data_dir / LOG}", status or 1)
    process.terminate()
    _fail(f"the cluster was not up within {START_SECONDS:g}s; see {data_dir / LOG}", 1)
