"""What is known of the size of an expression's input, by the path that leads to a value.

Paths are Go slices in cel-go, and `append` writes into the array that other slices share while there is room. That
shows in estimates (a two-variable macro over `device.attributes["x"]` takes the key for as long as the value), so it
is reproduced here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from dray.cel.environment import Environment
from dray.cel.ranges import Range


class Path:
    """A Go slice of strings: a shared array, and how much of it is ours."""

    __slots__ = ("_array", "length")

    def __init__(self, array: list[str], length: int) -> None:
        self._array = array
        self.length = length

    @classmethod
    def of(cls, name: str) -> Path:
        return cls([name], 1)

    def append(self, name: str) -> Path:
        array = self._array
        length = self.length
        if length == len(array):
            array = [*array, name] if length == 0 else array + [""] * length
        array[length] = name
        return Path(array, length + 1)

    def append_copy(self, name: str) -> Path:
        """Like `append`, into an array of its own."""
        return Path([*self.names(), name], self.length + 1)

    def names(self) -> list[str]:
        return self._array[: self.length]

    @property
    def root(self) -> str:
        return self._array[0]


EMPTY: Final = Path([], 0)


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a value can be: characters of a string, entries of a list or map. And what is in it."""

    size: int
    keys: Shape | None = None
    items: Shape | None = None
    fields: dict[str, Shape] = field(default_factory=dict)
    any_field: bool = False
    """Whether an item may also be selected as a field, whatever its name."""


MAX_DEVICES: Final = 32
"""A claim can't be allocated more devices."""

_NAME: Final = Shape(63)
_ID: Final = Shape(32)
_ATTRIBUTES: Final = Shape(32, _NAME, Shape(32, _ID, Shape(64), any_field=True))
_CAPACITY: Final = Shape(32, _NAME, Shape(32, _ID, Shape(0)))
_FIELDS: Final = {
    "driver": _NAME,
    "attributes": _ATTRIBUTES,
    "capacity": _CAPACITY,
    "allowMultipleAllocations": Shape(1),
}
_ROOTS: Final[dict[str, dict[str, Shape]]] = {
    "device": {"device": Shape(0, fields=_FIELDS)},
    "devices": {"devices": Shape(MAX_DEVICES, items=Shape(len(_FIELDS), fields=_FIELDS))},
    "generic": {},
}


def size_at(path: Path, environment: Environment) -> Range | None:
    """The size of the input value at a path, if the path leads to one that is known."""
    if path.length == 0:
        return None
    shape = _ROOTS[environment.name].get(path.root)
    if shape is None:
        return None
    for name in path.names()[1:]:
        if name == "@items" or name == "@values":
            found = shape.items
        elif name == "@keys":
            found = shape.keys
        else:
            found = shape.fields.get(name) or (shape.items if shape.any_field else None)
        if found is None:
            return None
        shape = found
    return (0, shape.size)
