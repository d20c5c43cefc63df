from __future__ import annotations

from pathlib import Path

from dray.runtime.files import remove_leftovers, write_atomically


def test_a_write_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    write_atomically(tmp_path / "key", b"old")
    write_atomically(tmp_path / "key", b"new", mode=0o600)
    assert (tmp_path / "key").read_bytes() == b"new"
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_leftovers_of_killed_writers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".key.k2x_91ab", ".other.k2x_91ab", ".hidden", "key", ".key.json"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path, "key")
    assert {path.name for path in tmp_path.iterdir()} == {".other.k2x_91ab", ".hidden", "key", ".key.json"}
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {".hidden", "key", ".key.json"}
