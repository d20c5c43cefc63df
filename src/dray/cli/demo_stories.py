"""`dray demo`: user stories on a cluster of their own, step by step."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from dray.apiserver.serving import CannotListen
from dray.cli import demo as allocator_demo
from dray.cli.exits import PROBLEMS, UNUSABLE
from dray.cli.pictures import draw_claims, draw_devices
from dray.cluster.local import ClusterOptions, LocalCluster
from dray.cluster.model_files import BadModel
from dray.cluster.observing import read_summary
from dray.cluster.stories import (
    STORY_FILE,
    BadStory,
    Story,
    StoryFailed,
    load_story,
    play,
    story_environment,
    story_options,
)
from dray.driver.plugin import SocketPathTooLong
from dray.driver.publisher import PoolsRefused
from dray.runtime.client import Client
from dray.runtime.logs import setup_logs

PLACES: Final = (
    Path(__file__).resolve().parents[3] / "examples" / "stories",
    Path(__file__).resolve().parents[1] / "examples" / "stories",
)
"""In a checkout, and in an installed package."""
SHORT: Final = Path("/tmp")
"""Sockets of drivers are in the cluster's directory, and their paths must not be long."""
DEFAULT_STORY: Final = "partial-gpu"
ALLOCATOR: Final = "allocator"
LONGEST_FILE: Final = 60
"""Lines of a manifest that are shown; the rest is to be read in the file."""


def run(
    story: Annotated[
        str,
        typer.Argument(help="A story, a directory with one, or `allocator`; --list shows them.", metavar="[STORY]"),
    ] = DEFAULT_STORY,
    show_list: Annotated[bool, typer.Option("--list", help="Show which stories there are.")] = False,
    pause: Annotated[bool, typer.Option("--pause", help="Wait for Enter before every step.")] = False,
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="Show the log, too.")] = 0,
) -> None:
    """Play a user story of the KEPs on a cluster in this process: real drivers, real processes, all removed again.

    `dray demo allocator` shows the device allocator alone, without a cluster.

    Exit status: 0, 1 if the story doesn't come true, 2 if there is no such story.
    """
    console = Console(highlight=False)
    folder = next((place for place in PLACES if place.is_dir()), PLACES[0])
    if show_list:
        _show_list(console, folder)
        return
    if story == ALLOCATOR:
        allocator_demo.run(folder)
        return
    setup_logs(verbose)
    if not verbose:
        logging.getLogger("dray").setLevel(logging.WARNING)  # the story is told, not the log
    place = folder / story if (folder / story).is_dir() else Path(story)
    if not place.is_dir():
        _fail(f"there is no story {story!r}. Stories: {', '.join((*_names(folder), ALLOCATOR))}", UNUSABLE)
    try:
        asyncio.run(_play(console, load_story(place), pause))
    except (BadStory, BadModel) as error:
        _fail(error, UNUSABLE)
    except (StoryFailed, SocketPathTooLong, PoolsRefused, CannotListen, OSError) as failure:
        _fail(f"the story did not come true: {failure}", PROBLEMS)


def _fail(error: object, status: int) -> NoReturn:
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(status)


def _names(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob(f"*/{STORY_FILE}"))


def _show_list(console: Console, folder: Path) -> None:
    for name in _names(folder):
        story = load_story(folder / name)
        console.print(f"{name:24} {story.source}  {story.title}", markup=False, soft_wrap=True)
    console.print(f"{ALLOCATOR:24}           The device allocator alone, on the same stories", soft_wrap=True)


async def _play(console: Console, story: Story, pause: bool) -> None:
    started = time.monotonic()
    data_dir = Path(tempfile.mkdtemp(prefix="dray-demo-", dir=SHORT if os.access(SHORT, os.W_OK) else None))
    try:
        options = story_options(story, data_dir)
        console.print(Panel(Text(f"{story.source}: {story.title}", style="bold"), expand=False))
        console.print(_describe(options), style="dim", markup=False)
        with story_environment(story):
            async with LocalCluster(options) as cluster:
                up = time.monotonic() - started
                console.print(f"The cluster is up after {up:.1f}s at {cluster.address}, for kubectl too.", style="dim")
                await play(story, cluster, _Narrator(console, pause))
    finally:
        shutil.rmtree(data_dir)
    console.print(
        f"\nDone in {time.monotonic() - started:.1f}s; the cluster is stopped and nothing is left.", style="dim"
    )
    console.print("More: [bold]dray demo --list[/]; your own cluster: [bold]dray up[/]")


def _describe(options: ClusterOptions) -> str:
    count = len(options.node_names)
    return f"Starting a cluster: {count} node{'s' if count > 1 else ''}, {options.model.description}"


class _Narrator:
    """Shows the devices and claims only when they have changed."""

    def __init__(self, console: Console, pause: bool) -> None:
        self._console = console
        self._pause = pause
        self._number = 0
        self._shown: object = None

    def say(self, text: str) -> None:
        if not text:
            return
        if self._pause and self._number:
            self._console.input("[dim]Enter for the next step …[/]")
        self._number += 1
        self._console.print(Text.assemble((f"\n{self._number}. ", "bold cyan"), (text, "bold")))

    def show_file(self, path: Path) -> None:
        lines = path.read_text().splitlines()
        self._console.print(f"   dray apply -f {path.parent.name}/{path.name}", style="dim", markup=False)
        text = "\n".join(lines[:LONGEST_FILE])
        syntax = Syntax(text, "yaml", background_color="default", word_wrap=True)
        self._console.print(Padding(syntax, (0, 0, 0, 3)))
        if len(lines) > LONGEST_FILE:
            self._console.print(f"   … {len(lines) - LONGEST_FILE} more lines", style="dim", markup=False)

    def show_log(self, text: str) -> None:
        self._console.print(Padding(Panel(Text(text.rstrip(), style="green"), title="log", expand=False), (0, 0, 0, 3)))

    def show_event(self, text: str) -> None:
        self._console.print(Padding(Text(text, style="yellow"), (0, 0, 0, 3)))

    async def show_cluster(self, client: Client) -> None:
        summary = await read_summary(client)
        state = (summary.pools, summary.claims)
        if state == self._shown:
            return
        self._shown = state
        self._console.print(Padding(draw_devices(summary), (1, 0, 0, 3)))
        if summary.claims:
            self._console.print(Padding(draw_claims(summary), (1, 0, 0, 3)))
