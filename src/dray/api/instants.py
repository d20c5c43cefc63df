"""RFC 3339 instants as Go reads them, brought into the one form that is stored: UTC and whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from dray.api.quoting import quote

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"


class InvalidInstant(ValueError):
    """The message is Go's."""


def normalise_instant(text: str) -> str | None:
    """The instant as `2026-02-03T04:05:06Z`; None for Go's zero time, which counts as absent."""
    cursor = _Cursor(text)
    year = cursor.number("2006", 4, 1, 9999, "year")
    cursor.literal("-")
    month = cursor.number("01", 2, 1, 12, "month")
    cursor.literal("-")
    day = cursor.number("02", 2, 0, 99, "day")
    cursor.literal("T")
    hour = cursor.number("15", 2, 0, 23, "hour")
    cursor.literal(":")
    minute = cursor.number("04", 2, 0, 59, "minute")
    cursor.literal(":")
    second = cursor.number("05", 2, 0, 59, "second")
    cursor.skip_fraction()
    offset = cursor.offset()
    cursor.end()
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise InvalidInstant(f"parsing time {quote(text)}: day out of range") from None
    try:
        moment -= offset
    except OverflowError:
        raise InvalidInstant(f"parsing time {quote(text)}: year out of range") from None
    if moment == datetime(1, 1, 1, tzinfo=UTC):
        return None
    return f"{moment.year:04}{moment:-%m-%dT%H:%M:%SZ}"


class _Cursor:
    def __init__(self, text: str) -> None:
        self._text = text
        self._rest = text

    def _bad(self, element: str) -> InvalidInstant:
        place = f"cannot parse {quote(self._rest)} as {quote(element)}"
        return InvalidInstant(f"parsing time {quote(self._text)} as {quote(_LAYOUT)}: {place}")

    def number(self, element: str, width: int, low: int, high: int, name: str) -> int:
        digits = self._rest[:width]
        if len(digits) < width or not (digits.isascii() and digits.isdigit()):
            raise self._bad(element)
        if not low <= int(digits) <= high:
            raise InvalidInstant(f"parsing time {quote(self._text)}: {name} out of range")
        self._rest = self._rest[width:]
        return int(digits)

    def literal(self, character: str) -> None:
        if not self._rest.startswith(character):
            raise self._bad(character)
        self._rest = self._rest[1:]

    def skip_fraction(self) -> None:
        if self._rest[:1] in (".", ",") and self._rest[1:2].isascii() and self._rest[1:2].isdigit():
            self._rest = self._rest[1:].lstrip("0123456789")

    def offset(self) -> timedelta:
        if self._rest.startswith("Z"):
            self._rest = self._rest[1:]
            return timedelta()
        zone = self._rest[:6]
        digits = zone[1:3] + zone[4:6]
        if len(zone) < 6 or zone[0] not in "+-" or zone[3] != ":" or not (digits.isascii() and digits.isdigit()):
            raise self._bad("Z07:00")
        hours, minutes = int(digits[:2]), int(digits[2:])
        for name, value, limit in (("hour", hours, 24), ("minute", minutes, 60)):
            if value > limit:
                raise InvalidInstant(f"parsing time {quote(self._text)}: time zone offset {name} out of range")
        self._rest = self._rest[6:]
        shift = timedelta(hours=hours, minutes=minutes)
        return shift if zone[0] == "+" else -shift

    def end(self) -> None:
        if self._rest:
            raise InvalidInstant(f"parsing time {quote(self._text)}: extra text: {quote(self._rest)}")
