"""Fields that a JSON text gives twice. The last one counts; strict validation objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final


class _Found(Exception):
    pass


def _refuse(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Found
    return members


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written."""


_QUICK: Final = json.JSONDecoder(object_pairs_hook=_refuse)
_EXACT: Final = json.JSONDecoder(object_pairs_hook=_Pairs)


def find_duplicates(data: bytes) -> list[str]:
    """Paths such as `spec.containers[0].name`. Most texts have none, which is quick to see."""
    text = data.decode("utf-8", "replace")
    try:
        _QUICK.decode(text)
    except _Found:
        return list(dict.fromkeys(_iter_duplicates(_EXACT.decode(text), "")))
    except (ValueError, RecursionError):  # the decoder says what is wrong with it
        pass
    return []


def _iter_duplicates(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, inner in value:
            place = f"{path}.{name}" if path else name
            if name in seen:
                yield place
            seen.add(name)
            yield from _iter_duplicates(inner, place)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _iter_duplicates(item, f"{path}[{position}]")
