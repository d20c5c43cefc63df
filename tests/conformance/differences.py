"""Says in one line where two answers differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def describe(
    expected: dict[str, Any], ours: dict[str, Any], same: Callable[[Any, Any], bool] = lambda a, b: bool(a == b)
) -> str | None:
    """None if equal, else every field that differs, with both values."""
    parts = []
    for field in sorted(expected.keys() | ours.keys()):
        if field not in ours:
            parts.append(f"{field}: want {_short(expected[field])}, we have none")
        elif field not in expected:
            parts.append(f"{field}: want none, we have {_short(ours[field])}")
        elif not same(expected[field], ours[field]):
            parts.append(f"{field}: want {_short(expected[field])}, we have {_short(ours[field])}")
    return "; ".join(parts) or None


def _short(value: Any, limit: int = 400) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
