"""Declarative rules: those that Kubernetes generates from tags on its types, and how they meet the handwritten ones.

Both kinds run on every request. A declarative rule is *standard*, and then alone responsible for its field, or *beta*:
then a handwritten rule of the same meaning still exists, whose errors are marked `covered`. A covered error goes when a
beta rule found the same: same type, same field, same origin (an Invalid without origin never matches). On updates,
declarative rules leave alone what didn't change, so a covered error can stay without its counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from dray.validation.fields import Errors, ErrorType, FieldError, Path, duplicate, not_supported, required, too_many
from dray.validation.versions import in_version

ItemT = TypeVar("ItemT")
Format = Callable[[str, Path], list[FieldError]]


def merge(handwritten: Iterable[FieldError], declarative: Sequence[FieldError], version: str) -> Errors:
    """What a client of that version gets to see."""
    taken_over = {(error.type, error.field, error.origin) for error in declarative if error.beta}
    kept: dict[str, FieldError] = {}
    for error in handwritten:
        same = (error.type, error.field, error.origin)
        matchable = error.covered and (error.type is not ErrorType.INVALID or error.origin != "")
        if not (matchable and same in taken_over):
            # Several handwritten rules may say the same in the same words; once is enough.
            kept.setdefault(str(error), error)
    return [*kept.values(), *in_version(declarative, version)]


def beta(found: Iterable[FieldError]) -> Errors:
    return [replace(error, beta=True) for error in found]


def require(value: str, path: Path, format_rule: Format | None = None) -> list[FieldError]:
    """A text that must be there, and have a format."""
    if not value:
        return [required(path)]
    return format_rule(value, path) if format_rule is not None else []


def limit(items: Sequence[object], most: int, path: Path) -> list[FieldError]:
    return [too_many(path, len(items), most, origin="maxItems")] if len(items) > most else []


def one_of(value: str, choices: Sequence[str], path: Path) -> list[FieldError]:
    """An optional enumeration."""
    return [not_supported(path, value, choices)] if value and value not in choices else []


def unique(items: Sequence[object], keys: Sequence[Hashable], path: Path) -> list[FieldError]:
    """Reports each item whose key came before, and shows the whole item."""
    if len(set(keys)) == len(keys):
        return []
    seen: set[Hashable] = set()
    found = []
    for position, (item, key) in enumerate(zip(items, keys, strict=True)):
        if key in seen:
            found.append(duplicate(path.index(position), item))
        seen.add(key)
    return found


def first_with_key(items: Sequence[ItemT], key: Hashable, key_of: Callable[[ItemT], Hashable]) -> ItemT | None:
    """The stored counterpart of an item, in lists whose items have a key."""
    return next((item for item in items if key_of(item) == key), None)
