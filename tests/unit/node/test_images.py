"""Folders that stand for images."""

from __future__ import annotations

from pathlib import Path

import pytest

from dray.node.images import ImageFolders
from dray.node.runtimes import CreateFailed


@pytest.fixture
def images(tmp_path: Path) -> ImageFolders:
    program = tmp_path / "registry.example.com" / "team" / "app" / "bin" / "program"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    entrypoint = tmp_path / "tool" / "entrypoint"
    entrypoint.parent.mkdir()
    entrypoint.write_text("#!/bin/sh\n")
    return ImageFolders(tmp_path)


@pytest.mark.parametrize("tag", ["", ":1.2", "@sha256:abc", ":1.2@sha256:abc"])
def test_a_command_is_looked_for_in_the_images_folder_first(images: ImageFolders, tag: str) -> None:
    image = f"registry.example.com/team/app{tag}"
    (program, argument) = images.resolve(image, ["/bin/program", "-v"], [])
    assert program.endswith("app/bin/program")
    assert argument == "-v"
    assert images.resolve(image, ["/bin/true"], ["x"]) == ("/bin/true", "x")
    assert images.resolve(image, ["program"], []) == ("program",)


def test_without_a_command_the_entrypoint_runs(images: ImageFolders, tmp_path: Path) -> None:
    assert images.resolve("tool:latest", [], ["-x"]) == ("/bin/sh", str(tmp_path / "tool" / "entrypoint"), "-x")


@pytest.mark.parametrize("image", ["unknown", "../etc", "registry.example.com/team/app", ""])
def test_an_image_that_is_not_there_needs_a_command(images: ImageFolders, image: str) -> None:
    with pytest.raises(CreateFailed, match="needs a command"):
        images.resolve(image, [], [])
