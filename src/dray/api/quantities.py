"""Exact resource quantities (`40Gi`, `100m`, `1e3`)."""

from __future__ import annotations

from typing import ClassVar


class Quantity:
    """Placeholder of the exact quantity."""

    ZERO: ClassVar[Quantity]
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


Quantity.ZERO = Quantity("0")
