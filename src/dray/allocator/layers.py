"""A mapping that forks in O(1).

A fork turns the changes made so far into a frozen layer that both sides share; each side then writes into a layer of
its own. Layers are merged when they pile up, a smaller one into the next that is larger, so that every entry is copied
only a logarithmic number of times and a lookup meets few layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class _Gone:
    """Marks a key that a lower layer has and this one removed."""


_GONE: Final = _Gone()


class Layered(Generic[K, V]):
    """Like a dict, but forkable. Iteration is in no particular order."""

    __slots__ = ("_frozen", "_own")

    def __init__(self) -> None:
        self._own: dict[K, V | _Gone] = {}
        self._frozen: tuple[dict[K, V | _Gone], ...] = ()
        """Newest first."""

    def fork(self) -> Layered[K, V]:
        if self._own:
            self._frozen = _merged((self._own, *self._frozen))
            self._own = {}
        other: Layered[K, V] = Layered()
        other._frozen = self._frozen
        return other

    def get(self, key: K) -> V | None:
        found = self._own.get(key)
        if not self._frozen:
            return found  # type: ignore[return-value]  # only what a frozen layer has can be marked as gone
        if found is None:
            for layer in self._frozen:
                found = layer.get(key)
                if found is not None:
                    break
        return None if found is None or isinstance(found, _Gone) else found

    def __getitem__(self, key: K) -> V:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __setitem__(self, key: K, value: V) -> None:
        self._own[key] = value

    def discard(self, key: K) -> None:
        """Remove the key if it is there."""
        if self._frozen:
            self._own[key] = _GONE
        else:
            self._own.pop(key, None)

    def clear(self) -> None:
        self._own = {}
        self._frozen = ()

    def items(self) -> Iterator[tuple[K, V]]:
        if not self._frozen:
            for key, value in self._own.items():
                assert not isinstance(value, _Gone)
                yield key, value
            return
        seen: set[K] = set()
        for layer in (self._own, *self._frozen):
            for key, value in layer.items():
                if key not in seen:
                    seen.add(key)
                    if not isinstance(value, _Gone):
                        yield key, value

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self.items())

    def __len__(self) -> int:
        if not self._frozen:
            return len(self._own)
        return sum(1 for _ in self.items())


def _merged(layers: tuple[dict[K, V | _Gone], ...]) -> tuple[dict[K, V | _Gone], ...]:
    """Merge from the newest on while a layer is at least half as large as the one below it."""
    newest, *older = layers
    while older and 2 * len(newest) >= len(older[0]):
        below = older.pop(0)
        newest = {**below, **newest}
        if not older:
            newest = {key: value for key, value in newest.items() if not isinstance(value, _Gone)}
    return (newest, *older)
