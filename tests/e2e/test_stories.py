"""The user stories of the KEPs, on a whole cluster: real gRPC, real CDI files, containers as processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dray.api.resources import RESOURCE_CLAIMS
from dray.cluster import stories
from dray.cluster.local import LocalCluster
from dray.cluster.stories import StoryFailed, load_story, play, story_environment, story_options
from dray.runtime.client import Client

FOLDER = Path(__file__).parents[2] / "examples" / "stories"
STORIES = sorted(path.parent.name for path in FOLDER.glob("*/story.toml"))


class Listener:
    def say(self, text: str) -> None:
        print(f"* {text}")

    def show_file(self, path: Path) -> None:
        print(f"  {path.name}")

    def show_log(self, text: str) -> None:
        print(text)

    def show_event(self, text: str) -> None:
        print(text)

    async def show_cluster(self, client: Client) -> None:
        """Nobody looks."""


@pytest.fixture
def data_dir() -> object:
    """Short, because sockets are below."""
    path = Path(tempfile.mkdtemp(prefix="dray-"))
    yield path
    shutil.rmtree(path)


def left_behind(data_dir: Path) -> list[Path]:
    """CDI files and records of held claims."""
    return [*data_dir.glob("nodes/*/cdi/*.json"), *data_dir.glob("nodes/*/claims/*.json")]


@pytest.mark.parametrize("name", STORIES)
async def test_the_story_comes_true(name: str, data_dir: Path) -> None:
    story = load_story(FOLDER / name)
    with story_environment(story):
        async with LocalCluster(story_options(story, data_dir)) as cluster:
            await play(story, cluster, Listener())
            claims = await cluster.client.list(RESOURCE_CLAIMS)
            assert [claim["metadata"]["name"] for claim in claims["items"]] == []
            assert left_behind(data_dir) == []


def test_there_is_one_for_every_story_that_the_keps_tell() -> None:
    stories = [load_story(FOLDER / name) for name in STORIES]
    assert sorted((story.source, story.title) for story in stories) == [
        ("KEP-4381", "Cluster add-on development"),
        ("KEP-4381", "Cluster configuration"),
        ("KEP-4381", "Partial GPU allocation"),
        ("KEP-5254", "Allocating a slice of connected devices of desired shape"),
        ("KEP-5254", "Allocating connected devices"),
        ("KEP-5491", "Hardware topological aligned CPUs, GPUs and NICs"),
    ]
    index = (FOLDER.parent / "README.md").read_text()
    for name, story in zip(STORIES, stories, strict=True):
        assert f"| {story.source} | {story.title} | [stories/{name}](stories/{name}) |" in index


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "partial-gpu" else pytest.mark.slow) for name in STORIES]
)
def test_the_demo_tells_the_story(name: str, tmp_path: Path) -> None:
    story = load_story(FOLDER / name)
    done = subprocess.run(
        [sys.executable, "-m", "dray", "demo", name],
        env={**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "200"},  # a long path, as some systems have it
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert all(step.say in done.stdout for step in story.steps)


@pytest.mark.parametrize("name", STORIES)
def test_a_story_has_ten_lines_to_read_first(name: str) -> None:
    text = (FOLDER / name / "README.md").read_text()
    assert 8 <= len(text.strip().splitlines()) <= 16
    assert f"dray demo {name}" in text


async def test_a_story_that_does_not_come_true_says_what_was_waited_for(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stories, "WAIT_SECONDS", 0.2)
    step = '{say = "Nobody made such an event.", event = {reason = "Miracle", has = "water"}}'
    (tmp_path / "story.toml").write_text(f'title = "t"\nsource = "s"\nsteps = [{step}]\n')
    story = load_story(tmp_path)
    async with LocalCluster(story_options(story, data_dir)) as cluster:
        with pytest.raises(StoryFailed, match="in vain for an event Miracle with 'water'"):
            await play(story, cluster, Listener())
