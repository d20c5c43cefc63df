"""`dray demo`: the stories come out as the design documents say."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from dray.api.features import ALL_GATES
from dray.cli.clusters import read_cluster
from dray.cli.demo import STORIES, Played, play, show
from dray.cli.main import app

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "stories"


def play_story(file: str) -> Played:
    return play(read_cluster([str(FOLDER / file)], ALL_GATES))


def devices_of(played: Played, letter: str) -> list[str]:
    return [id.device for id, mark in played.marks.items() if mark[0] == letter]


@pytest.mark.parametrize("folder", ["stories", "explanations"])
def test_the_manifests_are_valid(folder: str) -> None:
    result = CliRunner().invoke(app, ["validate", "-f", str(FOLDER.parent / folder)])
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.mark.parametrize("file", [story.file for story in STORIES])
def test_every_result_passes_the_checker(file: str) -> None:
    assert play_story(file).violations == 0


def test_the_partial_gpu_is_the_first_partition_that_is_large_enough() -> None:
    played = play_story("1-partial-gpu.yaml")
    assert (devices_of(played, "A"), devices_of(played, "B")) == (["card-0-part-3"], ["card-1-part-2"])


def test_the_ring_gives_neighbours_and_the_third_pod_waits() -> None:
    played = play_story("2-ring.yaml")
    assert devices_of(played, "A") == ["mla-0", "mla-1", "mla-2", "mla-3"]
    assert devices_of(played, "B") == ["mla-5", "mla-6", "mla-7", "mla-8"]
    (unplaced,) = played.unplaced
    assert unplaced.claims.owner == "pod default/ring-3"


def test_the_grid_gives_blocks() -> None:
    played = play_story("3-grid.yaml")
    for letter in "AB":
        places = [played.numbers(id, "row", "col") for id, mark in played.marks.items() if mark[0] == letter]
        rows, columns = ({place[axis] for place in places} for axis in (0, 1))
        assert (len(places), max(rows) - min(rows), max(columns) - min(columns)) == (4, 1, 1)


def test_what_is_aligned_has_a_root_in_common() -> None:
    played = play_story("4-pcie-aligned.yaml")
    assert (devices_of(played, "A"), devices_of(played, "B")) == (
        ["gpu-1", "nic-0", "cpu-0"],
        ["gpu-3", "nic-1", "cpu-1"],
    )


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_on_two_screens(width: int) -> None:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        show(console, FOLDER)
    lines = captured.get().splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for story in STORIES:
        assert story.title in text
    assert "Why ring-3 has to wait" in text
    assert "closest: mla-9, mla-10, mla-12, mla-13 (4 instead of 3)" in text
    assert "validate and convert" in text


def test_the_command_shows_the_allocator_alone() -> None:
    result = CliRunner().invoke(app, ["demo", "allocator"])
    assert result.exit_code == 0
    assert "Why ring-3 has to wait" in result.stdout


def test_a_story_that_is_not_there_is_refused_with_a_list_of_those_that_are() -> None:
    result = CliRunner().invoke(app, ["demo", "nonsense"])
    assert result.exit_code == 2
    assert "partial-gpu" in result.stderr


def test_the_list_names_every_story_and_its_source() -> None:
    result = CliRunner().invoke(app, ["demo", "--list"])
    assert "device-grid              KEP-5254  Allocating a slice of connected devices" in result.stdout
