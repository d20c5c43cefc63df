"""Lists with a limit, and lists that are sets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from dray.validation.fields import Errors, Path, duplicate, too_many


def is_too_many(items: Sequence[object], limit: int, path: Path, errors: Errors, *, covered: bool = False) -> bool:
    """Report a list that is too long. Its items are then not looked at, which keeps absurd requests cheap."""
    if len(items) <= limit:
        return False
    error = too_many(path, len(items), limit, origin="maxItems")
    errors.append(replace(error, covered=True) if covered else error)
    return True


def check_unique(keys: Iterable[Hashable], path: Path, errors: Errors, *, covered: bool = False) -> None:
    """Report every item whose key came before."""
    seen: set[Hashable] = set()
    for position, key in enumerate(keys):
        if key in seen:
            error = duplicate(path.index(position), key)
            errors.append(replace(error, covered=True) if covered else error)
        seen.add(key)
