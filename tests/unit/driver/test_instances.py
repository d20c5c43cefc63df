"""Which instance of a driver is the newest, also after one was killed."""

from __future__ import annotations

from pathlib import Path

from dray.driver.instances import Instance


def test_the_one_that_came_last_is_the_newest_until_it_leaves(tmp_path: Path) -> None:
    old, new = Instance(tmp_path), Instance(tmp_path)
    old.enter()
    assert old.is_newest
    new.enter()
    assert new.is_newest
    assert not old.is_newest
    new.leave()
    assert old.is_newest
    assert not new.is_newest
    old.leave()
    assert not list(tmp_path.iterdir())


def test_what_a_killed_instance_left_does_not_count(tmp_path: Path) -> None:
    mine = Instance(tmp_path)
    mine.enter()
    (tmp_path / "99999999999999999999.lock").touch()  # a later one, which nobody holds
    assert mine.is_newest
    assert len(list(tmp_path.iterdir())) == 1
    mine.leave()
