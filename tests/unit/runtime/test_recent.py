"""What is remembered, and for how long."""

from __future__ import annotations

from dray.runtime.recent import Recent


def test_the_last_ones_are_remembered() -> None:
    recent: Recent[str] = Recent(limit=2)
    for item in ("a", "b", "a", "c"):
        recent.add(item)
    assert "a" in recent
    assert "c" in recent
    assert "b" not in recent
