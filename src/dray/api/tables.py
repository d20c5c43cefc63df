"""What a printed table is made of: columns, and one function from an object to its cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from dray.api.meta import Json
from dray.api.times import format_age

Cell = str | int
Cells = Sequence[Cell]


class Column(NamedTuple):
    """`priority` 0 is always shown, 1 only by `kubectl get -o wide`."""

    name: str
    description: str
    type: str = "string"
    format: str = ""
    priority: int = 0


class TableKind(NamedTuple):
    """How objects of a kind are printed; `cells` gets the object and the present time."""

    columns: tuple[Column, ...]
    cells: Callable[[Json, datetime], Cells]


NAME: Final = Column("Name", "The object's name.", format="name")
AGE: Final = Column("Age", "How long ago the object was created.")


def name_of(obj: Json) -> str:
    return text_at(obj, "metadata", "name")


def age_of(obj: Json, now: datetime) -> str:
    return format_age(now, at(obj, "metadata", "creationTimestamp"))


def at(obj: Any, *path: str) -> Any:
    """The value at a path of an object, or None."""
    for step in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(step)
    return obj


def text_at(obj: Any, *path: str) -> str:
    return str(at(obj, *path) or "")


def number_at(obj: Any, *path: str) -> int:
    return int(at(obj, *path) or 0)


def list_at(obj: Any, *path: str) -> list[Any]:
    value = at(obj, *path)
    return value if isinstance(value, list) else []
