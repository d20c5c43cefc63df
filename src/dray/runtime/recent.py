"""Remembers the last things that were said to it, for facts that stay true once they are."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeVar

LIMIT: Final = 10_000

T = TypeVar("T")


class Recent(Generic[T]):
    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._items: OrderedDict[T, None] = OrderedDict()

    def __contains__(self, item: T) -> bool:
        return item in self._items

    def add(self, item: T) -> None:
        self._items[item] = None
        self._items.move_to_end(item)
        if len(self._items) > self._limit:
            self._items.popitem(last=False)
